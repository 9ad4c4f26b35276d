package scheduling

import (
	"math/rand/v2"
	"slices"
)

// Bound is a bound of the hysteresis band that a placement must respect within its lane.
type Bound uint8

const (
	// BelowLower is for a release from the queue.
	BelowLower Bound = iota
	// BelowUpper is for a bypass or a starved head.
	BelowUpper
	// Unbounded only requires an endpoint below its own limits and its bound in tokens. Endpoints below their upper
	// bound in requests come first.
	Unbounded
	// AnyReady only requires a ready endpoint below its MaxInFlight, even if all are full: it is for passed-on
	// requests. Endpoints that are not full come first, and those full by tokens last.
	AnyReady
)

// Board counts what Weir has in flight at each endpoint, and picks endpoints. It is not safe for concurrent use: the
// caller's lock guards it, and every Query, EndpointSet and Reservation passed to it.
type Board struct {
	scheduler *Scheduler
	random    *rand.Rand

	snap    *Snapshot
	ring    *ring               // of snap, or of an older snapshot with the same endpoints
	spots   []spot              // by position
	before  []spot              // memory for the next pool's spots
	gone    map[EndpointID]left // the requests in flight at endpoints that left the pool
	last    EndpointID          // the last endpoint picked, after which rotation continues
	reader  EndpointID          // the last prefill engine picked
	total   int                 // sum of all counts
	unread  int64               // sum of the tokens that serving endpoints have to read
	fewest  tournament          // of the endpoints, by position; totals are mostUnread minus the tokens to read
	seated  bool                // fewest is up to date
	ofReady sums                // of the ready endpoints
	below   ends                // those below their bounds in tokens

	adapters adapters
	busy     []busyness   // by number of the rule
	turned   []EndpointID // result of the next TakeTurned
	unloaded unloaded

	// Totals are kept in a structure that is cheaper to query than all spots.
	pool    tournament // of all endpoints, by position
	log     [changeLog]int32
	changes uint64 // number of changes logged
	lanes   map[laneKey]*laneState
	spare   []*laneState

	// Results of the next TakeChanges and TakeRegrouping.
	untaken    []EndpointID
	allChanged bool
	regrouping *Regrouping

	field   field    // of the current pick
	without []uint64 // its exceptions, if more than the caller's
}

// left has the requests in flight at an endpoint that left the pool, at least one.
type left struct {
	inFlight int32
	tokens   int64
	prompts  int64
}

// NewBoard returns a board with an empty pool. The random source is only used for the tie-break random; otherwise it
// may be nil.
func NewBoard(s *Scheduler, random *rand.Rand) *Board {
	b := &Board{
		random: random, snap: NewSnapshot(0, nil), gone: map[EndpointID]left{}, last: NoEndpoint, reader: NoEndpoint,
		lanes: map[laneKey]*laneState{},
	}
	b.ring = b.snap.ring
	b.SetScheduler(s)
	return b
}

// SetScheduler replaces the scheduler. Waiting requests are filtered again, so their lanes may change.
func (b *Board) SetScheduler(s *Scheduler) {
	if s.config.TieBreak == TieRandom && b.random == nil {
		panic("scheduling: tie-break random needs a random source")
	}
	if was := b.scheduler; was != nil && (was.filtersModel != s.filtersModel || was.filtersSubset != s.filtersSubset ||
		was.config.PrefillThreshold != s.config.PrefillThreshold) {
		b.regrouping = &Regrouping{all: true}
	}
	b.scheduler = s
	b.noteChanges(nil, true)
	b.forgetLanes()
	for p := range b.spots {
		b.spots[p].rate(s.by)
	}
	b.seatAll()
}

// lot returns the random source if ties are broken at random, else nil.
func (b *Board) lot() *rand.Rand {
	if b.scheduler.config.TieBreak != TieRandom {
		return nil
	}
	return b.random
}

