package scheduling

import "math/bits"

// field is what one pick chooses from: the ready endpoints of a lane that are below their limits, without those that the
// request may not use. Of the whole pool and of large lanes the best are known; a few endpoints, and those that are left
// of a lane without some, are looked at, in blocks of 64 of which the best total is known.
type field struct {
	pool    *tournament // by position; who cannot be picked is out
	ring    *ring
	reach   *reach
	without []uint64   // positions that may not be used; nil: none
	lane    *laneState // nil: the whole pool, or endpoints that are looked at
	whole   bool       // the whole pool
	extras  []extra    // what the request adds to totals
	start   int32      // the position that wins among equals, and the others after it round the ring
}

// fieldOf returns what there is to choose from for the query, equals in order from the start. It is valid until the
// next call.
func (b *Board) fieldOf(q *Query, without []uint64, start int32) *field {
	f := &b.field
	*f = field{pool: &b.pool, ring: b.ring, reach: q.reach, without: without, extras: q.extras, start: start}
	switch {
	case without != nil:
	case q.reach.whole:
		f.whole = true
	case q.reach.large():
		f.lane = b.laneOf(q)
	}
	return f
}

// some reports whether there is anything to choose.
func (f *field) some() bool {
	switch {
	case f.whole:
		return f.pool.top() != out
	case f.lane != nil:
		return f.lane.tree.top() != out
	}
	found := false
	f.each(func(int32, Total) bool {
		found = true
		return false
	})
	return found
}

// has reports whether the position can be chosen.
func (f *field) has(p int32) bool {
	return f.pool.of(int(p)) != out && f.reach.has(p) && !in(f.without, p)
}

// first returns the first of those with the best total, as far as it does not depend on the request; -1 if there is
// none.
func (f *field) first() (p int32, top Total) {
	switch {
	case f.whole:
		if top = f.pool.top(); top == out {
			return -1, out
		}
		return int32(f.pool.firstFrom(int(f.start))), top
	case f.lane != nil:
		if top = f.lane.tree.top(); top == out {
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

// tied returns how many have the total, which is the best.
func (f *field) tied(top Total) (n int) {
	switch {
	case f.whole:
		return f.pool.tied()
	case f.lane != nil:
		return f.lane.tree.tied()
	}
	f.each(func(_ int32, total Total) bool {
		if total == top {
			n++
		}
		return true
	})
	return n
}

// nth returns the k-th of those that have the total, which is the best, from 0.
func (f *field) nth(top Total, k int) (at int32) {
	switch {
	case f.whole:
		return int32(f.pool.nth(k))
	case f.lane != nil:
		return f.reach.ready[f.lane.tree.nth(k)]
	}
	f.each(func(p int32, total Total) bool {
		if total == top {
			at = p
			k--
		}
		return k >= 0
	})
	return at
}

// each calls look with every position that can be chosen and its total, in order, until that returns false.
func (f *field) each(look func(p int32, total Total) bool) {
	if f.reach.large() {
		f.eachInBlocks(look)
		return
	}
	for _, p := range f.reach.ready {
		if total := f.pool.of(int(p)); total != out && !in(f.without, p) && !look(p, total) {
			return
		}
	}
}

func (f *field) eachInBlocks(look func(p int32, total Total) bool) {
	for w, ready := range f.reach.words {
		for left := ready &^ f.without[w]; left != 0; left &= left - 1 {
			p := 64*w + bits.TrailingZeros64(left)
			if total := f.pool.of(p); total != out && !look(int32(p), total) {
				return
			}
		}
	}
}

// look is first for what has to be looked at.
func (f *field) look() (at int32, top Total) {
	if f.reach.large() {
		return f.lookAtBlocks()
	}
	at, top = -1, out
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

// lookAtBlocks passes over blocks of endpoints that have none better than what was seen.
func (f *field) lookAtBlocks() (at int32, top Total) {
	at, top = -1, out
	words, totals := len(f.reach.words), f.pool.totals()
	w := int(f.start / 64)
	later := ^uint64(0) << (f.start % 64) // of the first block: those from the start on; the others come last
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

// put changes the total of an endpoint of the reach for the time of a choice.
func (f *field) put(p int32, total Total) {
	f.pool.set(int(p), total)
	if f.lane != nil {
		i, _ := f.reach.index(p)
		f.lane.tree.set(i, total)
	}
}
