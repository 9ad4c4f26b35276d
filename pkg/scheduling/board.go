package scheduling

import (
	"math/rand/v2"
	"slices"
)

// Bound is a bound of the hysteresis band that a placement has to respect within its lane.
type Bound uint8

const (
	// BelowLower is for a release from the queue.
	BelowLower Bound = iota
	// BelowUpper is for a bypass or a starved head.
	BelowUpper
	// Unbounded asks only for a ready endpoint: for what is passed on without queueing.
	Unbounded
)

// Board is Weir's own count of what is in flight at each endpoint, and the place where endpoints are picked. It is
// not safe for concurrent use: the caller's lock guards it, and every Query, EndpointSet and Reservation passed to it.
type Board struct {
	scheduler *Scheduler
	random    *rand.Rand

	snap       *Snapshot
	ring       *ring              // of snap, or of an older snapshot of the same endpoints
	spots      []spot             // by position
	before     []spot             // memory for the next pool's
	gone       map[EndpointID]int // counts above 0 of endpoints that left the pool
	last       EndpointID         // the last one picked: rotation goes on after it
	total      int                // sum of all counts
	readyStock int64              // sum of those of the ready endpoints

	// What is kept of totals, so that nobody has to look at all of them.
	pool    tournament // of all endpoints, by position
	log     [changeLog]int32
	changes uint64 // how many have been logged
	lanes   map[laneKey]*laneState
	spare   []*laneState

	field field // of the pick at hand
}

// NewBoard returns a board of an empty pool. The random source is used for tie-break random only; without that it may
// be nil.
func NewBoard(s *Scheduler, random *rand.Rand) *Board {
	b := &Board{
		random: random, snap: NewSnapshot(0, nil), gone: map[EndpointID]int{}, last: NoEndpoint,
		lanes: map[laneKey]*laneState{},
	}
	b.ring = b.snap.ring
	b.SetScheduler(s)
	return b
}

// SetScheduler changes how endpoints are chosen from now on. Requests that wait are filtered anew; their lanes keep
// their names.
func (b *Board) SetScheduler(s *Scheduler) {
	if s.config.TieBreak == TieRandom && b.random == nil {
		panic("scheduling: tie-break random needs a random source")
	}
	b.scheduler = s
	b.forgetLanes()
	for p := range b.spots {
		b.spots[p].rate(s.live)
	}
	b.seatAll()
}

// lot returns the random source if ties are broken by it.
func (b *Board) lot() *rand.Rand {
	if b.scheduler.config.TieBreak != TieRandom {
		return nil
	}
	return b.random
}

// SetSnapshot changes the pool. Counts stay with their endpoints, those that leave included, and so do the signals of
// those that stay. Of endpoints that are the same as before it costs little more than to see that they are.
func (b *Board) SetSnapshot(next *Snapshot) {
	b.forgetLanes()
	if !slices.Equal(next.ring.ids, b.ring.ids) {
		b.resettle(next)
		return
	}
	b.snap = next
	for p := range b.spots {
		if s := &b.spots[p]; s.vital != next.vitals[p] {
			b.readyStock -= s.readyStock()
			s.vital = next.vitals[p]
			b.readyStock += s.readyStock()
			b.changed(int32(p))
		}
	}
}

// resettle is SetSnapshot for a pool of other endpoints.
func (b *Board) resettle(next *Snapshot) {
	spots := resized(b.before, next.Len())
	old := 0
	leave := func() {
		if n := b.spots[old].inFlight; n > 0 {
			b.gone[b.ring.ids[old]] = int(n)
		}
		old++
	}
	b.readyStock = 0
	for p, id := range next.ring.ids {
		for old < len(b.spots) && b.ring.ids[old] < id {
			leave()
		}
		s := &spots[p]
		if old < len(b.spots) && b.ring.ids[old] == id {
			*s = b.spots[old]
			old++
		} else if n := b.gone[id]; n > 0 {
			*s = spot{inFlight: int32(n)}
			delete(b.gone, id)
		} else {
			*s = spot{}
		}
		if s.vital != next.vitals[p] {
			s.vital = next.vitals[p]
			s.rate(b.scheduler.live)
		}
		b.readyStock += s.readyStock()
	}
	for old < len(b.spots) {
		leave()
	}
	b.snap, b.ring, b.spots, b.before = next, next.ring, spots, b.spots
	b.seatAll()
}

// seatAll starts the pool's tournament anew.
func (b *Board) seatAll() {
	b.pool.enter(len(b.spots), b.lot() != nil)
	for p := range b.spots {
		b.pool.seat(p, b.spots[p].leaf())
	}
	b.pool.play()
}

// changed renews what is known of an endpoint after its count, its signals or what the snapshot says of it changed.
func (b *Board) changed(p int32) {
	s := &b.spots[p]
	s.rate(b.scheduler.live)
	b.pool.set(int(p), s.leaf())
	b.log[b.changes%changeLog] = p
	b.changes++
}

// count changes what is in flight at an endpoint of the pool.
func (b *Board) count(p, by int32) {
	s := &b.spots[p]
	s.inFlight += by
	if s.ready {
		b.readyStock += int64(by)
	}
	b.changed(p)
}

// Snapshot is the pool that the board works on.
func (b *Board) Snapshot() *Snapshot { return b.snap }

// Stock is what is in flight at the endpoint, in the pool or not.
func (b *Board) Stock(id EndpointID) int {
	if p, ok := b.ring.position(id); ok {
		return int(b.spots[p].inFlight)
	}
	return b.gone[id]
}

// InFlight appends what is in flight at each endpoint of the snapshot, in its order.
func (b *Board) InFlight(counts []int) []int {
	for p := range b.spots {
		counts = append(counts, int(b.spots[p].inFlight))
	}
	return counts
}

// Total is what is in flight at all endpoints, those that left included: the reservations not yet released.
func (b *Board) Total() int { return b.total }

// HasReady reports whether the request's lane has a ready endpoint that is not in except, which may be nil.
func (b *Board) HasReady(q *Query, except *EndpointSet) bool {
	b.refresh(q)
	return q.reach.hasBeside(except.on(b.ring))
}

// Meets reports whether a ready endpoint of the request's lane is in the set.
func (b *Board) Meets(q *Query, set *EndpointSet) bool {
	b.refresh(q)
	return q.reach.meets(set.on(b.ring))
}

// CanServe reports whether the endpoint is ready and in the request's lane. It does not look at counts.
func (b *Board) CanServe(q *Query, id EndpointID) bool {
	b.refresh(q)
	p, ok := b.ring.position(id)
	return ok && q.reach.has(p)
}

// CanTakeOver reports whether the request could have the place of one that is counted at the endpoint: the endpoint is
// ready and in its lane, and the lane is below its upper bound without that one.
func (b *Board) CanTakeOver(q *Query, id EndpointID) bool {
	return b.CanServe(q, id) && b.laneHasRoomFor(q, BelowUpper, -1)
}

// Reach appends to some the ready endpoints of the request's lane; whole: it has every ready one, and appends none.
func (b *Board) Reach(q *Query, some []EndpointID) (ready []EndpointID, whole bool) {
	b.refresh(q)
	if q.reach.whole {
		return some, true
	}
	for _, p := range q.reach.ready {
		some = append(some, b.ring.ids[p])
	}
	return some, false
}

// refresh brings a request up to the board's pool and scheduler.
func (b *Board) refresh(q *Query) {
	if q.snap != b.snap || q.scheduler != b.scheduler {
		q.renew(b.scheduler, b.snap)
	}
}
