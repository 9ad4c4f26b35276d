package fairqueue

import (
	"cmp"
	"slices"
)

// HeadIn is the request that goes next of those that wait in a lane of a tier and are not parked, whether the lane is
// open or closed; nil: there is none.
func (q *FairRequestQueue) HeadIn(tier int, lane Lane) *Request {
	if tier < 0 || tier >= maxTiers || q.byID[tier] == nil {
		return nil
	}
	return q.byID[tier].turn(func(c *class) *Request { return c.headIn(lane) })
}

// Waits reports whether anybody waits in the lane, in any tier.
func (q *FairRequestQueue) Waits(lane Lane) bool {
	for _, t := range q.tiers {
		for _, c := range t.classes {
			if c.lanes[lane] != nil {
				return true
			}
		}
	}
	return false
}

// SortHeads sorts heads of lanes of one tier: the one first that goes first, of several classes the one that came first.
func SortHeads(heads []*Request) {
	slices.SortFunc(heads, func(a, b *Request) int {
		switch {
		case a == b:
			return 0
		case a.at.lane.class != b.at.lane.class:
			return cmp.Compare(a.seq, b.seq)
		case a.at.outermost().key().before(b.at.outermost().key()):
			return -1
		default:
			return 1
		}
	})
}
