package extproc

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/weir-epp/weir/pkg/body"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/request"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// fakeController replaces the queue: it grants at once or at the test's command, and counts outcomes.
type fakeController struct {
	mu sync.Mutex
	// hold makes requests wait for a verdict in grant.
	hold    bool
	grant   chan error
	reject  error // result of TryEnqueue and PassOn; nil grants
	preempt chan struct{}
	boom    string // panics in the named method; in Waiting only once
	waiting int
	away    bool          // no endpoint is ready
	queued  time.Duration // of the leases
	quota   *flowcontrol.QuotaStanding
	facts   *flowcontrol.Facts
	unread  bool // prompts count until their first token

	requests []*flowcontrol.Request
	passedOn int
	refused  []error
	// refusedModels and refusedFlows are those of the refused requests.
	refusedModels []string
	refusedFlows  []string
	leases        []*fakeLease
	outcomes      int
}

func (c *fakeController) TryEnqueue(ctx context.Context, r *flowcontrol.Request) (Lease, error) {
	if c.boom == "TryEnqueue" {
		panic("boom")
	}
	c.mu.Lock()
	c.requests = append(c.requests, r)
	hold := c.hold
	c.mu.Unlock()
	err := c.reject
	if hold {
		r.OnQueued(30 * time.Second)
		select {
		case err = <-c.grant:
		case <-ctx.Done():
			err = ctx.Err()
			if err == nil {
				panic("a context that is done has an error")
			}
		}
	}
	return c.verdict(err)
}

func (c *fakeController) verdict(err error) (Lease, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.outcomes++
		return nil, &flowcontrol.Rejection{Err: err, Outcome: flowcontrol.OutcomeOf(err), RetryAfter: 1500 * time.Millisecond, Quota: c.quota, Facts: c.facts}
	}
	l := &fakeLease{controller: c, preempt: c.preempt}
	c.leases = append(c.leases, l)
	return l, nil
}

func (c *fakeController) PassOn(r *flowcontrol.Request) (Lease, error) {
	c.mu.Lock()
	c.requests = append(c.requests, r)
	c.passedOn++
	c.mu.Unlock()
	return c.verdict(c.reject)
}

func (c *fakeController) Waiting() int {
	if c.boom == "Waiting" {
		c.boom = ""
		panic("boom")
	}
	return c.waiting
}

func (c *fakeController) Ready() int {
	if c.away {
		return 0
	}
	return 1
}

func (c *fakeController) Refuse(_, flow, model, _ string, err error) *flowcontrol.Rejection {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused = append(c.refused, err)
	c.refusedModels = append(c.refusedModels, model)
	c.refusedFlows = append(c.refusedFlows, flow)
	c.outcomes++
	return &flowcontrol.Rejection{Err: err, Outcome: flowcontrol.OutcomeOf(err)}
}

type fakeLease struct {
	controller *fakeController
	preempt    chan struct{}
	completed  []flowcontrol.Completion
	firstBytes int
	prefilled  int

	firstTokens int
	costs       []fairqueue.Cost     // values passed to OnCost
	tokens      []flowcontrol.Tokens // values passed to OnCost
	expected    []fairqueue.Cost     // values passed to OnExpected
}

func (l *fakeLease) Preempted() <-chan struct{} { return l.preempt }

func (l *fakeLease) Facts() *flowcontrol.Facts { return l.controller.facts }

func (l *fakeLease) Quota() *flowcontrol.QuotaStanding { return l.controller.quota }

func (l *fakeLease) OnCost(to fairqueue.Cost, tokens flowcontrol.Tokens) {
	l.costs, l.tokens = append(l.costs, to), append(l.tokens, tokens)
}

func (l *fakeLease) OnExpected(cost fairqueue.Cost) { l.expected = append(l.expected, cost) }

func (l *fakeLease) Queued() (time.Duration, bool) {
	return l.controller.queued, l.controller.queued > 0
}

func (l *fakeLease) OnFirstByte() error {
	l.controller.mu.Lock()
	defer l.controller.mu.Unlock()
	l.firstBytes++
	if l.controller.boom == "OnFirstByte" {
		panic("boom")
	}
	select {
	case <-l.preempt:
		return flowcontrol.ErrPreempted
	default:
		return nil
	}
}

// tryPreempt takes the lease, unless its response has begun: first byte and preemption are decided under one lock.
func (l *fakeLease) tryPreempt() bool {
	l.controller.mu.Lock()
	defer l.controller.mu.Unlock()
	if l.firstBytes > 0 || len(l.completed) > 0 {
		return false
	}
	close(l.preempt)
	return true
}

