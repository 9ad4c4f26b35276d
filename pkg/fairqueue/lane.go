package fairqueue

// flowLane is a flow's part of a lane: the requests that wait there, or what the flows under it have there. It exists
// while somebody waits in it.
type flowLane struct {
	flow   *flow
	lane   *classLane
	above  *flowLane   // of the flow that this one is under; nil: it is the class's own
	under  *branch     // nil where no flow is under this one
	head   *Request    // that goes next
	tag    VirtualTime // of the head
	at     int32       // number in the heap of its branch
	place  int32       // in the flow's lanes
	line   line        // where no flow is under this one
	queued int         // waiting requests
	age    age
	parked bool // the flow is at its cap: its head cannot go
}

// branch orders sharers of one level in one lane.
type branch struct {
	flows heap[*flowLane] // those not parked
	ages  heap[*age]      // the same ones, where the tier has a starvation threshold
}

func (b *branch) small() bool { return b.flows.small() && b.ages.small() }

// in is the branch that fl lies in.
func (fl *flowLane) in() *branch {
	if fl.above != nil {
		return fl.above.under
	}
	return &fl.lane.branch
}

// outermost is the flowLane of the class's own flow, above any others.
func (fl *flowLane) outermost() *flowLane {
	for fl.above != nil {
		fl = fl.above
	}
	return fl
}

// behind is set in the second part of the key of a flow that is no newcomer: among equal tags newcomers go first. No
// arrival sequence gets that far.
const behind = 1 << 63

func (fl *flowLane) key() key {
	k := key{uint64(fl.tag), fl.head.seq}
	if !fl.flow.newcomer {
		k.seq |= behind
	}
	return k
}

func (fl *flowLane) handle() *int32 { return &fl.at }

// age orders flowLanes by their oldest request, for the starvation guard.
type age struct {
	of *flowLane
	at int32
}

func (a *age) key() key {
	if b := a.of.under; b != nil {
		return b.ages.items[0].key
	}
	return key{seq: a.of.line.oldest.seq}
}

func (a *age) handle() *int32 { return &a.at }

// oldest is the request that has waited longest.
func (a *age) oldest() *Request {
	for a.of.under != nil {
		a = a.of.under.ages.min()
	}
	return a.of.line.oldest
}

// LaneState is what is known of the room in a lane: whether its requests can go.
type LaneState uint8

const (
	// LaneOpen is a lane of which nothing else is known.
	LaneOpen LaneState = iota
	// LaneBusy has no room below its lower bound; a starved head may still go, up to the upper one.
	LaneBusy
	// LaneFull has no room below its upper bound: nobody can go, and nobody there lends its age to its tier. A settlement
	// may change that, here as in a busy lane.
	LaneFull
	// LaneDead has no ready endpoint: its waiters could not go even with room, so they do not stand in the way of a bypass.
	LaneDead
)

// classLane is one lane of a class: the flows that wait in it. It exists while it has a waiting request.
type classLane struct {
	branch
	class  *class
	name   Lane
	state  LaneState
	queued int   // waiting requests
	capped int   // of these, those of parked flowLanes
	at     int32 // number in the class's heap of open lanes
	busy   laneBusy
	oldest laneAge
}

func (c *classLane) key() key { return c.flows.items[0].key }

func (c *classLane) handle() *int32 { return &c.at }

// roomAbove reports whether there may be room below the upper bound.
func (c *classLane) roomAbove() bool { return c.state == LaneOpen || c.state == LaneBusy }

// laneBusy orders by their next request the busy lanes, in which a starved head may go.
type laneBusy struct {
	of *classLane
	at int32
}

func (b *laneBusy) key() key { return b.of.key() }

func (b *laneBusy) handle() *int32 { return &b.at }

// laneAge orders lanes by their oldest request that could go.
type laneAge struct {
	of *classLane
	at int32
}

func (a *laneAge) key() key { return a.of.ages.items[0].key }

func (a *laneAge) handle() *int32 { return &a.at }

// stuck is the number of requests here that could not go even if there were room: their lane has no ready endpoint,
// or their flow is at its cap. They do not stand in the way of a bypass.
func (c *classLane) stuck() int {
	if c.state == LaneDead {
		return c.queued
	}
	return c.capped
}

// member puts x into h, takes it out, or restores its place, so that x is in h exactly when it should be.
func member[T heapItem](h *heap[T], x T, want bool) {
	switch in := h.contains(x); {
	case want && in:
		h.fix(x)
	case want:
		h.push(x)
	case in:
		h.remove(x)
	}
}
