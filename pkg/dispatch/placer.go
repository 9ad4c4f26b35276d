package dispatch

import (
	"time"

	"github.com/weir-epp/weir/pkg/scheduling"
)

// Placement is a request's constraint on endpoints. Only the Placer looks into it.
type Placement = any

// Endpoint is an endpoint's number at the Placer.
type Endpoint = scheduling.EndpointID

// NoEndpoint is the Endpoint of a request that is not placed.
const NoEndpoint = scheduling.NoEndpoint

// Bound is the bound of the hysteresis band that a placement must respect within its lane: the one for releases from
// the queue, the one for a bypass or a starved head, or none: only endpoints' own limits, or, for requests that are passed
// on without queueing, not even those in tokens.
type Bound = scheduling.Bound

// EndpointSet is a set of endpoints. The machine keeps one for each tenant that is at its cap at some endpoint.
type EndpointSet = scheduling.EndpointSet

// Reservation is what a placement holds at the Placer: an endpoint, and the prefill engine that reads the prompt for it, if
// any; it may be empty.
type Reservation = scheduling.Reservation

// The bounds.
const (
	BelowLower = scheduling.BelowLower
	BelowUpper = scheduling.BelowUpper
	Unbounded  = scheduling.Unbounded
	AnyReady   = scheduling.AnyReady
)

// Regrouping is how lanes have become others.
type Regrouping = scheduling.Regrouping

// Signals are what an engine reports of itself.
type Signals = scheduling.Signals

// Placer picks an endpoint and reserves it in one step. Its methods are called under the lock of the machine's owner,
// so they must be quick (at most 2 µs for 100 endpoints) and must not block, log or call back.
type Placer interface {
	// Place picks the best endpoint for p that is not in except, which may be nil, and reserves it. The reservation is
	// empty if none can take p now: none is ready, or the stock of p's lane is not below the bound. A lane with a ready
	// endpoint and stock 0 can always be placed (work conservation).
	Place(p Placement, bound Bound, except *EndpointSet) Reservation
	// Regret returns how many more tokens of p's prompt would have to be read where Place would put it than where the most of it
	// is cached; 0 if nothing is known of it. ok is false if Place would find no endpoint.
	Regret(p Placement, bound Bound, except *EndpointSet) (tokens int64, ok bool)
	// HasRoom reports whether Place would find an endpoint. Like all queries it changes nothing.
	HasRoom(p Placement, bound Bound, except *EndpointSet) bool
	// PlaceAt reserves e for p. It is called only after CanServe(p, e) or CanTakeOver. A preemptor takes over its
	// victim's endpoint with it.
	PlaceAt(p Placement, e Endpoint) Reservation
	// Release releases a reservation of p's, whose endpoints may have left the pool meanwhile.
	Release(p Placement, r *Reservation)
	// Read means that the first token has come, so that the endpoint of a reservation has read the prompt. Only the first call has
	// an effect, and none while there are busy rules.
	Read(r *Reservation)
	// HasReady reports whether p's lane has a ready endpoint that is not in except.
	HasReady(p Placement, except *EndpointSet) bool
	// Known returns the number of endpoints of the pool, ready or not, that serve p's model, whatever the subset of p.
	Known(p Placement) int
	// SetBusyRules sets the rules by which Busy goes, by number. While there are any, the tokens of the prompts of the requests
	// that are placed count at their endpoints until PromptRead or Release.
	SetBusyRules(rules []scheduling.BusyRule)
	// Busy reports whether the ready endpoints of p's lane are too busy reading prompts, by the rule of a number.
	Busy(p Placement, rule int) bool
	// TakeTurned appends to some the endpoints that have become busy, by any rule, or are so no longer, since the last call.
	TakeTurned(some []Endpoint) []Endpoint
	// PromptRead notes that the endpoint of a reservation has read the prompt.
	PromptRead(r *Reservation)
	// Meets reports whether p's lane has a ready endpoint that is in the set.
	Meets(p Placement, set *EndpointSet) bool
	// CanServe reports whether e is ready and in p's lane.
	CanServe(p Placement, e Endpoint) bool
	// CanTakeOver reports whether p could be placed at e if one lease there ended: CanServe holds, and p's lane would
	// be below its upper bound. The latter is the same for every endpoint of the lane.
	CanTakeOver(p Placement, e Endpoint) bool

	// Lane returns the name of p's lane, the set of endpoints that it may use, on the present endpoints: "" is the whole
	// pool, and equal names mean equal sets.
	Lane(p Placement) string
	// Reach appends to some the endpoints of p's lane, ready or not, ascending; it may append a few more. If the lane has
	// every ready endpoint of the pool, it appends none and whole is true.
	Reach(p Placement, some []Endpoint) (endpoints []Endpoint, whole bool)
	// Traits appends to some the traits of which an endpoint must have one to be in p's lane, and TraitsOf those that an
	// endpoint has; known is false if it is not in the pool.
	Traits(p Placement, some []scheduling.Trait) []scheduling.Trait
	TraitsOf(e Endpoint, some []scheduling.Trait) (traits []scheduling.Trait, known bool)
	// TakeChanges appends to some the endpoints that have joined, left or changed since the last call, apart from what
	// lies in their counts and bounds; all means that any may have.
	TakeChanges(some []Endpoint) (changed []Endpoint, all bool)
	// TakeRegrouping returns how lanes have become others since the last call; nil if each goes on as it was.
	TakeRegrouping() *Regrouping

	// SetBounds sets a ready endpoint's share of the band, in millionths of a request, and SetTokenBounds the bounds of the
	// tokens there, 0 for none; both report whether the endpoint is in the pool. While those there have fewer tokens than
	// the upper bound, an endpoint takes another request of any size.
	SetBounds(e Endpoint, lower, upper int64) bool
	SetTokenBounds(e Endpoint, lower, upper int64) bool
	// SetForeign sets the number of requests of others at a ready endpoint, and their tokens, and reports whether it is
	// ready. They count until it is not ready any more.
	SetForeign(e Endpoint, requests int, tokens int64) bool
	// AddTokens changes the tokens of leases at an endpoint, which may have left the pool.
	AddTokens(e Endpoint, by int64)
	// BelowTokens reports whether a ready endpoint is below its own bound in tokens.
	BelowTokens(bound Bound) bool
	// TakesTokens reports whether an endpoint would take another request if there were so many more tokens, or fewer.
	TakesTokens(e Endpoint, change int64) bool
	// SetSignals sets the signals of one endpoint's engine, and reports whether the endpoint is in the pool.
	SetSignals(e Endpoint, s Signals) bool
	// Times reports whether Completed is to be called; it changes only with the configuration (Configure). Completed tells how
	// long an engine took to answer a request, and the real cost of the request; 0: unknown.
	Times() bool
	Completed(e Endpoint, took time.Duration, cost int64)
	// Held returns the number of requests at an endpoint of the pool, those of others included.
	Held(e Endpoint) int
}
