package scheduling

import "slices"

// MostViewed is the largest number of endpoints in a view.
const MostViewed = 32

// View is a copy of a board's comparison for a placement, before it counted the request: of each endpoint, or in a
// larger pool of MostViewed endpoints, those in the request's ratings first. Only the copy is made under the lock of
// the board's owner; explaining needs no lock.
type View struct {
	query     *Query
	snap      *Snapshot
	scheduler *Scheduler
	lane      string
	stock     sums
	room      [2]bool // below the lower, and below the upper bound
	spots     []viewed
	seen      []uint64 // positions of spots, in a larger pool
}

// viewed is one endpoint in a view.
type viewed struct {
	spot
	position int32
	loading  int64 // see Candidate.Loading
	loaded   bool  // the request's model is loaded; known only with points
	excepted bool  // excluded by the placement's caller
}

// Watch makes boards keep a view of each placement of the request, for Explained. It must be called before the request
// is offered to a board.
func (q *Query) Watch() {
	q.view = &View{query: q, spots: make([]viewed, 0, MostViewed)}
}

// Explained explains the request's placement, or the last failed attempt; nil without Watch, or if no board has tried.
// Like Chosen it may be called without the lock once the request cannot be placed again; it drops the view.
func (q *Query) Explained() *Decision {
	v := q.view
	if q.view = nil; v == nil || v.snap == nil {
		return nil
	}
	d := v.decision()
	return &d
}

// keep copies the board's state to a view. chosen is the endpoint about to get the request, or -1; without has the
// positions excluded by its caller; nil: none.
func (b *Board) keep(v *View, chosen int32, without []uint64) {
	q := v.query
	v.snap, v.scheduler, v.lane = b.snap, b.scheduler, q.lane
	v.stock = b.laneSums(q)
	v.room = [2]bool{b.laneHasRoomFor(q, BelowLower, 0), b.laneHasRoomFor(q, BelowUpper, 0)}
	if v.spots = v.spots[:0]; len(b.spots) <= cap(v.spots) {
		for p := range b.spots {
			b.see(v, int32(p), without)
		}
		return
	}
	v.seen = resized(v.seen, wordsFor(len(b.spots)))
	clear(v.seen)
	if chosen >= 0 {
		b.see(v, chosen, without)
	}
	if r := q.ratings; r != nil {
		for _, c := range r.Above {
			if p, ok := b.ring.position(c.ID); ok {
				b.see(v, p, without)
			}
		}
	}
	for _, list := range [...][]int32{q.reach.ready, q.reach.all} {
		for i := 0; i < len(list) && len(v.spots) < cap(v.spots); i++ {
			b.see(v, list[i], without)
		}
	}
}

// see adds an endpoint to a view with room, unless the view has it.
func (b *Board) see(v *View, p int32, without []uint64) {
	if len(b.spots) > cap(v.spots) {
		if len(v.spots) == cap(v.spots) || in(v.seen, p) {
			return
		}
		v.seen[p/64] |= 1 << (p % 64)
	}
	v.spots = v.spots[:len(v.spots)+1]
	s, q := &v.spots[len(v.spots)-1], v.query
	*s = viewed{spot: b.spots[p], position: p, excepted: in(without, p)}
	if q.adapter {
		s.loading = b.adapters.loading(q.model, b.ring.ids[p])
	}
	if _, points := b.scheduler.by.bonus(); points {
		s.loaded = b.modelAt(q, p)
	}
}

// modelAt reports whether the request's model is assumed to be loaded at a position.
func (b *Board) modelAt(q *Query, p int32) bool {
	f := field{ring: b.ring, unloaded: b.unloaded[q.model].on(b.ring)}
	if q.adapter {
		f.adapter, f.holders = q.model, b.adapters.at[q.model]
	}
	return f.loadedAt(p)
}

// decision explains the view.
func (v *View) decision() Decision {
	slices.SortFunc(v.spots, func(a, b viewed) int { return int(a.position) - int(b.position) })
	d := Decision{
		Version: v.snap.Version(), Lane: v.lane, Stock: int(v.stock.held),
		LowerBound: float64(v.stock.bounds.lower) / Millionths, UpperBound: float64(v.stock.bounds.upper) / Millionths,
		BelowLower: v.room[0], BelowUpper: v.room[1],
		Policy: v.scheduler.config.Policy, More: v.snap.Len() - len(v.spots),
		Candidates: make([]Candidate, 0, len(v.spots)),
	}
	q := v.query
	d.Chosen, d.Fallbacks = q.Chosen()
	_, d.Prefill = q.Prefill()
	if r := q.ratings; r != nil && r.Prompt > 0 {
		d.Prompt, d.Similar = r.Prompt, len(r.Near) > 0
	}
	d.Adapter = q.adapter
	for i := range v.spots {
		d.Candidates = append(d.Candidates, v.candidate(&v.spots[i]))
	}
	return d
}
