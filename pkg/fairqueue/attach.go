package fairqueue

// attach adds r to its flow's line, and creates the missing parts.
func (c *class) attach(f *flow, r *Request) {
	fl := f.laneOf(r.Lane)
	if fl == nil {
		fl = c.newFlowLane(f, r, nil)
	}
	r.flowLane = fl
	fl.line.insert(r)
	c.recount(fl, r, 1)
	c.gained(fl, r)
}

// gained restores the orders after fl has gained r.
func (c *class) gained(fl *flowLane, r *Request) {
	if head := fl.line.head(); fl.head != head {
		fl.head = head
		fl.retag()
		c.reindex(fl)
	} else if fl.line.oldest == r {
		c.reindex(fl)
	}
}

// detach removes r from its flow's line and drops the parts that become empty.
func (c *class) detach(r *Request) {
	fl := r.flowLane
	oldest := fl.line.oldest == r
	r.flowLane = nil
	fl.line.remove(r)
	c.recount(fl, r, -1)
	c.lost(fl, r, oldest)
	for fl != nil && fl.queued == 0 {
		f, above := fl.flow, fl.above
		c.dropFlowLane(fl)
		if f.queued == 0 {
			f.drop()
		}
		fl = above
	}
}

// lost restores the orders after fl has lost r, which may have been its oldest request.
func (c *class) lost(fl *flowLane, r *Request, oldest bool) {
	if fl.head == r {
		if fl.head = fl.line.head(); fl.head != nil {
			fl.retag()
		}
		c.reindex(fl)
	} else if oldest {
		c.reindex(fl)
	}
}

// recount adds r to the counts of waiting requests, or subtracts it.
func (c *class) recount(fl *flowLane, r *Request, by int) {
	c.queued += by
	c.tier.queued += by
	c.amounts.count(r, int64(by))
	cost := int64(by) * int64(r.Cost)
	for f := fl.flow; f != nil; f = f.above {
		f.cost += cost
		f.siblings.shed.recount(f, by)
	}
	c.recountLanes(fl, by)
}

// recountLanes adds a request to the counts of waiting requests in its lane, or subtracts it.
func (c *class) recountLanes(fl *flowLane, by int) {
	capped, lane := 0, fl.lane
	for ; fl != nil; fl = fl.above {
		if fl.parked > 0 {
			capped = by
		}
		fl.queued += by
		if fl.above != nil {
			fl.above.under.capped += capped
		}
	}
	c.countInLane(lane, by, capped)
}

// retag recomputes the tags of all heads of f after its start or weight has changed, except the one in a lane that is
// retagged anyway.
func (f *flow) retag(but *flowLane) {
	for _, fl := range f.lanes {
		if fl != but {
			fl.retag()
			f.class.reindex(fl)
		}
	}
}

// newFlowLane makes f's part of r's lane, and any missing lane or parts of the flows above. g is the regrouping that
// moves r there, or nil.
func (c *class) newFlowLane(f *flow, r *Request, g *regrouping) *flowLane {
	name := r.Lane
	cl := c.lanes[name]
	if cl == nil {
		cl = take(&c.freeLanes)
		*cl = classLane{
			branch: cl.branch, rooms: cl.rooms, roomAges: cl.roomAges, class: c, name: name,
		}
		cl.busy.lane, cl.oldest.lane = cl, cl
		c.lanes[name] = cl
	}
	var above *flowLane
	if f.above != nil {
		if above = f.above.laneOf(name); above == nil {
			above = c.newFlowLane(f.above, r, g)
		}
	}
	fl := take(&c.freeFlowLanes)
	*fl = flowLane{flow: f, lane: cl, above: above, laneIndex: int32(len(f.lanes)), under: fl.under, line: line{row: fl.line.row}}
	fl.shape()
	fl.unsettle()
	f.lanes = append(f.lanes, fl)
	if f.byLane != nil {
		f.byLane[name] = fl
	} else if len(f.lanes) > fewLanes {
		f.byLane = map[Lane]*flowLane{}
		for _, l := range f.lanes {
			f.byLane[l.lane.name] = l
		}
	}
	in := f.siblings
	switch {
	case !c.tier.queue.active:
	case g != nil:
		g.join(fl)
	case in.discipline.join(&in.level, &f.share, fl.ownBranch(), fl.alone(), r) && len(f.lanes) > 1:
		f.retag(fl)
	}
	return fl
}

// shape gives fl the parts that its flow needs: a branch for the flows under it, or a row for an order of its own.
func (fl *flowLane) shape() {
	switch {
	case fl.flow.under == nil:
		fl.under = nil
	case fl.under == nil:
		fl.under = &branch{}
	}
	switch {
	case fl.under != nil || fl.flow.class.order == nil:
		fl.line.row = nil
	case fl.line.row == nil:
		fl.line.row = &row{}
	}
}

// dropFlowLane drops the empty fl, and its lane if that is empty too.
func (c *class) dropFlowLane(fl *flowLane) {
	f := fl.flow
	last := len(f.lanes) - 1
	f.lanes[fl.laneIndex] = f.lanes[last]
	f.lanes[fl.laneIndex].laneIndex = fl.laneIndex
	f.lanes[last] = nil
	f.lanes = f.lanes[:last]
	delete(f.byLane, fl.lane.name)
	fl.unlist()
	if cl := fl.lane; cl.queued == 0 && fl.above == nil {
		delete(c.lanes, cl.name)
		if cl.small() && len(c.freeLanes) < keptLanes {
			c.freeLanes = append(c.freeLanes, cl)
		}
	}
	fl.flow, fl.lane, fl.above = nil, nil, nil
	if fl.under != nil && !fl.under.small() {
		fl.under = nil
	}
	if fl.line.row != nil && !fl.line.row.small() {
		fl.line.row = nil
	}
	if len(c.freeFlowLanes) < keptFlows {
		c.freeFlowLanes = append(c.freeFlowLanes, fl)
	}
}

// keptLanes is the number of lanes without waiters that are kept for reuse, each with small heaps.
const keptLanes = 64

// take removes and returns the last of a free list, or a new one.
func take[T any](free *[]*T) *T {
	if n := len(*free); n > 0 {
		x := (*free)[n-1]
		*free = (*free)[:n-1]
		return x
	}
	return new(T)
}
