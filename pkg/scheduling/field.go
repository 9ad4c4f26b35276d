package scheduling

import "math/bits"

// field is the set of endpoints for one pick: the ready endpoints of a lane below their limits, without the request's
// exceptions and, unless the bound is Unbounded or AnyReady, without full ones. For the whole pool and for large lanes
// the best endpoint is known. Small lanes, and lanes with exceptions, are searched, in blocks of 64 with a known best
// total.
type field struct {
	pool     *tournament // by position; an endpoint that cannot be picked is out
	ring     *ring
	reach    *reach
	without  []uint64     // positions that may not be used; nil if there are none
	lane     *laneState   // nil for the whole pool, and for endpoints that are searched
	whole    bool         // the whole pool
	spots    []spot       // by position
	ratings  *Ratings     // of the request; nil: unknown
	adapter  string       // of the request; empty: none
	holders  []EndpointID // the endpoints that have it, ascending
	unloaded []uint64     // positions where the request's model is not loaded; nil if there are none
	least    Standing     // the least total of an endpoint of the field
	reading  bool         // endpoints have prompts to read that count
	unread   *tournament  // of the tokens to read, where many endpoints have some; nil otherwise
	merged   []uint64     // memory for without and unloaded together
	start    int32        // the position that wins among equals; the others follow in ring order
}

// fieldOf returns the field of the query, in which equals are ordered from start. It is valid until the next call.
func (b *Board) fieldOf(q *Query, bound Bound, without []uint64, start int32) *field {
	f := &b.field
	least := notFull
	switch bound {
	case BelowLower, BelowUpper:
	case Unbounded:
		least = fullByRequests
	case AnyReady:
		least = 0
	}
	*f = field{pool: &b.pool, ring: b.ring, reach: q.reach, without: without, spots: b.spots, ratings: q.ratings, least: least, start: start, merged: f.merged}
	if len(b.unloaded) > 0 {
		f.unloaded = b.unloaded[q.model].on(b.ring)
	}
	if f.reading = b.unread > 0; f.reading && q.reach.large() {
		f.unread = b.fewestUnread()
	}
	if q.adapter {
		f.adapter, f.holders = q.model, b.adapters.at[q.model]
	}
	switch {
	case without != nil:
	case q.reach.whole:
		f.whole = true
	case q.reach.large():
		f.lane = b.laneOf(q)
	}
	return f
}

// some reports whether the field has an endpoint.
func (f *field) some() bool {
	switch {
	case f.whole:
		return f.pool.top() >= f.least
	case f.lane != nil:
		return f.lane.tree.top() >= f.least
	}
	found := false
	f.each(func(int32, Standing) bool {
		found = true
		return false
	})
	return found
}

// has reports whether the position is in the field.
func (f *field) has(p int32) bool {
	return f.pool.of(int(p)) >= f.least && f.reach.has(p) && !in(f.without, p)
}

// first returns the first endpoint with the best total, ignoring ratings; -1 if there is none.
func (f *field) first() (p int32, top Standing) {
	switch {
	case f.whole:
		if top = f.pool.top(); top < f.least {
			return -1, out
		}
		return int32(f.pool.firstFrom(int(f.start))), top
	case f.lane != nil:
		if top = f.lane.tree.top(); top < f.least {
			return -1, out
		}
		i, _ := f.reach.index(f.start)
		if i == len(f.reach.ready) {
			i = 0
		}
		return f.reach.ready[f.lane.tree.firstFrom(i)], top
	}
	return f.look()
}

// tied returns the number of endpoints with the total, which must be the best.
func (f *field) tied(top Standing) (n int) {
	switch {
	case f.whole:
		return f.pool.tied()
	case f.lane != nil:
		return f.lane.tree.tied()
	}
	f.each(func(_ int32, total Standing) bool {
		if total == top {
			n++
		}
		return true
	})
	return n
}

// nth returns the k-th endpoint, from 0, with the total, which must be the best.
func (f *field) nth(top Standing, k int) (at int32) {
	switch {
	case f.whole:
		return int32(f.pool.nth(k))
	case f.lane != nil:
		return f.reach.ready[f.lane.tree.nth(k)]
	}
	f.each(func(p int32, total Standing) bool {
		if total == top {
			at = p
			k--
		}
		return k >= 0
	})
	return at
}

// each calls look with every position of the field and its total, in order, until look returns false.
func (f *field) each(look func(p int32, total Standing) bool) {
	if f.reach.large() {
		f.eachInBlocks(look)
		return
	}
	for _, p := range f.reach.ready {
		if total := f.pool.of(int(p)); total >= f.least && !in(f.without, p) && !look(p, total) {
			return
		}
	}
}

func (f *field) eachInBlocks(look func(p int32, total Standing) bool) {
	for w, ready := range f.reach.words {
		if f.without != nil {
			ready &^= f.without[w]
		}
		for left := ready; left != 0; left &= left - 1 {
			p := 64*w + bits.TrailingZeros64(left)
			if total := f.pool.of(p); total >= f.least && !look(int32(p), total) {
				return
			}
		}
	}
}

// look implements first for a field that has to be searched.
func (f *field) look() (at int32, top Standing) {
	if f.reach.large() {
		return f.lookAtBlocks()
	}
	at, top = -1, f.least-1
	ready := f.reach.ready
	i, _ := f.reach.index(f.start)
	for range ready {
		if i == len(ready) {
			i = 0
		}
		p := ready[i]
		if total := f.pool.of(int(p)); total > top && !in(f.without, p) {
			at, top = p, total
		}
		i++
	}
	return at, top
}

// lookAtBlocks skips blocks of endpoints that have no better total than the best so far.
func (f *field) lookAtBlocks() (at int32, top Standing) {
	at, top = -1, f.least-1
	words, totals := len(f.reach.words), f.pool.totals()
	w := int(f.start / 64)
	later := ^uint64(0) << (f.start % 64) // in the first block: positions from start on; those before come last
	for n := range words + 1 {
		left := f.reach.words[w] &^ f.without[w]
		switch n {
		case 0:
			left &= later
		case words:
			left &^= later
		}
		if left != 0 && f.pool.blockTop(w) > top {
			for ; left != 0; left &= left - 1 {
				if p := 64*w + bits.TrailingZeros64(left); totals[p] > top {
					at, top = int32(p), totals[p]
				}
			}
		}
		if w++; w == words {
			w = 0
		}
	}
	return at, top
}

// put temporarily changes the total of an endpoint.
func (f *field) put(p int32, total Standing) {
	f.pool.set(int(p), total)
	if f.lane != nil {
		i, _ := f.reach.index(p)
		f.lane.tree.set(i, total)
	}
}
