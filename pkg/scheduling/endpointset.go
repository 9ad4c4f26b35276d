package scheduling

import "slices"

// EndpointSet is a set of endpoints that a pick is not to take, kept by whoever forbids them from one request to the
// next: what a change costs does not depend on how many requests ask. The zero value is empty. It is not safe for
// concurrent use: the lock that guards the board guards it too, once it was given to one.
type EndpointSet struct {
	ids []EndpointID // ascending

	// Derived: the positions of the ids on a ring, 64 to a word. Those that are not in the pool have none.
	ring  *ring
	words []uint64
}

// Len returns how many endpoints are in the set.
func (s *EndpointSet) Len() int { return len(s.ids) }

// Has reports whether the endpoint is in the set.
func (s *EndpointSet) Has(id EndpointID) bool {
	_, ok := slices.BinarySearch(s.ids, id)
	return ok
}

// Add puts the endpoint into the set, if it is not in it.
func (s *EndpointSet) Add(id EndpointID) {
	i, ok := slices.BinarySearch(s.ids, id)
	if ok {
		return
	}
	s.ids = slices.Insert(s.ids, i, id)
	if s.ring != nil {
		s.mark(id)
	}
}

// Remove takes the endpoint out of the set, if it is in it.
func (s *EndpointSet) Remove(id EndpointID) {
	i, ok := slices.BinarySearch(s.ids, id)
	if !ok {
		return
	}
	s.ids = slices.Delete(s.ids, i, i+1)
	if s.ring == nil {
		return
	}
	if p, ok := s.ring.position(id); ok {
		s.words[p/64] &^= 1 << (p % 64)
	}
}

// Clear empties the set.
func (s *EndpointSet) Clear() {
	s.ids = s.ids[:0]
	clear(s.words)
}

func (s *EndpointSet) mark(id EndpointID) {
	if p, ok := s.ring.position(id); ok {
		s.words[p/64] |= 1 << (p % 64)
	}
}

// on returns the positions of the set's endpoints on the ring; nil if the set is empty. It may be nil itself.
func (s *EndpointSet) on(r *ring) []uint64 {
	if s == nil || len(s.ids) == 0 {
		return nil
	}
	if s.ring != r {
		s.ring = r
		s.words = resized(s.words, wordsFor(len(r.ids)))
		clear(s.words)
		for _, id := range s.ids {
			s.mark(id)
		}
	}
	return s.words
}

// wordsFor returns how many words of 64 bits have a bit for each of so many.
func wordsFor(n int) int { return (n + 63) / 64 }

// in reports whether the position is among the words; without any words none is.
func in(words []uint64, p int32) bool { return words != nil && words[p/64]>>(p%64)&1 != 0 }