func (l *fakeLease) OnServed(flowcontrol.Endpoint, int) {}

func (l *fakeLease) OnPrefilled() { l.prefilled++ }

func (l *fakeLease) OnFirstToken() { l.firstTokens++ }

func (l *fakeLease) AwaitsFirstToken() bool { return l.controller.unread && l.firstTokens == 0 }

func (l *fakeLease) OnRequestComplete(c flowcontrol.Completion) {
	l.controller.mu.Lock()
	defer l.controller.mu.Unlock()
	l.completed = append(l.completed, c)
	l.controller.outcomes++
	if l.controller.boom == "OnRequestComplete" {
		panic("boom")
	}
}

// fakePicker places every request at the same endpoints.
type fakePicker struct {
	mu        sync.Mutex // guards model and subset: streams call concurrently
	address   string
	fallbacks []string
	err       error
	model     string
	subset    request.Subset
	needs     request.Needs
	boom      bool   // Chosen panics
	prefill   string // the prefill engine; "" for none
	onChosen  func() // called by Chosen; nil for nothing
	lists     []string
	prompt    *body.Blocks
	watched   bool
	affinity  Affinity // nil: unknown
	most      int64    // tokens that engines take; 0: any number
	length    Length
	confined  *request.Subset
	views     int                  // requested ones
	explained *scheduling.Decision // result of Explained
}

func (p *fakePicker) Prepare(model string, subset request.Subset, needs request.Needs) (Placement, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.model, p.subset, p.needs = model, subset, needs
	return p, p.err
}

func (p *fakePicker) Require(subset request.Subset, need *request.Requirements) request.Subset {
	if len(need.Labels) > 0 {
		return request.Subset{Set: true}
	}
	return subset
}

func (p *fakePicker) Confine(_ string, _ request.Subset, length Length) (*request.Subset, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.length = length; p.most > 0 && length.Least > p.most {
		return nil, &TooLongError{length.Least, p.most}
	}
	return p.confined, nil
}

func (p *fakePicker) Rate(_ Placement, prompt *body.Blocks, watched bool) Affinity {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.prompt, p.watched = prompt, watched
	return p.affinity
}

func (p *fakePicker) Locate(address string) (flowcontrol.Endpoint, bool) {
	if address == p.address {
		return 0, true
	}
	for i, f := range p.fallbacks {
		if f == address {
			return flowcontrol.Endpoint(i + 1), true
		}
	}
	return flowcontrol.NoEndpoint, false
}

func (p *fakePicker) Lists(model string) bool { return slices.Contains(p.lists, model) }

func (p *fakePicker) Lane() string { return "" }

func (p *fakePicker) Prefill() (flowcontrol.Endpoint, string) { return 0, p.prefill }

func (p *fakePicker) Watch() { p.views++ }

func (p *fakePicker) Explained() *scheduling.Decision { return p.explained }

func (p *fakePicker) Chosen() (string, []string) {
	if p.boom {
		panic("boom")
	}
	if p.onChosen != nil {
		p.onChosen()
	}
	return p.address, p.fallbacks
}

// fakeStream is the server's side of a stream without a network. Like gRPC's, its context ends when the handler returns.
type fakeStream struct {
	grpc.ServerStream
	ctx  context.Context
	in   chan *extprocv3.ProcessingRequest
	mu   sync.Mutex
	sent []*extprocv3.ProcessingResponse
}

func (s *fakeStream) Context() context.Context { return s.ctx }

func (s *fakeStream) Recv() (*extprocv3.ProcessingRequest, error) {
	select {
	case m, ok := <-s.in:
		if !ok {
			return nil, io.EOF
		}
		return m, nil
	case <-s.ctx.Done():
		return nil, s.ctx.Err()
	}
}

func (s *fakeStream) Send(m *extprocv3.ProcessingResponse) error {
	if s.ctx.Err() != nil {
		return io.EOF
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, decoded(m))
	return nil
}

// decoded returns a reply as Envoy gets it.
func decoded(m *extprocv3.ProcessingResponse) *extprocv3.ProcessingResponse {
	b, err := proto.Marshal(m)
	got := &extprocv3.ProcessingResponse{}
	if err = errors.Join(err, proto.Unmarshal(b, got)); err != nil {
		panic(err)
	}
	return got
}

// take waits until nothing moves and returns what was sent since the last call.
func (s *fakeStream) take() []*extprocv3.ProcessingResponse {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	sent := s.sent
	s.sent = nil
	return sent
}

func isImmediate(m *extprocv3.ProcessingResponse) bool { return m.GetImmediateResponse() != nil }

// The messages of Envoy.
