package fairqueue

import "github.com/weir-epp/weir/internal/heap"

// class is a policy class. Classes share a tier, and flows share a class. Without Config.Classes each tier has exactly
// one. Within a class, lanes come first: each lane orders the flows that wait in it, and each flow the flows nested in
// it.
type class struct {
	share    // its share of the tier
	drrShare // the target of share's pointer
	siblings // its own flows

	tier     *tier
	ring     *ring // that of its config's name
	config   ClassConfig
	order    order   // of the requests within a flow; nil means by arrival
	removed  bool    // it is no longer configured: it accepts no arrivals and drains
	gone     bool    // drained as well, and no longer in its tier
	queued   int     // waiting requests
	amounts  amounts // and the amounts that count against its limits
	place    int     // its index in its ring
	number   int     // its index in Config.Classes; -1 if it is no longer configured, or none are
	inflight int     // requests in flight that it has charged, with their flows

	left *flowLane // placeholder: the flowLane of requests that have left the class by a pop or a bypass

	lanes   map[Lane]*classLane
	open    heap.Heap[*classLane] // open lanes with a flow that is not parked
	busy    heap.Heap[*laneBusy]  // if guarded: lanes with room only above the lower bound, where only a starved head may go
	aged    heap.Heap[*laneAge]   // if guarded: lanes with room below the upper bound, by their oldest request
	guarded bool                  // the starvation guard applies to the tier, so ages are kept
	stuck   int                   // sum of classLane.stuck

	freeFlowLanes []*flowLane
	freeLanes     []*classLane
}

func newClass(t *tier, cfg ClassConfig, q *FairRequestQueue) *class {
	c := &class{
		siblings: siblings{
			level: level{discipline: q.config.Discipline.implementation()}, flows: newFlowTable(keptFlows),
		},
		tier:   t,
		config: cfg,
		order:  cfg.order(q.config.Priorities),
		lanes:  map[Lane]*classLane{},
	}
	c.share = share{weight: cfg.weight(), drrShare: &c.drrShare}
	if c.shares = q.shares; q.shares != nil {
		c.fair = newFairLevel(q.shares)
	}
	c.left = &flowLane{lane: &classLane{class: c}}
	return c
}

// head returns the class's next request: the one with the least tag in the open lanes, or nil if there is none.
func (c *class) head() *Request {
	if l := c.open.Min(); l != nil {
		return l.flows.Min().head
	}
	return nil
}

// starvedHead returns the class's next request if its tier is promoted: the one with the least tag in the lanes with room
// below the upper bound, or nil if there is none.
func (c *class) starvedHead() *Request {
	busy := c.busy.Min()
	if busy == nil || c.open.Len() > 0 && c.open.MinKey().Before(c.busy.MinKey()) {
		return c.head()
	}
	return busy.lane.flows.Min().head
}

// headIn returns the next request in a lane, open or closed, ignoring parked flows; nil if there is none.
func (c *class) headIn(lane Lane) *Request {
	if l := c.lanes[lane]; l != nil {
		if fl := l.flows.Min(); fl != nil {
			return fl.head
		}
	}
	return nil
}

// oldest returns the request that has waited longest in a lane with room below its upper bound, or nil if there is none.
func (c *class) oldest() *Request {
	if a := c.aged.Min(); a != nil {
		return a.lane.ages.Min().oldest()
	}
	return nil
}

// retag recomputes the tag of fl's head.
func (fl *flowLane) retag() {
	f := fl.flow
	fl.tag = f.siblings.discipline.tag(&f.siblings.level, &f.share, fl.head)
}

// reindex restores every order that fl is in. It must be called when fl's head, tag, oldest request or parked changes, or
// when fl gets its first request or loses its last.
func (c *class) reindex(fl *flowLane) {
	for {
		b, waiting := fl.ownBranch(), fl.head != nil && fl.parked == 0
		setMember(&b.flows, fl, waiting)
		if c.guarded {
			setMember(&b.ages, (*age)(fl), waiting)
		}
		if fl.above == nil {
			if fl.awaits != 0 && fl.head != nil {
				fl.lane.reorder(fl)
			}
			break
		}
		fl = fl.above
		c.inherit(fl)
	}
	c.reindexLane(fl.lane)
}

// reindexLane restores the class's orders of lanes after a change in l.
func (c *class) reindexLane(l *classLane) {
	some := l.flows.Len() > 0
	setMember(&c.open, l, some && l.state == LaneOpen)
	if c.guarded {
		c.reindexGuarded(l, some && l.roomAbove())
	}
	c.changed()
}

// reindexGuarded adds lane l to the orders of the starvation guard, or removes it from them.
func (c *class) reindexGuarded(l *classLane, wanted bool) {
	setMember(&c.busy, &l.busy, wanted && l.state == LaneBusy)
	setMember(&c.aged, &l.oldest, wanted)
}

// countInLane adds n to the number of waiting requests in a lane, and capped to the number in parked flows.
func (c *class) countInLane(l *classLane, n, capped int) {
	l.queued += n
	l.capped += capped
	switch { // as stuck has it
	case l.allStuck():
		c.addStuck(n)
	case capped != 0:
		c.addStuck(capped)
	}
}

// addStuck adds n to the number of stuck requests of the class and its tier.
func (c *class) addStuck(n int) {
	c.stuck += n
	c.tier.stuck += n
}

// setState opens or closes a lane.
func (c *class) setState(l *classLane, s LaneState) {
	was := l.stuck()
	l.state = s
	c.addStuck(l.stuck() - was)
	c.reindexLane(l)
}

// guard starts or stops keeping ages for the starvation guard. It visits every flow of the class.
func (c *class) guard(on bool) {
	if c.guarded == on {
		return
	}
	c.guarded = on
	for _, l := range c.lanes {
		l.branch.guard(on)
		for a := range l.rooms.All() {
			setMember(&l.roomAges, (*awaitingAge)(a), on)
		}
		c.reindexGuarded(l, on && l.ages.Len() > 0 && l.roomAbove())
	}
}

// guard is class.guard for the flows of a branch and those under them.
func (b *branch) guard(on bool) {
	for fl := range b.flows.All() {
		if fl.under != nil {
			fl.under.guard(on)
		}
		setMember(&b.ages, (*age)(fl), on)
	}
	for _, fl := range b.parked { // their own age is entered when they can go again
		if fl.under != nil {
			fl.under.guard(on)
		}
	}
}
