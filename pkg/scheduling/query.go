package scheduling

// Query is a request to be placed: its permitted endpoints and, after Board.Place, the chosen one. It belongs to one
// request. Board's methods change it under the caller's lock; Chosen and Destinations may be called without the lock
// once the request cannot be placed again.
type Query struct {
	constraint

	// Derived from the constraint; renewed under the lock if the board's snapshot or scheduler has changed.
	lane      string
	scheduler *Scheduler
	snap      *Snapshot
	reach     *reach

	// The board's state of the lane, if it is large and cached.
	state      *laneState
	stateLives uint64

	// ratings of the prompt, set before the lock; nil: none. They are by ID, so they are valid on any snapshot.
	ratings *Ratings
	// atPrefill are those of the prefill engines.
	atPrefill *Ratings

	// The choice, as positions in placedOn: the chosen endpoint, then the fallbacks.
	placedOn *Snapshot
	chosen   [1 + MaxFallbacks]int32
	nChosen  int
	// prefill is the position of the prefill engine; -1 if there is none.
	prefill int32

	// view is a copy of the board's comparison; nil without Watch.
	view *View `graph:"-"`
}

// renew filters the request against a snapshot.
func (q *Query) renew(s *Scheduler, snap *Snapshot) {
	q.scheduler, q.snap = s, snap
	q.reach, q.lane = s.reachOf(snap, &q.constraint), s.laneName(snap, &q.constraint)
}

// Rate adds the ratings of the request's prompt; nil: none. It must be called before the request is offered to a board,
// whose owner's lock guards the ratings from then on.
func (q *Query) Rate(r *Ratings) {
	if q.ratings = r; r != nil && r.Prompt > 0 && q.scheduler != nil {
		q.uncached = r.uncached(r.Best())
		q.lane = q.scheduler.laneName(q.snap, &q.constraint)
	}
}

// Ratings returns the ratings passed to Rate.
func (q *Query) Ratings() *Ratings { return q.ratings }

// RatePrefill adds the ratings of the prompt at the prefill engines, like Rate.
func (q *Query) RatePrefill(r *Ratings) { q.atPrefill = r }

// AtPrefill returns the ratings passed to RatePrefill.
func (q *Query) AtPrefill() *Ratings { return q.atPrefill }

// Placed returns the chosen endpoint, or NoEndpoint. Like Chosen it may be called without the lock once the request
// cannot be placed again.
func (q *Query) Placed() EndpointID {
	if q.nChosen == 0 {
		return NoEndpoint
	}
	return q.placedOn.ring.ids[q.chosen[0]]
}

// Prefills appends to some the ready prefill engines of the request's lane, ascending, on the snapshot of its
// preparation; none if its prompt is not known to be long.
func (q *Query) Prefills(some []EndpointID) []EndpointID {
	if q.scheduler.isLong(q.snap, &q.constraint) {
		for _, p := range q.reach.prefills {
			if q.snap.vitals[p].reads {
				some = append(some, q.snap.ring.ids[p])
			}
		}
	}
	return some
}

// Prefill returns the chosen prefill engine and its address; NoEndpoint and "" if there is none. Like Chosen it may be
// called without the lock once the request cannot be placed again.
func (q *Query) Prefill() (EndpointID, string) {
	if q.nChosen == 0 || q.prefill < 0 {
		return NoEndpoint, ""
	}
	m := &q.placedOn.members[q.prefill]
	return m.ID, m.Address
}

// Ready appends to some the ready endpoints of the request's lane, ascending, on the snapshot of its preparation.
func (q *Query) Ready(some []EndpointID) []EndpointID {
	for _, p := range q.reach.ready {
		some = append(some, q.snap.ring.ids[p])
	}
	return some
}

// Lane returns the name of the request's lane, on the snapshot of its preparation or last placement; "" is the whole
// pool. On one snapshot equal names mean equal sets. Board.Lane returns the present name.
func (q *Query) Lane() string { return q.lane }

// Chosen returns the address of the chosen endpoint, "" before a placement, and the fallbacks: the next best ready
// endpoints of the lane at that moment, best first, at most Config.Fallbacks.
func (q *Query) Chosen() (address string, fallbacks []string) {
	all := q.Destinations(nil)
	if len(all) == 0 {
		return "", nil
	}
	return all[0], all[1:]
}

// Destinations appends the address of the chosen endpoint and those of the fallbacks to dst, best first.
func (q *Query) Destinations(dst []string) []string {
	for _, p := range q.chosen[:q.nChosen] {
		dst = append(dst, q.placedOn.members[p].Address)
	}
	return dst
}
