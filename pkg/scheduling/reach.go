package scheduling

import (
	"math/bits"
	"slices"
)

// reach is the set of a snapshot's endpoints that a request may use: those that pass the filters, which ignore live
// counts. It is immutable.
type reach struct {
	all       []int32 // the members, ready or not, ascending
	positions []int32 // the members that serve requests
	ready     []int32 // the ready ones of positions
	prefills  []int32 // the members that are prefill engines, ready or not
	// lacked are the needs that some of positions do not meet, and narrowed the members that meet each combination of
	// these. Unshared reaches and narrowed ones have neither.
	lacked   Needs
	narrowed []*reach
	// whole is true if it has every ready member.
	whole bool
	// words has a bit for the position of each ready endpoint; below has the number of ready ones in the words before.
	// Both are nil if few are ready.
	words []uint64
	below []int32
}

// few is the largest number of endpoints that are searched one by one.
const few = 64

func newReach(s *Snapshot, positions []int32) *reach {
	r := &reach{all: positions, positions: positions}
	if s.reads || slices.ContainsFunc(positions, func(p int32) bool { return !s.members[p].Work.Serves() }) {
		r.sortOut(s)
	}
	for _, p := range r.positions {
		if s.members[p].Ready {
			r.ready = append(r.ready, p)
		}
	}
	r.whole = len(r.ready) == s.ready
	if r.large() {
		r.words, r.below = make([]uint64, wordsFor(len(s.members))), make([]int32, wordsFor(len(s.members)))
		for _, p := range r.ready {
			r.words[p/64] |= 1 << (p % 64)
		}
		for w := range len(r.words) - 1 {
			r.below[w+1] = r.below[w] + int32(bits.OnesCount64(r.words[w]))
		}
	}
	return r
}

// large reports whether there are too many ready endpoints to search them one by one.
func (r *reach) large() bool { return len(r.ready) > few }

// index returns the position's index among the ready ones, or where it would be.
func (r *reach) index(p int32) (int, bool) {
	if !r.large() {
		return slices.BinarySearch(r.ready, p)
	}
	w := p / 64
	word := r.words[w]
	i := int(r.below[w]) + bits.OnesCount64(word&(1<<(p%64)-1))
	return i, word>>(p%64)&1 != 0
}

// has reports whether the position is one of the ready ones.
func (r *reach) has(p int32) bool {
	if r.large() {
		return in(r.words, p)
	}
	_, ok := slices.BinarySearch(r.ready, p)
	return ok
}

// hasBeside reports whether a ready endpoint is not among the words.
func (r *reach) hasBeside(words []uint64) bool {
	switch {
	case words == nil:
		return len(r.ready) > 0
	case !r.large():
		return slices.ContainsFunc(r.ready, func(p int32) bool { return !in(words, p) })
	}
	for w, ready := range r.words {
		if ready&^words[w] != 0 {
			return true
		}
	}
	return false
}

// meets reports whether a ready endpoint is among the words.
func (r *reach) meets(words []uint64) bool {
	switch {
	case words == nil:
		return false
	case !r.large():
		return slices.ContainsFunc(r.ready, func(p int32) bool { return in(words, p) })
	}
	for w, ready := range r.words {
		if ready&words[w] != 0 {
			return true
		}
	}
	return false
}
