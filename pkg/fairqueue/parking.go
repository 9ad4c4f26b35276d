package fairqueue

// A request that cannot be placed now must not block those behind it in other lanes or flows: its lane is closed, or
// its flow is parked in its lane, until a settlement, a cap or a snapshot changes that may free it.

// CloseLane closes the lane of r, a waiting request, within its tier: LaneBusy, LaneFull or LaneDead, until OpenLane or
// OpenLanes.
func (q *FairRequestQueue) CloseLane(r *Request, state LaneState) {
	r.at.lane.class.setState(r.at.lane, state)
}

// OpenLane opens a lane in every tier.
func (q *FairRequestQueue) OpenLane(name Lane) {
	for _, t := range q.tiers {
		if l := t.class.lanes[name]; l != nil && l.state != LaneOpen {
			t.class.setState(l, LaneOpen)
		}
	}
}

// OpenLanes opens every lane, for a change of the endpoints.
func (q *FairRequestQueue) OpenLanes() {
	for _, t := range q.tiers {
		for _, l := range t.class.lanes {
			if l.state != LaneOpen {
				t.class.setState(l, LaneOpen)
			}
		}
	}
}

// Lanes appends to some one waiting request of each lane in each tier that has a flow not parked; the order has no
// meaning.
func (q *FairRequestQueue) Lanes(some []*Request) []*Request {
	for _, t := range q.tiers {
		for _, l := range t.class.lanes {
			if fl := l.flows.min(); fl != nil {
				some = append(some, fl.line.first)
			}
		}
	}
	return some
}

// ParkFlow parks the flow of r, a waiting request, within r's lane: it is at its cap.
func (q *FairRequestQueue) ParkFlow(r *Request) {
	fl := r.at
	if fl.parked {
		return
	}
	c := fl.lane.class
	fl.parked = true
	c.count(fl.lane, 0, fl.line.n)
	c.settle(fl)
}

// UnparkFlow unparks a flow of a tier in all its lanes.
func (q *FairRequestQueue) UnparkFlow(id int, key string) {
	if id < 0 || id >= maxTiers || q.byID[id] == nil {
		return
	}
	t := q.byID[id]
	f := t.flows.find(q.discipline.flowOf(key))
	if f == nil {
		return
	}
	for _, fl := range f.lanes {
		if fl.parked {
			fl.parked = false
			t.class.count(fl.lane, 0, -fl.line.n)
			t.class.settle(fl)
		}
	}
}

// HeadsOf appends to heads the first request of a flow of a tier in each lane in which it waits, parked or not.
func (q *FairRequestQueue) HeadsOf(id int, key string, heads []*Request) []*Request {
	if id < 0 || id >= maxTiers || q.byID[id] == nil {
		return heads
	}
	if f := q.byID[id].flows.find(q.discipline.flowOf(key)); f != nil {
		for _, fl := range f.lanes {
			heads = append(heads, fl.line.first)
		}
	}
	return heads
}
