package fairqueue

import (
	"iter"
	"slices"
)

// A request that cannot be placed now must not block requests of other lanes or flows: its lane is closed, or its flow
// is parked in its lane, until a settlement or a change of a cap or snapshot may free it. parkingunder.go parks nested
// flows.

// CloseLane closes the lane of r, a waiting request, within its class: LaneBusy, LaneFull or LaneDead, until OpenLane or
// OpenLanes, or LaneBlocked until Unblock or OpenLanes.
func (q *FairRequestQueue) CloseLane(r *Request, state LaneState) {
	q.changes++
	r.flowLane.lane.class.setState(r.flowLane.lane, state)
}

// Unblock opens the lane of r, a waiting request, within its class if it is blocked.
func (q *FairRequestQueue) Unblock(r *Request) {
	if l := r.flowLane.lane; l.state == LaneBlocked {
		l.class.setState(l, LaneOpen)
	}
}

// OpenLane opens a lane in every class in which it is not blocked.
func (q *FairRequestQueue) OpenLane(name Lane) {
	for l := range q.everywhere(name) {
		if l.state != LaneOpen && l.state != LaneBlocked {
			l.class.setState(l, LaneOpen)
		}
	}
}

// OpenLanes opens every lane, for a change of the endpoints.
func (q *FairRequestQueue) OpenLanes() {
	for _, t := range q.tiers {
		for _, c := range t.classes {
			for _, l := range c.lanes {
				if l.state != LaneOpen {
					c.setState(l, LaneOpen)
				}
			}
		}
	}
}

// Lanes appends to some one waiting request of each lane in each class that has a flow that is not parked, in no
// particular order.
func (q *FairRequestQueue) Lanes(some []*Request) []*Request {
	for _, t := range q.tiers {
		for _, c := range t.classes {
			for _, l := range c.lanes {
				if fl := l.flows.Min(); fl != nil {
					some = append(some, fl.head)
				}
			}
		}
	}
	return some
}

// ParkFlow parks the flow of r, a waiting request, within r's lane, with all flows under it, because it is at its cap.
func (q *FairRequestQueue) ParkFlow(r *Request) {
	q.park(r.flowLane.outermost())
}

// AwaitRoom notes that the flow of the waiting r, parked in r's lane, could go if another lease's end made room at a
// backend where the flow is below its cap.
func (q *FairRequestQueue) AwaitRoom(r *Request) {
	fl := r.flowLane.outermost()
	if !fl.atCap || fl.awaits != 0 || fl.parkedBelow() {
		return
	}
	fl.lane.rooms.Push((*awaiting)(fl))
	q.awaiting[fl.lane.name]++
	if fl.lane.class.guarded {
		fl.lane.roomAges.Push((*awaitingAge)(fl))
	}
}

// Awaits reports whether any flow in a lane awaits room.
func (q *FairRequestQueue) Awaits(name Lane) bool { return q.awaiting[name] > 0 }

// Awaiting appends to heads, for each tier, the first request in a lane among the flows of AwaitRoom that satisfies
// could, and with a starvation threshold also the longest waiting one.
func (q *FairRequestQueue) Awaiting(name Lane, could func(*Request) bool, heads []*Request) []*Request {
	if !q.Awaits(name) {
		return heads
	}
	for _, t := range q.tiers {
		first := t.turn(func(c *class) *Request { return c.awaitingIn(name, could) })
		if first == nil {
			continue
		}
		heads = append(heads, first)
		if oldest := t.oldestAwaiting(name, could); oldest != nil && oldest != first {
			heads = append(heads, oldest)
		}
	}
	return heads
}

// awaitingIn returns the next request in a lane among the flows of AwaitRoom that satisfies could; nil if there is
// none.
func (c *class) awaitingIn(lane Lane, could func(*Request) bool) *Request {
	if l := c.lanes[lane]; l != nil {
		if a := l.rooms.First(func(a *awaiting) bool { return could(a.head) }); a != nil {
			return a.head
		}
	}
	return nil
}

// oldestAwaiting is awaitingIn for the flow that has waited longest, if ages are kept.
func (t *tier) oldestAwaiting(lane Lane, could func(*Request) bool) *Request {
	var oldest *awaitingAge
	for _, c := range t.classes {
		l := c.lanes[lane]
		if !c.guarded || l == nil {
			continue
		}
		a := l.roomAges.First(func(a *awaitingAge) bool { return could(a.head) })
		if a != nil && (oldest == nil || a.Key().Before(oldest.Key())) {
			oldest = a
		}
	}
	if oldest == nil {
		return nil
	}
	return oldest.head
}

// reorder restores the order of a flowLane whose head or oldest request has changed among those that await room.
func (c *classLane) reorder(fl *flowLane) {
	c.rooms.Fix((*awaiting)(fl))
	if fl.awaitsAge != 0 {
		c.roomAges.Fix((*awaitingAge)(fl))
	}
}

// UnparkFlow unparks a flow of a tier in all its lanes, in every class.
func (q *FairRequestQueue) UnparkFlow(id int, key string) {
	for fl := range q.parts(id, key) {
		fl.lane.class.unpark(fl)
	}
}

// park parks fl because its flow is at its cap.
func (q *FairRequestQueue) park(fl *flowLane) {
	if fl.atCap {
		return
	}
	q.changes++
	fl.atCap = true
	if fl.parked == 0 {
		fl.lane.class.list(fl)
		fl.lane.class.reindex(fl)
	}
}

// unpark returns fl to its branch's order, unless all flows under it are parked.
func (c *class) unpark(fl *flowLane) {
	if !fl.atCap {
		return
	}
	fl.atCap = false
	if fl.parkedBelow() {
		fl.leaveRooms()
		return
	}
	c.resume(fl)
	c.reindex(fl)
}

