package flowcontrol

import (
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
)

// Request is what the controller is told of one request. The caller fills it, passes it to TryEnqueue once, and
// leaves it alone until TryEnqueue has returned.
type Request struct {
	// ID is what the request is called in logs, for a recording; it may be empty.
	ID string
	// Flow is the key of the flow; requests with equal keys (and tiers) share one fair share.
	Flow string
	// Model and TargetModel are the labels of the request's metrics.
	Model, TargetModel string
	// TierName names its tier; a name that does not exist is the lowest one. Empty: Tier is its rank, 0 the highest, and
	// a rank that does not exist is the lowest. A name stays right when a reload changes the ranks.
	TierName string
	Tier     int
	// Cost is the work it stands for in the queue, at least 1; 0 counts as 1.
	Cost fairqueue.Cost
	// Deadline is the client's own (from the stream or a deadline header); zero: none.
	Deadline time.Time
	// Placement is what the Placer needs to know of the request, computed before the lock.
	Placement Placement
	// OnQueued is called at most once, in the caller's goroutine and outside the lock, before it waits in the queue,
	// with the longest time that it may wait there. The stream uses it to tell Envoy that this will take longer.
	OnQueued func(maxWait time.Duration)
}

type (
	// Placement is a request's constraint on endpoints; see dispatch.Placement.
	Placement = dispatch.Placement
	// Endpoint is an endpoint's number; see dispatch.Endpoint.
	Endpoint = dispatch.Endpoint
	// Bound says which bound a placement has to respect; see dispatch.Bound.
	Bound = dispatch.Bound
	// EndpointSet is a set of endpoints; see dispatch.EndpointSet.
	EndpointSet = dispatch.EndpointSet
	// Reservation is what a placement holds; see dispatch.Reservation.
	Reservation = dispatch.Reservation
	// Placer picks endpoints; see dispatch.Placer.
	Placer = dispatch.Placer
	// Reacher is a Placer that knows lanes' endpoints; see dispatch.Reacher.
	Reacher = dispatch.Reacher
)

// NoEndpoint is the Endpoint of a request that is not placed.
const NoEndpoint = dispatch.NoEndpoint

// The bounds that a placement has to respect; see dispatch.Bound.
const (
	BelowLower = dispatch.BelowLower
	BelowUpper = dispatch.BelowUpper
	Unbounded  = dispatch.Unbounded
)

// Completion is what is known of a request when its stream has ended.
type Completion struct {
	// Status is the HTTP status of the model server's answer; 0 when no response headers were seen.
	Status int
	// Unsent reports that the destination could not be sent, since the client or its proxy had just gone: the request
	// ends as cancelled, not as dispatched.
	Unsent bool
}
