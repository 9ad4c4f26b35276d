package fairqueue

import (
	"cmp"
	"slices"
)

// HeadIn returns the request that goes next among those that wait in a lane of a tier and are not parked, whether the
// lane is open or closed; nil if there is none.
func (q *FairRequestQueue) HeadIn(tier int, lane Lane) *Request {
	if tier < 0 || tier >= maxTiers || q.byID[tier] == nil {
		return nil
	}
	return q.byID[tier].turn(func(c *class) *Request { return c.headIn(lane) })
}

// Waits reports whether any request waits in the lane, in any tier.
func (q *FairRequestQueue) Waits(lane Lane) bool {
	for range q.everywhere(lane) {
		return true
	}
	return false
}

// SortHeads sorts heads of lanes of one tier in the order in which they go; those of different classes by arrival.
func SortHeads(heads []*Request) {
	slices.SortFunc(heads, func(a, b *Request) int {
		switch {
		case a == b:
			return 0
		case a.flowLane.lane.class != b.flowLane.lane.class:
			return cmp.Compare(a.seq, b.seq)
		case a.flowLane.outermost().key().before(b.flowLane.outermost().key()):
			return -1
		default:
			return 1
		}
	})
}

// LanesOf appends to lanes those of its class in which the flow of r waits.
func (q *FairRequestQueue) LanesOf(r *Request, lanes []Lane) []Lane {
	var f *flow
	if r.flowLane != nil {
		f = r.flowLane.outermost().flow
	} else if c := q.classAt(r); c.queued > 0 {
		f = c.flows.find(c.flowKey(r))
	}
	if f != nil {
		for _, fl := range f.lanes {
			lanes = append(lanes, fl.lane.name)
		}
	}
	return lanes
}

// OthersWait reports whether, in the class of r, another flow than r's waits in a lane.
func (q *FairRequestQueue) OthersWait(r *Request, lane Lane) bool {
	c := q.classAt(r)
	l := c.lanes[lane]
	if l == nil {
		return false
	}
	flows := l.flows.len() + len(l.parked)
	if f := c.flows.find(c.flowKey(r)); f != nil && f.laneOf(lane) != nil {
		flows--
	}
	return flows > 0
}
