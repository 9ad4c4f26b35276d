package scheduling

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// Bound says which bound of the hysteresis band a placement has to respect within its lane.
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
// not safe for concurrent use: the caller's lock guards it, and every Query passed to it.
type Board struct {
	scheduler *Scheduler
	random    *rand.Rand

	snap  *Snapshot
	spots []spot             // by position in snap
	gone  map[EndpointID]int // counts above 0 of endpoints that left the pool
	last  EndpointID         // the last one picked: rotation goes on after it
	total int                // sum of all counts
}

// spot is one endpoint's live state.
type spot struct {
	inFlight int
	limit    int   // MaxInFlight, or the largest int
	total    Total // the live scorers' sum; renewed when inFlight changes
}

// NewBoard returns a board of an empty pool. The random source is used for tie-break random only; without that it may
// be nil.
func NewBoard(s *Scheduler, random *rand.Rand) *Board {
	b := &Board{random: random, snap: NewSnapshot(0, nil), gone: map[EndpointID]int{}, last: NoEndpoint}
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
	for p := range b.spots {
		b.rate(int32(p))
	}
}

// SetSnapshot changes the pool. Counts stay with their endpoints, those that leave included.
func (b *Board) SetSnapshot(snap *Snapshot) {
	for p, old := range b.spots {
		if old.inFlight > 0 {
			b.gone[b.snap.members[p].ID] = old.inFlight
		}
	}
	b.snap = snap
	b.spots = make([]spot, snap.Len())
	for p := range b.spots {
		m := &snap.members[p]
		b.spots[p] = spot{inFlight: b.gone[m.ID], limit: limitOf(&m.Endpoint)}
		delete(b.gone, m.ID)
		b.rate(int32(p))
	}
}

func limitOf(e *Endpoint) int {
	if e.MaxInFlight == 0 {
		return int(^uint(0) >> 1)
	}
	return e.MaxInFlight
}

// Snapshot is the pool that the board works on.
func (b *Board) Snapshot() *Snapshot { return b.snap }

// Stock is what is in flight at the endpoint, in the pool or not.
func (b *Board) Stock(id EndpointID) int {
	if p, ok := b.snap.position(id); ok {
		return b.spots[p].inFlight
	}
	return b.gone[id]
}

// InFlight appends what is in flight at each endpoint of the snapshot, in its order.
func (b *Board) InFlight(counts []int) []int {
	for p := range b.spots {
		counts = append(counts, b.spots[p].inFlight)
	}
	return counts
}

// Total is what is in flight at all endpoints, those that left included: the reservations not yet released.
func (b *Board) Total() int { return b.total }

// Release gives back one reservation at the endpoint, which may have left the pool meanwhile. One that was never
// made is a broken contract and panics.
func (b *Board) Release(id EndpointID) {
	p, ok := b.snap.position(id)
	switch {
	case ok && b.spots[p].inFlight > 0:
		b.spots[p].inFlight--
		b.rate(p)
	case !ok && b.gone[id] > 1:
		b.gone[id]--
	case !ok && b.gone[id] == 1:
		delete(b.gone, id)
	default:
		panic(fmt.Sprintf("scheduling: nothing is in flight at endpoint %d", id))
	}
	b.total--
}

// HasReady says whether the request's lane has a ready endpoint.
func (b *Board) HasReady(q *Query) bool { return b.HasReadyExcept(q, nil) }

// HasReadyExcept says whether the lane has a ready endpoint that is not in except.
func (b *Board) HasReadyExcept(q *Query, except []EndpointID) bool {
	b.refresh(q)
	if len(except) == 0 {
		return len(q.reach.ready) > 0
	}
	return slices.ContainsFunc(q.reach.ready, func(p int32) bool { return !slices.Contains(except, b.snap.members[p].ID) })
}

// CanServe says whether the endpoint is ready and in the request's lane. It does not look at counts.
func (b *Board) CanServe(q *Query, id EndpointID) bool {
	b.refresh(q)
	_, ok := q.reach.readyAt(b.snap, id)
	return ok
}

// CanTakeOver says whether the request could have the place of one that is counted at the endpoint: the endpoint is
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
		some = append(some, b.snap.members[p].ID)
	}
	return some, false
}

func (b *Board) reserve(p int32) {
	b.spots[p].inFlight++
	b.total++
	b.rate(p)
}

// rate renews an endpoint's total after its count or the scorers changed.
func (b *Board) rate(p int32) {
	s := &b.spots[p]
	s.total = 0
	for _, w := range b.scheduler.live {
		s.total += w.of(w.live(&b.snap.members[p].Endpoint, s.inFlight))
	}
}

// refresh brings a request up to the board's pool and scheduler.
func (b *Board) refresh(q *Query) {
	if q.snap != b.snap || q.scheduler != b.scheduler {
		q.renew(b.scheduler, b.snap)
	}
}
