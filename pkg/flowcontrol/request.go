package flowcontrol

import (
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// Request is what the controller is told of one request. The caller fills it, passes it to TryEnqueue once, and
// leaves it alone until TryEnqueue has returned.
type Request struct {
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

// Placement is a request's constraint on endpoints. The controller knows only its lane.
type Placement interface {
	// Lane names the set of endpoints that the request may use; "" is the whole pool. Equal names mean equal sets.
	Lane() string
}

// Endpoint is a placed endpoint: an opaque number that the Placer understands. NoEndpoint is none.
type Endpoint int32

// NoEndpoint is the Endpoint of a request that is not placed.
const NoEndpoint Endpoint = -1

// Bound says which bound of the hysteresis band a placement has to respect within its lane.
type Bound uint8

const (
	// BelowLower is for releases from the queue: the lane's stock is below the lower bound of its ready backends.
	BelowLower Bound = iota
	// BelowUpper is for a bypass or a starved head: the lane's stock is below the upper bound.
	BelowUpper
	// Unbounded is for what is passed on without queueing: a ready endpoint is enough.
	Unbounded
)

// Placer picks an endpoint and reserves it in one step. Every method is called under the controller's lock, so it
// must be quick (at most 2 µs for 100 endpoints) and must not block, log or call back.
type Placer interface {
	// Place picks the best endpoint for p that is not in except and reserves it, or returns NoEndpoint when none can
	// take it now: no ready one, or the stock of p's lane is not below the bound. A lane of stock 0 with a ready
	// endpoint can always be placed (work conservation).
	Place(p Placement, bound Bound, except []Endpoint) Endpoint
	// HasRoom says whether Place, with nothing in except, would find an endpoint.
	HasRoom(p Placement, bound Bound) bool
	// PlaceAt reserves e for p; it is called only after CanServe(p, e) or CanTakeOver. A preemptor takes its victim's endpoint so.
	PlaceAt(p Placement, e Endpoint)
	// Release gives back one reservation on e, which may have left the pool meanwhile.
	Release(e Endpoint)
	// HasReady says whether p's lane has a ready endpoint that is not in except.
	HasReady(p Placement, except []Endpoint) bool
	// CanServe says whether e is ready and in p's lane.
	CanServe(p Placement, e Endpoint) bool
	// CanTakeOver says whether p could be placed at e if one lease there ended: CanServe, and the lane then below its
	// upper bound, which is the same for every endpoint of the lane.
	CanTakeOver(p Placement, e Endpoint) bool
}

// Reacher is a Placer that can say which endpoints a lane has. With one that cannot, whatever happens at any endpoint is
// taken to concern every lane.
type Reacher interface {
	// Reach appends to some the ready endpoints of p's lane; whole: it has every one of the pool, and appends none.
	Reach(p Placement, some []Endpoint) (ready []Endpoint, whole bool)
}

// Completion is what is known of a request when its stream has ended.
type Completion struct {
	// Status is the HTTP status of the model server's answer; 0 when no response headers were seen.
	Status int
	// Unsent says that the destination could not be sent, since the client or its proxy had just gone: the request
	// ends as cancelled, not as dispatched.
	Unsent bool
}
