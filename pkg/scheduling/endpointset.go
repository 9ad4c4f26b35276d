package scheduling

import "slices"

// EndpointSet is a set of endpoints that a pick must not use. It is kept between requests, so that the cost of a change
// does not depend on the number of picks. The zero value is empty. It is not safe for concurrent use: once passed to a
// board, it is guarded by the board's lock.
type EndpointSet struct {
	ids []EndpointID // ascending

	// Derived: the positions of the ids on a ring, 64 to a word. Endpoints that are not in the pool have none.
	ring  *ring
	words []uint64
}

// Len returns the number of endpoints in the set.
func (s *EndpointSet) Len() int { return len(s.ids) }

// Has reports whether the endpoint is in the set. A nil set is empty.
func (s *EndpointSet) Has(id EndpointID) bool {
	if s == nil {
		return false
	}
	_, ok := slices.BinarySearch(s.ids, id)
	return ok
}

// Add adds the endpoint to the set.
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

// Remove removes the endpoint from the set.
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

// on returns the positions of the set's endpoints on the ring, nil if the set is empty. The receiver may be nil.
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

// wordsFor returns the number of 64-bit words needed for n bits.
func wordsFor(n int) int { return (n + 63) / 64 }

// in reports whether the position's bit is set in words, which may be nil.
func in(words []uint64, p int32) bool { return words != nil && words[p/64]>>(p%64)&1 != 0 }
