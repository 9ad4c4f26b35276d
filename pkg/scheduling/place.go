package scheduling

// Place picks the best endpoint for the request that is not in except, which may be nil, and counts the request there,
// in one step. The reservation is empty if none can take it now: none is ready, all are at their MaxInFlight or in
// except, or the lane (unless it is the whole pool) is not below the bound.
func (b *Board) Place(q *Query, bound Bound, except *EndpointSet) Reservation {
	b.refresh(q)
	q.nChosen, q.prefill = 0, -1
	if !b.laneHasRoomFor(q, bound, 0) {
		if q.view != nil {
			b.keep(q.view, -1, nil)
		}
		return Reservation{}
	}
	without := b.exceptions(q, bound, except)
	p := best(b.fieldOf(q, bound, without, b.start()), b.scheduler.by, b.lot())
	if q.view != nil {
		b.keep(q.view, p, without)
	}
	if p < 0 {
		return Reservation{}
	}
	r := b.choose(q, p)
	b.addPrefill(q, &r, bound)
	b.startReading(q, &r)
	return r
}

// HasRoom reports whether Place would find an endpoint. It changes nothing and draws no random number.
func (b *Board) HasRoom(q *Query, bound Bound, except *EndpointSet) bool {
	b.refresh(q)
	return b.laneHasRoomFor(q, bound, 0) && b.fieldOf(q, bound, b.exceptions(q, bound, except), 0).some()
}

// Regret returns how many more prompt tokens the endpoint chosen by Place would read than the ready endpoint of the
// lane with the most of the prompt cached. ok is false if Place would find no endpoint. Without ratings the regret is
// 0, and no endpoint is visited. It changes nothing and draws no random number.
func (b *Board) Regret(q *Query, bound Bound, except *EndpointSet) (tokens int64, ok bool) {
	if q.adapter {
		return b.adapterRegret(q, bound, except)
	}
	r := q.ratings
	if r == nil || r.Prompt <= 0 || len(r.Above) == 0 {
		return 0, true
	}
	b.refresh(q)
	most := b.mostCached(q)
	if most == r.Floor {
		return 0, true
	}
	if !b.laneHasRoomFor(q, bound, 0) {
		return 0, false
	}
	p := best(b.fieldOf(q, bound, b.exceptions(q, bound, except), b.start()), b.scheduler.by, nil)
	if p < 0 {
		return 0, false
	}
	return r.uncached(r.Cached(b.ring.ids[p])) - r.uncached(most), true
}

// mostCached returns the most tokens of a rated request's prompt that a ready endpoint of its lane has cached.
func (b *Board) mostCached(q *Query) int64 {
	most := q.ratings.Floor
	for _, c := range q.ratings.Above {
		if p, ok := b.ring.position(c.ID); ok && q.reach.has(p) {
			most = max(most, c.Tokens)
		}
	}
	return most
}

// PlaceAt counts the request at the given endpoint, regardless of bounds and limits. It panics unless CanServe(q, id).
// It is how a preemptor takes over its victim's endpoint.
func (b *Board) PlaceAt(q *Query, id EndpointID) Reservation {
	b.refresh(q)
	p, ok := b.ring.position(id)
	if !ok || !q.reach.has(p) {
		panic("scheduling: PlaceAt an endpoint that cannot serve the request")
	}
	if q.view != nil {
		b.keep(q.view, p, nil)
	}
	r := b.choose(q, p)
	b.addPrefill(q, &r, AnyReady)
	b.startReading(q, &r)
	return r
}

// choose reserves the endpoint and adds the fallbacks.
func (b *Board) choose(q *Query, p int32) Reservation {
	id := b.ring.ids[p]
	q.placedOn, q.chosen[0], q.nChosen = b.snap, p, 1
	q.prefill = -1
	b.last = id
	if most := b.scheduler.config.Fallbacks; most > 0 {
		b.addFallbacks(q, p, most)
	}
	b.count(p, 1)
	b.total++
	if q.adapter {
		b.adapters.use(q.model, id)
		b.spots[p].adapters = b.adapters.engines[id]
	}
	return Reserved(id)
}

// start returns the position that wins among equals.
func (b *Board) start() int32 {
	if b.scheduler.config.TieBreak != TieRotate {
		return 0
	}
	return b.ring.after(b.last)
}

// laneHasRoomFor reports whether the lane is below the bound once gone requests have left an endpoint that holds at
// most its own bound, rounded up. It compares exactly, in millionths.
func (b *Board) laneHasRoomFor(q *Query, bound Bound, gone int64) bool {
	if bound >= Unbounded || q.lane == "" && q.reach.whole {
		return true
	}
	lane := b.laneSums(q)
	return lane.held <= gone || lane.room(bound, gone)
}

// laneSums returns the sums over the ready endpoints of the query's lane.
func (b *Board) laneSums(q *Query) (lane sums) {
	switch {
	case q.reach.whole:
		return b.ofReady
	case q.reach.large():
		return b.laneOf(q).sums
	}
	for _, p := range q.reach.ready {
		lane.add(&b.spots[p])
	}
	return lane
}

// addFallbacks adds the next best of the lane's ready endpoints; equals are in ring order after the chosen one. Each is
// temporarily removed from the field while the next one is searched.
func (b *Board) addFallbacks(q *Query, chosen int32, most int) {
	f := b.fieldOf(q, Unbounded, nil, b.ring.after(b.ring.ids[chosen]))
	f.put(chosen, out)
	for q.nChosen <= most {
		p := best(f, b.scheduler.by, nil)
		if p < 0 {
			break
		}
		f.put(p, out)
		q.chosen[q.nChosen] = p
		q.nChosen++
	}
	for _, p := range q.chosen[:q.nChosen] {
		f.put(p, b.spots[p].leaf())
	}
}
