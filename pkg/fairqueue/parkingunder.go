package fairqueue

import (
	"cmp"
	"slices"
)

// A nested flow can be at a cap of its own. It is parked in its own branch, and its siblings continue. When all flows
// under a flow are parked, that flow is parked too, without being at its cap: none of its requests could go. Its head
// is then the head of one of them, so that calls about the lane have a request to name. It resumes when one of them
// does, or when another flow under it gets a request.
//
// Parking and unparking a flow cost O(log n) for each level above it, and visit only flows on its path.

// parkedBelow reports whether all flows under fl, of which some wait, are parked.
func (fl *flowLane) parkedBelow() bool { return fl.under != nil && fl.under.flows.Len() == 0 }

// cappedBelow returns the number of requests of fl that wait in parked flows under it.
func (fl *flowLane) cappedBelow() int {
	if fl.under == nil {
		return 0
	}
	return fl.under.capped
}

// countCapped adds n to the waiting requests of fl in parked flows: in its lane, and in the branches above it up to the
// first parked one.
func (c *class) countCapped(fl *flowLane, n int) {
	for ; fl.above != nil; fl = fl.above {
		fl.above.under.capped += n
		if fl.above.parked > 0 {
			return
		}
	}
	c.countInLane(fl.lane, 0, n)
}

// inherit gives fl the head of its next nested flow.
func (c *class) inherit(fl *flowLane) {
	if first := fl.under.flows.Min(); first != nil {
		fl.head = first.head
		if fl.parked > 0 && !fl.atCap {
			c.resume(fl)
		}
		fl.retag()
		return
	}
	fl.head = nil
	for _, part := range fl.under.parked {
		if part.head != nil { // else it is about to be dropped
			fl.head = part.head
			break
		}
	}
	if fl.head == nil {
		return
	}
	fl.retag()
	fl.leaveRooms()
	if fl.parked == 0 {
		c.list(fl)
	}
}

// ParkUnder parks the innermost flow of r, a waiting request, within r's lane, because it is at its cap. Its sibling
// flows continue.
func (q *FairRequestQueue) ParkUnder(r *Request) { q.park(r.flowLane) }

// UnparkUnder unparks an innermost flow of a tier in all its lanes, in every class. It is named by Request.Flow and Path.Under.
func (q *FairRequestQueue) UnparkUnder(id int, key string, under []string) {
	q.partsUnder(id, key, under, func(fl *flowLane) { fl.lane.class.unpark(fl) })
}

// UnparkLane unparks every flow, including nested ones, in a lane.
func (q *FairRequestQueue) UnparkLane(name Lane) {
	for l := range q.everywhere(name) {
		l.class.unparkAll(l)
	}
}

// unparkAll is UnparkLane for one class. It visits each flow that waits in the lane.
func (c *class) unparkAll(l *classLane) {
	if c.tier.queue.config.levels() > 1 {
		for _, fl := range slices.AppendSeq(slices.Clone(l.parked), l.flows.All()) {
			c.unparkBelow(fl)
		}
	}
	for len(l.parked) > 0 {
		c.unpark(l.parked[len(l.parked)-1])
	}
}

// unparkBelow unparks all flows under fl.
func (c *class) unparkBelow(fl *flowLane) {
	if fl.under == nil {
		return
	}
	for _, part := range slices.AppendSeq(slices.Clone(fl.under.parked), fl.under.flows.All()) {
		c.unparkBelow(part)
		c.unpark(part)
	}
}

// HeadsUnder appends to heads the first request of an innermost flow, as UnparkUnder names it, in each lane in which it waits,
// parked or not, by arrival.
func (q *FairRequestQueue) HeadsUnder(id int, key string, under []string, heads []*Request) []*Request {
	from := len(heads)
	q.partsUnder(id, key, under, func(fl *flowLane) { heads = append(heads, fl.head) })
	slices.SortFunc(heads[from:], func(a, b *Request) int { return cmp.Compare(a.seq, b.seq) })
	return heads
}

// ParkedUnder appends to heads the first request of each innermost flow that is at its cap in a lane, in every class. It visits
// each flow that waits in the lane.
func (q *FairRequestQueue) ParkedUnder(name Lane, heads []*Request) []*Request {
	for l := range q.everywhere(name) {
		heads = l.branch.atCap(heads)
	}
	return heads
}

// atCap appends to heads the first request of each innermost flow in the branch that is at its cap.
func (b *branch) atCap(heads []*Request) []*Request {
	for fl := range b.flows.All() {
		if fl.under != nil {
			heads = fl.under.atCap(heads)
		}
	}
	for _, fl := range b.parked {
		switch {
		case fl.under != nil:
			heads = fl.under.atCap(heads)
		case fl.atCap:
			heads = append(heads, fl.head)
		}
	}
	return heads
}

// partsUnder calls each with the flowLanes of an innermost flow, which each may park or unpark.
func (q *FairRequestQueue) partsUnder(id int, key string, under []string, each func(*flowLane)) {
	if id < 0 || id >= maxTiers || q.byID[id] == nil {
		return
	}
	r := Request{Flow: key, Path: &Path{Under: under}}
	for _, c := range q.byID[id].classes {
		if f := c.findIn(c.known(&r), &r); f != nil {
			for _, fl := range f.lanes {
				each(fl)
			}
		}
	}
}
