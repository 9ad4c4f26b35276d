package extproc

import (
	"context"
	"time"

	"github.com/weir-epp/weir/pkg/body"
	"github.com/weir-epp/weir/pkg/decision"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/request"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// Controller is the streams' interface to the queue controller. Controlled makes one.
type Controller interface {
	// TryEnqueue admits r at once, or blocks until r is granted or rejected. The error is a *flowcontrol.Rejection.
	TryEnqueue(ctx context.Context, r *flowcontrol.Request) (Lease, error)
	// Refuse counts a request rejected without TryEnqueue. err wraps the sentinel of its outcome. An unknown id, flow
	// or model is empty.
	Refuse(id, flow, model, targetModel string, err error) *flowcontrol.Rejection
	// Waiting returns the number of requests in the queue.
	Waiting() int
	// Ready returns the number of ready endpoints.
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

// Picker prepares placements: outside the controller's lock it computes the parts that depend on the request only.
type Picker interface {
	request.Models
	// Prepare returns the placement of a request for model ("" if unknown), with needs, within the subset. It returns
	// an error if no endpoint can ever take the request. The outcome is then unsupported for an *UnsupportedError;
	// unknown-model for flowcontrol.ErrUnknownModel if the configuration names neither the model nor its target;
	// otherwise no-endpoint.
	Prepare(model string, subset request.Subset, needs request.Needs) (Placement, error)
	// Require returns the endpoints of the subset that meet the requirements: the subset itself if all do.
	Require(subset request.Subset, need *request.Requirements) request.Subset
	// Confine returns the endpoints of the subset whose engines take a request of this length for model, or nil if all
	// do. The error is a *TooLongError if none does.
	Confine(model string, subset request.Subset, length Length) (*request.Subset, error)
	// Rate gives the placement the endpoints with the prompt cached, and whether the first token of the answer will be
	// seen. It returns nil if they are unknown. The prompt must not change afterwards.
	Rate(p Placement, prompt *body.Blocks, watched bool) Affinity
	// Locate returns the endpoint at an address, and reports whether it is known.
	Locate(address string) (flowcontrol.Endpoint, bool)
}

// Affinity follows a rated prompt. Each method except Cached is called at most once, Granted first.
type Affinity interface {
	// Cached returns the most prompt tokens cached, at the rating, at an engine that the request may use. It may be
	// called any number of times.
	Cached() int64
	// Granted notes that the request has its endpoint, and returns the number of prompt tokens expected to be cached
	// there; 0 if the engine has never reported cached tokens, so that the expectation could not be verified.
	Granted() (cached int64)
	// Failed notes that no engine has read the whole prompt.
	Failed()
	// Reported notes the number of prompt tokens that the engine reported as cached.
	Reported(cached int64)
}

// Placement is a prepared placement. After the grant it has the destination.
type Placement interface {
	flowcontrol.Placement
	// Chosen returns the endpoint where the request was placed, as ip:port or [ip]:port, and the fallbacks in order. The
	// address is "" if the request was not placed.
	Chosen() (address string, fallbacks []string)
	// Prefill returns the prefill engine that reads the prompt, with its address; "" if the endpoint reads it.
	Prefill() (id flowcontrol.Endpoint, address string)
	// Watch makes Explained return the comparison of the endpoints. It must be called before the request is offered.
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

// leaseOrNil returns l, or a nil interface for a nil pointer.
func leaseOrNil(l *flowcontrol.Lease) Lease {
	if l == nil {
		return nil
	}
	return l
}