// list adds fl to its branch's parked list.
func (c *class) list(fl *flowLane) {
	b := fl.ownBranch()
	b.parked = append(b.parked, fl)
	fl.parked = int32(len(b.parked))
	c.countCapped(fl, fl.queued-fl.cappedBelow())
}

// resume undoes list. Service of other flows in the meantime counts for fl.
func (c *class) resume(fl *flowLane) {
	fl.unlist()
	fl.unsettle()
	c.countCapped(fl, fl.cappedBelow()-fl.queued)
	if f := fl.flow; f.siblings.discipline.resumed(&f.siblings.level, &f.share, fl.ownBranch(), fl.head) {
		fl.retag()
		f.retag(fl)
	}
}

// unlist removes fl from its branch's parked list, if it is parked.
func (fl *flowLane) unlist() {
	if fl.parked == 0 {
		return
	}
	b := fl.ownBranch()
	last := len(b.parked) - 1
	b.parked[last].parked = fl.parked
	b.parked[fl.parked-1] = b.parked[last]
	b.parked[last] = nil
	b.parked = b.parked[:last]
	fl.parked = 0
	fl.leaveRooms()
}

// leaveRooms removes fl from the flowLanes that await room.
func (fl *flowLane) leaveRooms() {
	l := fl.lane
	if fl.awaits != 0 {
		l.rooms.Remove((*awaiting)(fl))
		l.class.tier.queue.awaitsNoMore(l.name)
	}
	if fl.awaitsAge != 0 {
		l.roomAges.Remove((*awaitingAge)(fl))
	}
}

// awaitsNoMore removes one flow from the count of flows that await room in a lane.
func (q *FairRequestQueue) awaitsNoMore(name Lane) {
	if q.awaiting[name]--; q.awaiting[name] == 0 {
		delete(q.awaiting, name)
	}
}

// FlowsIn returns the number of flows that wait in a lane, counted in each class.
func (q *FairRequestQueue) FlowsIn(name Lane) (n int) {
	for l := range q.everywhere(name) {
		n += l.flows.Len() + len(l.parked)
	}
	return n
}

// HeadsIn appends to heads the first request of each flow that waits in a lane and is not parked there, in every class.
func (q *FairRequestQueue) HeadsIn(name Lane, heads []*Request) []*Request {
	for l := range q.everywhere(name) {
		for fl := range l.flows.All() {
			heads = append(heads, fl.head)
		}
	}
	return heads
}

// ParkedIn appends to heads the first request of each flow that is parked in a lane, in every class.
func (q *FairRequestQueue) ParkedIn(name Lane, heads []*Request) []*Request {
	for l := range q.everywhere(name) {
		for _, fl := range l.parked {
			heads = append(heads, fl.head)
		}
	}
	return heads
}

// InLane appends to some one request that waits in a lane, for each class in which any does.
func (q *FairRequestQueue) InLane(name Lane, some []*Request) []*Request {
	for l := range q.everywhere(name) {
		if fl := l.flows.Min(); fl != nil {
			some = append(some, fl.head)
		} else {
			some = append(some, l.parked[0].head)
		}
	}
	return some
}

// LaneNames appends to names those of the lanes in which requests wait, ascending.
func (q *FairRequestQueue) LaneNames(names []Lane) []Lane {
	from := len(names)
	for _, t := range q.tiers {
		for _, c := range t.classes {
			for name := range c.lanes {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names[from:])
	return append(names[:from], slices.Compact(names[from:])...)
}

// AllInLane appends to some every request that waits in a lane, in no particular order.
func (q *FairRequestQueue) AllInLane(name Lane, some []*Request) []*Request {
	for l := range q.everywhere(name) {
		for fl := range l.flows.All() {
			some = fl.requests(some)
		}
		for _, fl := range l.parked {
			some = fl.requests(some)
		}
	}
	return some
}

// requests appends to some every request that waits in fl.
func (fl *flowLane) requests(some []*Request) []*Request {
	if fl.under != nil {
		for part := range fl.under.flows.All() {
			some = part.requests(some)
		}
		for _, part := range fl.under.parked {
			some = part.requests(some)
		}
		return some
	}
	for r := range fl.line.all() {
		some = append(some, r)
	}
	return some
}

// everywhere iterates over a lane's parts in the classes in which requests wait in it.
func (q *FairRequestQueue) everywhere(name Lane) iter.Seq[*classLane] {
	return func(yield func(*classLane) bool) {
		for _, t := range q.tiers {
			for _, c := range t.classes {
				if l := c.lanes[name]; l != nil && !yield(l) {
					return
				}
			}
		}
	}
}

// HeadsOf appends to heads the first request of a flow of a tier in each lane in which it waits, parked or not.
func (q *FairRequestQueue) HeadsOf(id int, key string, heads []*Request) []*Request {
	for fl := range q.parts(id, key) {
		heads = append(heads, fl.head)
	}
	return heads
}

// parts iterates over the flowLanes of a flow with this key, in every class of a tier.
func (q *FairRequestQueue) parts(id int, key string) iter.Seq[*flowLane] {
	return func(yield func(*flowLane) bool) {
		if id < 0 || id >= maxTiers || q.byID[id] == nil {
			return
		}
		r := Request{Flow: key}
		for _, c := range q.byID[id].classes {
			f := c.flows.find(c.flowKey(&r))
			if f == nil {
				continue
			}
			for _, fl := range f.lanes {
				if !yield(fl) {
					return
				}
			}
		}
	}
}
