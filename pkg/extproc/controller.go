package extproc

import (
	"context"
	"time"

	"github.com/weir-epp/weir/pkg/decision"
	"github.com/weir-epp/weir/pkg/extproc/body"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/request"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// Controller is the queue controller, as streams use it. Controlled makes one.
type Controller interface {
	// TryEnqueue admits r at once, or blocks until r is granted or rejected. The error is a *flowcontrol.Rejection.
	TryEnqueue(ctx context.Context, r *flowcontrol.Request) (Lease, error)
	// Refuse counts a request that is rejected without TryEnqueue. err wraps the sentinel of its outcome. A flow or model
	// that is not known is empty, and id too.
	Refuse(id, flow, model, targetModel string, err error) *flowcontrol.Rejection
	// Waiting returns the number of requests in the queue.
	Waiting() int
	// Ready returns the number of endpoints that are ready.
	Ready() int
	// PassOn places r without queueing. The error is a *flowcontrol.Rejection.
	PassOn(r *flowcontrol.Request) (Lease, error)
}

// Lease is a granted request's holding of stock. *flowcontrol.Lease documents the methods.
type Lease interface {
	Preempted() <-chan struct{}
	Queued() (waited time.Duration, queued bool)
	Quota() *flowcontrol.QuotaStanding
	Facts() *flowcontrol.Facts
	OnFirstByte() error
	OnPrefilled()
	OnFirstToken()
	AwaitsFirstToken() bool
	OnServed(e flowcontrol.Endpoint, status int)
	OnCost(to fairqueue.Cost, tokens flowcontrol.Tokens)
	OnExpected(cost fairqueue.Cost)
	OnRequestComplete(c flowcontrol.Completion)
}

// Picker prepares placements: it computes the parts that depend on the request alone outside the controller's lock.
type Picker interface {
	// Prepare returns the placement of a request for model ("" if it is not known), with needs, within the subset. It returns
	// an error if no endpoint can ever take the request, whose outcome is then unsupported if it is an *UnsupportedError,
	// unknown-model if it is flowcontrol.ErrUnknownModel and the configuration names neither the model nor its target, else
	// no-endpoint.
	Prepare(model string, subset request.Subset, needs request.Needs) (Placement, error)
	// Require returns the endpoints of the subset that meet the requirements: the subset itself if all do.
	Require(subset request.Subset, need *request.Requirements) request.Subset
	// Confine returns the endpoints of the subset whose engines take a request for model of such a length, or nil if all may.
	// The error is a *TooLongError if none does.
	Confine(model string, subset request.Subset, length Length) (*request.Subset, error)
	// Rate tells the placement which endpoints have the prompt cached, and whether the first token of the answer will
	// be seen. It returns nil if that is unknown. The prompt must not change any more.
	Rate(p Placement, prompt *body.Blocks, watched bool) Affinity
	// Locate returns the endpoint at an address, and reports whether it is known.
	Locate(address string) (flowcontrol.Endpoint, bool)
	// Lists reports whether an endpoint of the pool, ready or not, lists the model. An endpoint without a list may serve
	// any model, and does not count.
	Lists(model string) bool
}

// Affinity follows a prompt that was rated. Its other methods are called once at most, Granted first.
type Affinity interface {
	// Cached returns the most tokens of the prompt that an engine that the request may use had cached when it was rated. It may
	// be called any number of times.
	Cached() int64
	// Granted tells that the request has its endpoint, and returns the number of tokens of its prompt that the engine
	// there is expected to have cached; 0 if that engine has never reported cached tokens, so that this could not be
	// verified.
	Granted() (cached int64)
	// Failed tells that no engine has read the prompt to its end.
	Failed()
	// Reported tells the number of its tokens that the engine had cached by its own report.
	Reported(cached int64)
}

// Placement is a prepared placement. After the grant it knows the destination.
type Placement interface {
	flowcontrol.Placement
	// Chosen returns the endpoint where the request was placed, as ip:port or [ip]:port, and the fallbacks in order. The
	// address is "" if the request was not placed.
	Chosen() (address string, fallbacks []string)
	// Prefill returns the prefill engine that reads the prompt, with its address; "" if the endpoint does.
	Prefill() (id flowcontrol.Endpoint, address string)
	// Watch must be called before the request is offered to have Explained return how the endpoints compared.
	Watch()
	Explained() *scheduling.Decision
}

// Records takes the decision records of requests. Put must not wait.
type Records interface{ Put(r *decision.Record) }

// Controlled returns c as a Controller.
func Controlled(c *flowcontrol.RequestQueueController) Controller { return controlled{c} }

type controlled struct {
	*flowcontrol.RequestQueueController
}

func (c controlled) TryEnqueue(ctx context.Context, r *flowcontrol.Request) (Lease, error) {
	l, err := c.RequestQueueController.TryEnqueue(ctx, r)
	return leaseOrNil(l), err
}

func (c controlled) Waiting() int { return c.State().Queued }

func (c controlled) Ready() int { return c.State().Ready }

func (c controlled) PassOn(r *flowcontrol.Request) (Lease, error) {
	l, err := c.RequestQueueController.PassOn(r)
	return leaseOrNil(l), err
}

// leaseOrNil returns l, but a nil interface for a nil pointer.
func leaseOrNil(l *flowcontrol.Lease) Lease {
	if l == nil {
		return nil
	}
	return l
}
