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

// Bound is the bound of the hysteresis band for a placement within its lane: the lower one for releases from the queue,
// the upper one for a bypass or a starved head, or none. Without a bound only endpoints' own limits apply, and for
// passed-on requests not even those in tokens.
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

// Regrouping maps former lanes to their present ones.
type Regrouping = scheduling.Regrouping

// Signals are an engine's reports about itself.
type Signals = scheduling.Signals

// Placer picks an endpoint and reserves it in one step. Its methods are called under the lock of the machine's owner,
// so they must be quick (at most 2 µs for 100 endpoints) and must not block, log or call back.
type Placer interface {
	// Place picks the best endpoint for p that is not in except, which may be nil, and reserves it. The reservation is
	// empty if none can take p now: none is ready, or the stock of p's lane is not below the bound. A lane with a ready
	// endpoint and stock 0 can always be placed (work conservation).
	Place(p Placement, bound Bound, except *EndpointSet) Reservation
	// Regret returns how many more prompt tokens the endpoint chosen by Place would read than the endpoint with the
	// most of p's prompt cached; 0 for an unknown prompt. ok is false if Place would find no endpoint.
	Regret(p Placement, bound Bound, except *EndpointSet) (tokens int64, ok bool)
	// HasRoom reports whether Place would find an endpoint. Like all queries it changes nothing.
	HasRoom(p Placement, bound Bound, except *EndpointSet) bool
	// PlaceAt reserves e for p, as for a preemptor at its victim's endpoint. It is called only after CanServe(p, e) or
	// CanTakeOver.
	PlaceAt(p Placement, e Endpoint) Reservation
	// Release releases a reservation of p's, whose endpoints may have left the pool meanwhile.
	Release(p Placement, r *Reservation)
	// HasReady reports whether p's lane has a ready endpoint that is not in except.
	HasReady(p Placement, except *EndpointSet) bool
	// Known returns the number of endpoints of the pool, ready or not, that serve p's model, ignoring p's subset.
	Known(p Placement) int
	// SetBusyRules sets the rules of Busy, by number. With any rule, the prompt tokens of placed requests count at
	// their endpoints until PromptRead or Release.
	SetBusyRules(rules []scheduling.BusyRule)
	// Busy reports whether the ready endpoints of p's lane are too busy reading prompts, by rule number.
	Busy(p Placement, rule int) bool
	// TakeTurned appends to some the endpoints that have become busy or free, by any rule, since the last call.
	TakeTurned(some []Endpoint) []Endpoint
	// PromptRead notes that the endpoint of a reservation has read the prompt. Only the first call has an effect.
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
	// Traits appends to some the traits that admit an endpoint to p's lane: it needs one of them. TraitsOf appends the
	// traits of an endpoint; known is false if it is not in the pool.
	Traits(p Placement, some []scheduling.Trait) []scheduling.Trait
	TraitsOf(e Endpoint, some []scheduling.Trait) (traits []scheduling.Trait, known bool)
	// TakeChanges appends to some the endpoints that have joined, left or changed since the last call, except in counts
	// and bounds; all means that any endpoint may have.
	TakeChanges(some []Endpoint) (changed []Endpoint, all bool)
	// TakeRegrouping returns the regrouping of lanes since the last call; nil if no lane has changed.
	TakeRegrouping() *Regrouping

	// SetBounds sets a ready endpoint's share of the band, in millionths of a request. SetTokenBounds sets its bounds
	// in tokens, 0 for none; below the upper bound the endpoint takes another request of any size. Both report whether
	// the endpoint is in the pool.
	SetBounds(e Endpoint, lower, upper int64) bool
	SetTokenBounds(e Endpoint, lower, upper int64) bool
	// SetForeign sets the number and the tokens of other Weirs' requests at a ready endpoint, and reports whether it is
	// ready. They count until it is no longer ready.
	SetForeign(e Endpoint, requests int, tokens int64) bool
	// AddTokens changes the tokens of leases at an endpoint, which may have left the pool.
	AddTokens(e Endpoint, by int64)
	// BelowTokens reports whether a ready endpoint is below its own bound in tokens.
	BelowTokens(bound Bound) bool
	// TakesTokens reports whether an endpoint would take another request after this change of its tokens.
	TakesTokens(e Endpoint, change int64) bool
	// SetSignals sets the signals of one endpoint's engine, and reports whether the endpoint is in the pool.
	SetSignals(e Endpoint, s Signals) bool
	// Times reports whether the machine must call Completed; it changes only with the configuration (Configure).
	Times() bool
	// Completed passes an engine's time for a request, and the request's real cost; 0: unknown.
	Completed(e Endpoint, took time.Duration, cost int64)
	// Held returns the number of requests at an endpoint of the pool, including other Weirs'.
	Held(e Endpoint) int
}