// SetSnapshot changes the pool. All endpoints keep their counts, even departed ones; remaining endpoints keep their
// bounds and signals, and new ones have bounds of 0 until SetBounds. An unchanged endpoint costs little more than a
// comparison.
func (b *Board) SetSnapshot(next *Snapshot) {
	b.forgetLanes()
	changed, many := next.changesSince(b.snap)
	b.noteChanges(changed, many)
	b.regrouping = b.regrouping.And(next.regroupingSince(b.snap))
	switch {
	case next.ring != b.ring && !slices.Equal(next.ring.ids, b.ring.ids):
		b.replacePool(next)
	case many:
		b.snap = next
		for p := range next.vitals {
			b.revise(int32(p))
		}
	default:
		b.snap = next
		for _, id := range changed {
			p, _ := b.ring.position(id)
			b.revise(p)
		}
	}
	b.forgetAdapters()
}

// revise brings a spot up to the snapshot.
func (b *Board) revise(p int32) {
	s, v := &b.spots[p], b.snap.vitals[p]
	if s.vital == v {
		return
	}
	b.ofReady.subtract(s)
	b.below.count(s, -1)
	s.become(v)
	b.ofReady.add(s)
	b.below.count(s, 1)
	b.noteBusy(p)
	b.changed(p)
}

// SetBounds sets a ready endpoint's share of a lane's hysteresis band, in millionths of a request; with 0 a lane can
// have one request in flight at a time. An upper bound above 0, rounded up, also caps the requests placed there. It
// reports whether the endpoint is in the pool. Bounds below 0 count as 0.
func (b *Board) SetBounds(id EndpointID, lower, upper int64) bool {
	p, ok := b.ring.position(id)
	if !ok {
		return false
	}
	lower, upper = max(0, min(lower, maxBound)), max(0, min(upper, maxBound))
	if s := &b.spots[p]; s.lower != lower || s.upper != upper {
		b.forgetLanes() // they have its old bounds in their sums
		b.ofReady.subtract(s)
		s.bound(lower, upper)
		b.ofReady.add(s)
		b.changed(p)
	}
	return true
}

// SetForeign sets the number, at most maxForeign, and the tokens of other Weirs' requests at a ready endpoint. They
// count like Weir's own, but are never released here; they are kept while the endpoint stays ready. It reports whether
// the endpoint is ready.
func (b *Board) SetForeign(id EndpointID, requests int, theirs int64) bool {
	p, ok := b.ring.position(id)
	if !ok || !b.spots[p].ready {
		return false
	}
	foreign := int32(max(0, min(requests, maxForeign)))
	if s := &b.spots[p]; s.foreign != foreign || s.tokens.foreign != theirs {
		b.ofReady.recount(s, s.held(), s.inFlight+foreign)
		s.foreign = foreign
		b.changeTokens(p, func(t *tokens) { t.foreign = theirs })
	}
	return true
}

// replacePool is SetSnapshot for a pool with other endpoints.
func (b *Board) replacePool(next *Snapshot) {
	spots := resized(b.before, next.Len())
	old := 0
	leave := func() {
		if s := &b.spots[old]; s.inFlight > 0 {
			b.gone[b.ring.ids[old]] = left{s.inFlight, s.tokens.own, s.prompts}
		}
		b.unloaded.state(b.ring.ids[old], b.spots[old].signals.Unloaded, nil)
		old++
	}
	b.ofReady, b.below = sums{}, ends{}
	for p, id := range next.ring.ids {
		for old < len(b.spots) && b.ring.ids[old] < id {
			leave()
		}
		s := &spots[p]
		if old < len(b.spots) && b.ring.ids[old] == id {
			*s = b.spots[old]
			old++
		} else if g, known := b.gone[id]; known {
			*s = spot{inFlight: g.inFlight, tokens: tokens{own: g.tokens}, prompts: g.prompts}
			delete(b.gone, id)
		} else {
			*s = spot{}
		}
		if s.vital != next.vitals[p] {
			s.become(next.vitals[p])
			s.rate(b.scheduler.by)
		}
		s.adapters = b.adapters.engines[id]
		b.ofReady.add(s)
		b.below.count(s, 1)
	}
	for old < len(b.spots) {
		leave()
	}
	b.snap, b.ring, b.spots, b.before = next, next.ring, spots, b.spots
	b.recountBusy()
	b.seatAll()
}

// seatAll rebuilds the pool's tournament.
func (b *Board) seatAll() {
	b.pool.enter(len(b.spots), b.lot() != nil)
	for p := range b.spots {
		b.pool.seat(p, b.spots[p].leaf())
	}
	b.pool.play()
	b.seated = false
}

