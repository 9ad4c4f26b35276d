package fairqueue

// class is a policy class: it shares its tier, and its flows share it. Without Config.Classes a tier has one, which then
// has nobody to share with. Lanes are outermost: each has the flows that wait in it, in their order, and the flows under
// those in theirs.
type class struct {
	share    // of its tier
	siblings // its flows

	tier     *tier
	config   ClassConfig
	order    order // within its flows; nil: by arrival
	removed  bool  // takes no arrivals any more, and drains
	queued   int
	offer    *Request // while a turn is charged: what the class has to offer in it
	inflight int      // requests in flight, where the discipline wants to know

	lanes   map[Lane]*classLane
	open    heap[*classLane] // lanes that are open and have a flow that is not parked
	busy    heap[*laneBusy]  // only if guarded: those with room between the bounds, where a starved head may go,
	aged    heap[*laneAge]   // and those with room below the upper bound, by their oldest request
	guarded bool             // the starvation guard asks for ages
	stuck   int              // Σ stuck of the lanes

	freeFlowLanes []*flowLane
	freeLanes     []*classLane
}

func newClass(t *tier, cfg ClassConfig, q *FairRequestQueue) *class {
	return &class{
		share: share{weight: cfg.weight()},
		siblings: siblings{
			level: level{discipline: q.config.Discipline.implementation(), now: &q.now}, flows: newFlowTable(keptFlows),
		},
		tier:   t,
		config: cfg,
		order:  cfg.Order.implementation(q.config.Priorities),
		lanes:  map[Lane]*classLane{},
	}
}

// head returns the class's next request, which has the least tag among the lanes that can go, or nil if there is none.
func (c *class) head() *Request {
	if l := c.open.min(); l != nil {
		return l.flows.min().head
	}
	return nil
}

// starvedHead is the request that goes when the tier is promoted: as head, of the lanes with room below the upper bound.
func (c *class) starvedHead() *Request {
	busy := c.busy.min()
	if busy == nil || c.open.len() > 0 && c.open.items[0].key.before(c.busy.items[0].key) {
		return c.head()
	}
	return busy.lane.flows.min().head
}

// headIn returns the next request in a lane, open or closed, of those that are not parked, or nil if there is none.
func (c *class) headIn(lane Lane) *Request {
	if l := c.lanes[lane]; l != nil {
		if fl := l.flows.min(); fl != nil {
			return fl.head
		}
	}
	return nil
}

// oldest returns the request that has waited longest in a lane with room below its upper bound, or nil if there is none.
func (c *class) oldest() *Request {
	if a := c.aged.min(); a != nil {
		return a.lane.ages.min().oldest()
	}
	return nil
}

// retag computes the tag of fl's head anew.
func (fl *flowLane) retag() {
	f := fl.flow
	fl.tag = f.siblings.discipline.tag(&f.siblings.level, &f.share, fl.head)
}

// reindex restores every order after something about fl has changed: its head, tag, parking, oldest or emptiness.
func (c *class) reindex(fl *flowLane) {
	for {
		b, waiting := fl.ownBranch(), fl.head != nil && !fl.parked
		setMember(&b.flows, fl, waiting)
		if c.guarded {
			setMember(&b.ages, &fl.age, waiting)
		}
		if fl.above == nil {
			break
		}
		fl = fl.above
		if first := fl.under.flows.min(); first != nil {
			fl.head = first.head
			fl.retag()
		} else {
			fl.head = nil
		}
	}
	c.reindexLane(fl.lane)
}

// reindexLane restores the class's own orders after something about lane l has changed.
func (c *class) reindexLane(l *classLane) {
	some := l.flows.len() > 0
	setMember(&c.open, l, some && l.state == LaneOpen)
	if c.guarded {
		c.reindexGuarded(l, some && l.roomAbove())
	}
}

// reindexGuarded puts lane l into the orders of the starvation guard, or takes it out.
func (c *class) reindexGuarded(l *classLane, want bool) {
	setMember(&c.busy, &l.busy, want && l.state == LaneBusy)
	setMember(&c.aged, &l.oldest, want)
}

// couldGo is the number of waiters that could go if there were room.
func (c *class) couldGo() int { return c.queued - c.stuck }

// countInLane changes the numbers of a lane: n waiting requests, capped of them behind a parked flow.
func (c *class) countInLane(l *classLane, n, capped int) {
	was := l.stuck()
	l.queued += n
	l.capped += capped
	c.addStuck(l.stuck() - was)
}

func (c *class) addStuck(n int) {
	c.stuck += n
	c.tier.stuck += n
}

// setState opens a lane or closes it.
func (c *class) setState(l *classLane, s LaneState) {
	was := l.stuck()
	l.state = s
	c.addStuck(l.stuck() - was)
	c.reindexLane(l)
}

// guard begins or ends the keeping of ages; it looks at every flow once.
func (c *class) guard(on bool) {
	if c.guarded == on {
		return
	}
	c.guarded = on
	for _, l := range c.lanes {
		l.branch.guard(on)
		c.reindexGuarded(l, on && l.ages.len() > 0 && l.roomAbove())
	}
}

func (b *branch) guard(on bool) {
	for fl := range b.flows.all() {
		if fl.under != nil {
			fl.under.guard(on)
		}
		setMember(&b.ages, &fl.age, on)
	}
}
