package fairqueue

import "slices"

// HeadIn is the request that goes next of those that wait in a lane of a tier and are not parked, whether the lane is
// open or closed; nil: there is none.
func (q *FairRequestQueue) HeadIn(tier int, lane Lane) *Request {
	if tier < 0 || tier >= maxTiers || q.byID[tier] == nil {
		return nil
	}
	l := q.byID[tier].class.lanes[lane]
	if l == nil {
		return nil
	}
	if fl := l.flows.min(); fl != nil {
		return fl.line.first
	}
	return nil
}

// Waits reports whether anybody waits in the lane, in any tier.
func (q *FairRequestQueue) Waits(lane Lane) bool {
	for _, t := range q.tiers {
		if t.class.lanes[lane] != nil {
			return true
		}
	}
	return false
}

// SortHeads sorts heads of lanes of one tier: the one first that goes first.
func SortHeads(heads []*Request) {
	slices.SortFunc(heads, func(a, b *Request) int {
		switch {
		case a == b:
			return 0
		case a.at.key().before(b.at.key()):
			return -1
		default:
			return 1
		}
	})
}
