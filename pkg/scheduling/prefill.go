package scheduling

import "slices"

// With prefill engines, a request with a long prompt needs two slots: one at a decode engine, chosen by the board's
// comparison, and one at the prefill engine with the least
//
//	4 × prompts(e) + u(e)
//
// where prompts(e) are the uncached tokens placed there and not yet read. The request gets both slots or neither. A
// prefill engine is full, and gets no further prompt, while prompts(e) is at its bound. Prefill engines do not count in
// a band.

// longLane is the lane of long prompts, and the suffix of all lanes of long prompts. No other lane's name has this
// suffix, since names of models and subsets are quoted.
const longLane = "long"

// promptWeight is the weight of one token before a request, in uncached tokens of its own prompt.
const promptWeight = 4

// isLong reports whether a request's prompt is long enough, after what serving engines have cached, for a prefill
// engine.
func (s *Scheduler) isLong(snap *Snapshot, c *constraint) bool {
	return snap.reads && c.uncached > 0 && c.uncached >= s.config.PrefillThreshold
}

// sortOut finds the members that serve requests, and the prefill engines.
func (r *reach) sortOut(s *Snapshot) {
	r.positions = make([]int32, 0, len(r.all))
	for _, p := range r.all {
		switch work := s.members[p].Work; {
		case work.Serves():
			r.positions = append(r.positions, p)
		case work == WorkPrefill:
			r.prefills = append(r.prefills, p)
		}
	}
}

// exceptions returns the endpoints that the request cannot use: those in except and, for a long prompt while all its
// prefill engines are full, the decode engines. It returns nil if there are none.
func (b *Board) exceptions(q *Query, bound Bound, except *EndpointSet) []uint64 {
	without := except.on(b.ring)
	if len(q.reach.prefills) == 0 || !b.scheduler.isLong(b.snap, &q.constraint) {
		return without
	}
	if at, ready := b.bestPrefill(q, bound); at >= 0 || !ready {
		return without
	}
	if b.without = resized(b.without, wordsFor(len(b.spots))); without == nil {
		clear(b.without)
	} else {
		copy(b.without, without)
	}
	for _, p := range q.reach.ready {
		if b.spots[p].work == WorkDecode {
			b.without[p/64] |= 1 << (p % 64)
		}
	}
	return b.without
}

// bestPrefill returns the prefill engine that reads the request's prompt soonest, or -1 if all are full. ready reports
// whether any is ready.
func (b *Board) bestPrefill(q *Query, bound Bound) (at int32, ready bool) {
	at = -1
	var least int64
	all := q.reach.prefills
	first, _ := slices.BinarySearch(all, b.ring.after(b.reader))
	for i := range all {
		p := all[(first+i)%len(all)]
		s := &b.spots[p]
		if !s.reads {
			continue
		}
		ready = true
		if bound < AnyReady && b.fullOfPrompts(s) || s.inFlight >= s.limit {
			continue
		}
		if cost := promptWeight*s.prompts + q.unread(b.ring.ids[p]); at < 0 || cost < least {
			at, least = p, cost
		}
	}
	return at, ready
}

// fullOfPrompts reports whether a prefill engine is full.
func (b *Board) fullOfPrompts(s *spot) bool {
	most := s.most
	if most == 0 {
		most = b.scheduler.config.PrefillTokens
	}
	return most > 0 && s.prompts >= most
}

// unread returns the number of tokens of the request's prompt that a prefill engine has to read.
func (q *Query) unread(id EndpointID) int64 {
	if r := q.atPrefill; r != nil {
		return r.uncached(r.Cached(id))
	}
	return q.ratings.uncached(0)
}

// addPrefill reserves a prefill engine if the endpoint is a decode engine with too little of the prompt cached. If all
// prefill engines are full, and another engine has enough of the prompt, the endpoint reads the prompt itself.
func (b *Board) addPrefill(q *Query, r *Reservation, bound Bound) {
	if len(q.reach.prefills) == 0 || q.ratings == nil || q.ratings.Prompt <= 0 {
		return
	}
	p, _ := b.ring.position(r.Endpoint())
	if b.spots[p].work != WorkDecode || q.ratings.uncached(q.ratings.Cached(r.Endpoint())) < b.scheduler.config.PrefillThreshold {
		return
	}
	at, _ := b.bestPrefill(q, bound)
	if at < 0 {
		return
	}
	id := b.ring.ids[at]
	q.prefill, b.reader = at, id
	*r = r.with(id, int32(q.unread(id)))
	b.count(at, 1)
	b.total++
	b.addPrompt(id, int64(r.prompt))
}

// addPrompt changes the tokens to read at an endpoint, which may have left the pool.
func (b *Board) addPrompt(id EndpointID, by int64) {
	if p, ok := b.ring.position(id); ok {
		b.spots[p].prompts += by
		if b.seated {
			b.fewest.set(int(p), b.spots[p].fewness())
		}
		if len(b.busy) > 0 {
			b.noteBusy(p)
		}
	} else if g, known := b.gone[id]; known {
		g.prompts += by
		b.gone[id] = g
	}
}
