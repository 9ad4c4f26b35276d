package scheduling

import "slices"

// reach is the set of a snapshot's endpoints that a request may use: what is left after the filters that do not look
// at live counts. It is immutable.
type reach struct {
	positions []int32 // all members, ready or not, ascending
	ready     []int32 // the ready ones of them, ascending
	// lower and upper sum the bounds of the ready ones, in millionths of a request.
	lower, upper int64
	// whole says that it has every ready member.
	whole bool
	// lane is the name of the lane of those that serve a model, without a subset; "" on other reaches.
	lane string
}

func newReach(s *Snapshot, positions []int32) *reach {
	r := &reach{positions: positions}
	for _, p := range positions {
		m := &s.members[p]
		if !m.Ready {
			continue
		}
		r.ready = append(r.ready, p)
		r.lower = addBounds(r.lower, m.LowerBound)
		r.upper = addBounds(r.upper, m.UpperBound)
	}
	r.whole = len(r.ready) == s.ready
	return r
}

// addBounds adds without wrapping around: the sum of more than 2^12 endpoints at maxBound stays at the top.
func addBounds(a, b int64) int64 {
	const top = 1 << 62
	return min(a+b, top)
}

func (r *reach) bound(which Bound) int64 {
	if which == BelowUpper {
		return r.upper
	}
	return r.lower
}

// readyAt returns the index of the endpoint among the ready ones.
func (r *reach) readyAt(s *Snapshot, id EndpointID) (int, bool) {
	p, ok := s.position(id)
	if !ok {
		return 0, false
	}
	return slices.BinarySearch(r.ready, p)
}
