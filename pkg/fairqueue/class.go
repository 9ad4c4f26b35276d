package fairqueue

// class is a policy class: it shares its tier, and its flows share it by a discipline. There is one per tier so far;
// deficit round robin between several will be a file beside this one.
type class struct {
	virtual       VirtualTime
	rebased       VirtualTime // virtual time when the starts were last looked at; see rebase.go
	newcomerFirst bool        // Config.TieBreak
	lanes         map[Lane]*classLane
	open          heap[*classLane] // lanes that are open and have a flow that is not parked
	busy          heap[*laneBusy]  // only if guarded: those with room between the bounds, where a starved head may go,
	aged          heap[*laneAge]   // and those with room below the upper bound, by their oldest request
	guarded       bool             // the starvation guard asks for ages
	stuck         int              // Σ stuck of the lanes
}

// head is the class's next request: the least tag among the lanes that can go; nil when there is none.
func (c *class) head() *Request {
	if l := c.open.min(); l != nil {
		return l.flows.min().line.first
	}
	return nil
}

// starvedHead is the request that goes when the tier is promoted: as head, of the lanes with room below the upper bound.
func (c *class) starvedHead() *Request {
	busy := c.busy.min()
	if busy == nil || c.open.len() > 0 && c.open.items[0].key.before(c.busy.items[0].key) {
		return c.head()
	}
	return busy.of.flows.min().line.first
}

// oldest is the request that has waited longest in a lane with room below its upper bound; nil when there is none.
func (c *class) oldest() *Request {
	if a := c.aged.min(); a != nil {
		return a.of.ages.min().of.line.first
	}
	return nil
}

// settle restores every order after something about fl has changed: its head, tag, parking or emptiness.
func (c *class) settle(fl *flowLane) {
	waiting := fl.line.n > 0 && !fl.parked
	member(&fl.lane.flows, fl, waiting)
	if c.guarded {
		member(&fl.lane.ages, &fl.age, waiting)
	}
	c.settleLane(fl.lane)
}

// settleLane restores the class's own orders after something about lane l has changed.
func (c *class) settleLane(l *classLane) {
	some := l.flows.len() > 0
	member(&c.open, l, some && l.state == LaneOpen)
	if c.guarded {
		c.settleGuarded(l, some && l.roomAbove())
	}
}

// settleGuarded puts lane l into the orders of the starvation guard, or takes it out.
func (c *class) settleGuarded(l *classLane, want bool) {
	member(&c.busy, &l.busy, want && l.state == LaneBusy)
	member(&c.aged, &l.oldest, want)
}

// count changes the numbers of a lane: n waiting requests, capped of them behind a parked flow.
func (c *class) count(l *classLane, n, capped int) {
	c.stuck -= l.stuck()
	l.queued += n
	l.capped += capped
	c.stuck += l.stuck()
}

// setState opens a lane or closes it.
func (c *class) setState(l *classLane, s LaneState) {
	c.stuck -= l.stuck()
	l.state = s
	c.stuck += l.stuck()
	c.settleLane(l)
}

// guard begins or ends the keeping of ages; it looks at every flow once.
func (c *class) guard(on bool) {
	if c.guarded == on {
		return
	}
	c.guarded = on
	for _, l := range c.lanes {
		for fl := range l.flows.all() {
			member(&l.ages, &fl.age, on)
		}
		c.settleGuarded(l, on && l.ages.len() > 0 && l.roomAbove())
	}
}
