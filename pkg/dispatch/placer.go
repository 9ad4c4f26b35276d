package dispatch

import "github.com/weir-epp/weir/pkg/scheduling"

// Placement is a request's constraint on endpoints. The machine knows only its lane.
type Placement interface {
	// Lane names the set of endpoints that the request may use; "" is the whole pool. Equal names mean equal sets.
	Lane() string
}

// Endpoint is an endpoint's number, which the Placer understands.
type Endpoint = scheduling.EndpointID

// NoEndpoint is the Endpoint of a request that is not placed.
const NoEndpoint = scheduling.NoEndpoint

// Bound says which bound of the hysteresis band a placement has to respect within its lane: that for releases from the
// queue, that for a bypass or a starved head, or none, for what is passed on without queueing.
type Bound = scheduling.Bound

// EndpointSet is a set of endpoints, which the machine keeps for each flow that is at its cap somewhere.
type EndpointSet = scheduling.EndpointSet

// Reservation is what a placement holds at the Placer; Empty: nothing.
type Reservation = scheduling.Reservation

// The bounds.
const (
	BelowLower = scheduling.BelowLower
	BelowUpper = scheduling.BelowUpper
	Unbounded  = scheduling.Unbounded
)

// Placer picks an endpoint and reserves it in one step. Every method is called under the lock of the machine's owner, so
// it must be quick (at most 2 µs for 100 endpoints) and must not block, log or call back.
type Placer interface {
	// Place picks the best endpoint for p that is not in except, which may be nil, and reserves it. The reservation is
	// empty when none can take p now: no ready one, or the stock of p's lane is not below the bound. A lane of stock 0
	// with a ready endpoint can always be placed (work conservation).
	Place(p Placement, bound Bound, except *EndpointSet) Reservation
	// HasRoom reports whether Place would find an endpoint. Like every question it changes nothing.
	HasRoom(p Placement, bound Bound, except *EndpointSet) bool
	// PlaceAt reserves e for p; it is called only after CanServe(p, e) or CanTakeOver. A preemptor takes its victim's
	// endpoint so.
	PlaceAt(p Placement, e Endpoint) Reservation
	// Release gives back a reservation, whose endpoints may have left the pool meanwhile.
	Release(r *Reservation)
	// HasReady reports whether p's lane has a ready endpoint that is not in except.
	HasReady(p Placement, except *EndpointSet) bool
	// Meets reports whether p's lane has a ready endpoint that is in the set.
	Meets(p Placement, set *EndpointSet) bool
	// CanServe reports whether e is ready and in p's lane.
	CanServe(p Placement, e Endpoint) bool
	// CanTakeOver reports whether p could be placed at e if one lease there ended: CanServe, and the lane then below its
	// upper bound, which is the same for every endpoint of the lane.
	CanTakeOver(p Placement, e Endpoint) bool
}

// Reacher is a Placer that can say which endpoints a lane has. With one that cannot, whatever happens at any endpoint is
// taken to concern every lane.
type Reacher interface {
	// Reach appends to some the ready endpoints of p's lane; whole: it has every one of the pool, and appends none.
	Reach(p Placement, some []Endpoint) (ready []Endpoint, whole bool)
}
