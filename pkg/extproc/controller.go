package extproc

import (
	"context"
	"time"

	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// Controller is what a stream asks of the queue controller; see Controlled.
type Controller interface {
	// TryEnqueue admits r at once, or blocks until it is granted or rejected. An error is a *flowcontrol.Rejection.
	TryEnqueue(ctx context.Context, r *flowcontrol.Request) (Lease, error)
	// Refuse counts a request that ends before TryEnqueue; err wraps the sentinel of its outcome, and what is not known
	// yet is empty.
	Refuse(flow, model, targetModel string, err error) *flowcontrol.Rejection
	// Waiting is the number of requests in the queue now.
	Waiting() int
	// PassOn places r without queueing. An error is a *flowcontrol.Rejection.
	PassOn(r *flowcontrol.Request) (Lease, error)
}

// Lease is a granted request's holding of stock; *flowcontrol.Lease documents the methods.
type Lease interface {
	Preempted() <-chan struct{}
	Queued() (waited time.Duration, queued bool)
	OnFirstByte() error
	OnServed(e flowcontrol.Endpoint)
	OnRequestComplete(c flowcontrol.Completion)
}

// Picker prepares placements: what depends on the request alone is computed before the controller's lock.
type Picker interface {
	// Prepare returns the placement of a request for model ("" when it is not known) within the subset. An error
	// means that no endpoint can ever take the request, and says why; its outcome is no-endpoint.
	Prepare(model string, subset Subset) (Placement, error)
	// Locate is the endpoint of an address, if it is known.
	Locate(address string) (flowcontrol.Endpoint, bool)
	// Lists reports whether an endpoint of the pool, ready or not, lists the model. One that lists none serves any, and
	// says nothing.
	Lists(model string) bool
}

// Placement is a prepared placement, and after the grant it knows the destination.
type Placement interface {
	flowcontrol.Placement
	// Chosen is the endpoint that was placed, as ip:port or [ip]:port, and the fallbacks in order. "" when the
	// request was not placed.
	Chosen() (address string, fallbacks []string)
}

// Controlled is c as a Controller.
func Controlled(c *flowcontrol.RequestQueueController) Controller { return controlled{c} }

type controlled struct {
	*flowcontrol.RequestQueueController
}

func (c controlled) TryEnqueue(ctx context.Context, r *flowcontrol.Request) (Lease, error) {
	l, err := c.RequestQueueController.TryEnqueue(ctx, r)
	return leaseOrNil(l), err
}

func (c controlled) Waiting() int { return c.State().Queued }

func (c controlled) PassOn(r *flowcontrol.Request) (Lease, error) {
	l, err := c.RequestQueueController.PassOn(r)
	return leaseOrNil(l), err
}

// leaseOrNil keeps a nil pointer from becoming an interface that is not nil.
func leaseOrNil(l *flowcontrol.Lease) Lease {
	if l == nil {
		return nil
	}
	return l
}