// changed updates the values derived from an endpoint's count, its signals or the snapshot.
func (b *Board) changed(p int32) {
	s := &b.spots[p]
	s.rate(b.scheduler.by)
	b.pool.set(int(p), s.leaf())
	b.log[b.changes%changeLog] = p
	b.changes++
}

// count changes the number of requests in flight at an endpoint of the pool.
func (b *Board) count(p, by int32) {
	s := &b.spots[p]
	if s.ready {
		b.ofReady.recount(s, s.held(), s.held()+by)
	}
	s.inFlight += by
	b.changed(p)
}

// Snapshot returns the pool that the board uses.
func (b *Board) Snapshot() *Snapshot { return b.snap }

// Stock returns the number of Weir's own requests in flight at the endpoint, which need not be in the pool.
func (b *Board) Stock(id EndpointID) int {
	if p, ok := b.ring.position(id); ok {
		return int(b.spots[p].inFlight)
	}
	return int(b.gone[id].inFlight)
}

// Held returns the number of requests at an endpoint of the snapshot, including other Weirs'.
func (b *Board) Held(id EndpointID) int {
	if p, ok := b.ring.position(id); ok {
		return int(b.spots[p].held())
	}
	return 0
}

// Share has an endpoint's requests in flight and, if it is ready, other Weirs' requests there and its share of a lane's
// band in millionths of a request.
type Share struct {
	InFlight, Foreign      int
	LowerBound, UpperBound int64
	// Tokens are the tokens of the requests in flight, ForeignTokens those of other Weirs' requests, and TokenBound the
	// upper bound on both together, or 0 if tokens are not bounded.
	Tokens, ForeignTokens, TokenBound int64
	// Unread is the number of prompt tokens that it has yet to read, for requests whose first token will be seen.
	Unread int64
	// Unbounded is true if both bounds in requests are beyond the board's range.
	Unbounded bool
}

// Shares appends the share of each endpoint of the snapshot, in its order.
func (b *Board) Shares(shares []Share) []Share {
	for p := range b.spots {
		shares = append(shares, b.spots[p].share())
	}
	return shares
}

// ShareOf returns the share of one endpoint; known is false if it is not in the snapshot.
func (b *Board) ShareOf(id EndpointID) (share Share, known bool) {
	p, known := b.ring.position(id)
	if !known {
		return Share{}, false
	}
	return b.spots[p].share(), true
}

// Total returns the number of reservations not yet released, including those at endpoints that left the pool.
func (b *Board) Total() int { return b.total }

// HasReady reports whether the request's lane has a ready endpoint that is not in except, which may be nil.
func (b *Board) HasReady(q *Query, except *EndpointSet) bool {
	b.refresh(q)
	return q.reach.hasBeside(except.on(b.ring))
}

// Known returns the number of endpoints of the pool, ready or not, that serve the request's model, ignoring its subset.
func (b *Board) Known(q *Query) int {
	b.refresh(q)
	if !b.scheduler.filtersSubset || !q.confined {
		return len(q.reach.positions)
	}
	anywhere := q.constraint
	anywhere.confined = false
	return len(b.scheduler.reachOf(b.snap, &anywhere).positions)
}

// Meets reports whether a ready endpoint of the request's lane is in the set.
func (b *Board) Meets(q *Query, set *EndpointSet) bool {
	b.refresh(q)
	return q.reach.meets(set.on(b.ring))
}

// CanServe reports whether the endpoint is ready and in the request's lane. It ignores counts.
func (b *Board) CanServe(q *Query, id EndpointID) bool {
	b.refresh(q)
	p, ok := b.ring.position(id)
	return ok && q.reach.has(p)
}

// CanTakeOver reports whether the request could replace another one at the endpoint: the endpoint is ready and in its
// lane, and the lane is below its upper bound without the other request.
func (b *Board) CanTakeOver(q *Query, id EndpointID) bool {
	return b.CanServe(q, id) && b.laneHasRoomFor(q, BelowUpper, 1)
}

// refresh updates a query to the board's snapshot and scheduler.
func (b *Board) refresh(q *Query) {
	if q.snap != b.snap || q.scheduler != b.scheduler {
		q.renew(b.scheduler, b.snap)
	}
}
