package fairqueue

import (
	"cmp"
	"slices"
)

// HeadIn returns the next request of a lane of a tier, ignoring parked waiters and the state of the lane; nil if there
// is none.
func (q *FairRequestQueue) HeadIn(tier int, lane Lane) *Request {
	if tier < 0 || tier >= maxTiers || q.byID[tier] == nil {
		return nil
	}
	return q.byID[tier].turn(func(c *class) *Request { return c.headIn(lane) })
}

// FirstIn returns the next request of a lane of a tier, open or closed, among flows whose next request satisfies could:
// flows that are not parked or, with awaits, flows of AwaitRoom. It returns nil if there is none.
func (q *FairRequestQueue) FirstIn(tier int, lane Lane, awaits bool, could func(*Request) bool) *Request {
	if tier < 0 || tier >= maxTiers || q.byID[tier] == nil {
		return nil
	}
	return q.byID[tier].turn(func(c *class) *Request {
		if awaits {
			return c.awaitingIn(lane, could)
		}
		if l := c.lanes[lane]; l != nil {
			if first := l.flows.First(func(fl *flowLane) bool { return could(fl.head) }); first != nil {
				return first.head
			}
		}
		return nil
	})
}

// Waits reports whether any request waits in the lane, in any tier.
func (q *FairRequestQueue) Waits(lane Lane) bool {
	for range q.everywhere(lane) {
		return true
	}
	return false
}

// SortHeads sorts heads of lanes of one tier in the order in which they go. Heads of different classes are merged by
// arrival, keeping the order within each class: the class whose next head, or one before it, arrived first continues.
func SortHeads(heads []*Request) {
	class := func(r *Request) *class { return r.flowLane.lane.class }
	slices.SortFunc(heads, func(a, b *Request) int {
		switch {
		case a == b:
			return 0
		case class(a) != class(b):
			return cmp.Compare(slices.Index(class(a).tier.classes, class(a)), slices.Index(class(b).tier.classes, class(b)))
		case a.flowLane.outermost().Key().Before(b.flowLane.outermost().Key()):
			return -1
		default:
			return 1
		}
	})
	if len(heads) == 0 || class(heads[0]) == class(heads[len(heads)-1]) {
		return
	}
	latest := make(map[*Request]uint64, len(heads)) // the last arrival among a head and those before it in its class
	for i, r := range heads {
		latest[r] = r.seq
		if i > 0 && class(heads[i-1]) == class(r) {
			latest[r] = max(r.seq, latest[heads[i-1]])
		}
	}
	slices.SortStableFunc(heads, func(a, b *Request) int { return cmp.Compare(latest[a], latest[b]) })
}

// classOf returns the class in which r waits, or which it would join as an arrival.
func (q *FairRequestQueue) classOf(r *Request) *class {
	if r.Queued() {
		return r.flowLane.lane.class
	}
	return q.tierOf(r.Tier).classOf(r)
}

// LanesOf appends to lanes the lanes of the class in which the flow of r waits. r waits or arrives.
func (q *FairRequestQueue) LanesOf(r *Request, lanes []Lane) []Lane {
	var f *flow
	if r.Queued() {
		f = r.flowLane.outermost().flow
	} else if c := q.classOf(r); c.queued > 0 {
		f = c.flows.find(c.flowKey(r))
	}
	if f != nil {
		for _, fl := range f.lanes {
			lanes = append(lanes, fl.lane.name)
		}
	}
	return lanes
}

// OthersWait reports whether another flow than r's waits in a lane of r's class. r waits or arrives.
func (q *FairRequestQueue) OthersWait(r *Request, lane Lane) bool {
	c := q.classOf(r)
	l := c.lanes[lane]
	if l == nil {
		return false
	}
	flows := l.flows.Len() + len(l.parked)
	if f := c.flows.find(c.flowKey(r)); f != nil && f.laneOf(lane) != nil {
		flows--
	}
	return flows > 0
}
