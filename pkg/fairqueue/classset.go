package fairqueue

import "math/bits"

// classSet is a set of a ring's classes, by their place in it.
type classSet []uint64

// newClassSet returns an empty set of places below n.
func newClassSet(n int) classSet { return make(classSet, (n+63)/64) }

func (s classSet) put(place int, in bool) {
	if in {
		s[place/64] |= 1 << (place % 64)
	} else {
		s[place/64] &^= 1 << (place % 64)
	}
}

// from returns the first place that is not before this one, or -1 if there is none.
func (s classSet) from(place int) int {
	for i := place / 64; i < len(s); i++ {
		word := s[i]
		if i == place/64 {
			word &= ^uint64(0) << (place % 64)
		}
		if word != 0 {
			return i*64 + bits.TrailingZeros64(word)
		}
	}
	return -1
}

// around iterates over the places from one on, to the end of the ring and on from its beginning.
func (s classSet) around(from int) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for at := s.from(from); at >= 0; at = s.from(at + 1) {
			if !yield(at) {
				return
			}
		}
		for at := s.from(0); at >= 0 && at < from; at = s.from(at + 1) {
			if !yield(at) {
				return
			}
		}
	}
}
