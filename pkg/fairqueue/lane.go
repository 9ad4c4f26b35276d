package fairqueue

import "github.com/weir-epp/weir/internal/heap"

// flowLane is a flow's part of a lane: its requests waiting there, or its nested flows'. It exists while a request
// waits in it.
type flowLane struct {
	flow      *flow
	lane      *classLane
	above     *flowLane   // that of the flow above; nil for the class's own flow
	under     *branch     // nil if no flow is under this one
	head      *Request    // the request that goes next
	tag       VirtualTime // of the head
	number    int32       // number in the heap of its branch
	laneIndex int32       // index in the flow's lanes
	line      line        // only if no flow is under this one
	queued    int         // waiting requests
	ageNumber int32       // number in the heap of its branch's ages
	parked    int32       // 1-based index in its branch's parked; 0: not parked
	awaits    int32       // number in the lane's rooms; 0: not parked, or not awaiting another lease's end
	awaitsAge int32       // number in the lane's roomAges
	settled   uint32      // vtc: the number of notes (attained.go) when its present wait here began
	atCap     bool        // its flow is at its cap, so it is parked even if flows under it could go
}

// branch orders the sharers of one level in one lane.
type branch struct {
	flows   heap.Heap[*flowLane] // those that are not parked
	ages    heap.Heap[*age]      // the same ones, if the tier has a starvation threshold
	parked  []*flowLane          // flowLanes whose heads cannot go: at their cap, or with all flows under them parked
	capped  int                  // waiting requests in these, and in parked flowLanes under the others
	virtual VirtualTime          // vtc: the lane's virtual time
	front   VirtualTime          // vtc: if matched, the furthest counter reached by taking another flow's turn
	matched bool                 // vtc: virtual time has not passed the front

	strangers VirtualTime // FairShare: the start of the next unknown flow, if virtual time is before it
	raise     VirtualTime // FairShare: the delay of the key of the flow above the threshold
}

func (b *branch) small() bool { return b.flows.Small() && b.ages.Small() && cap(b.parked) <= 64 }

// ownBranch returns the branch that fl belongs to.
func (fl *flowLane) ownBranch() *branch {
	if fl.above != nil {
		return fl.above.under
	}
	return &fl.lane.branch
}

// alone reports whether nothing waits in fl's branch.
func (fl *flowLane) alone() bool {
	if fl.above != nil {
		return fl.above.queued == 0
	}
	return fl.lane.queued == 0
}

// branchOf returns the branch of f's siblings in the lane in which the request waits. f is a flow on its path.
func (r *Request) branchOf(f *flow) *branch {
	fl := r.flowLane
	for fl.flow != f {
		fl = fl.above
	}
	return fl.ownBranch()
}

// outermost returns the flowLane of the class's own flow.
func (fl *flowLane) outermost() *flowLane {
	for fl.above != nil {
		fl = fl.above
	}
	return fl
}

// behind is set in the second part of the key of a flow that is not a newcomer, so that newcomers go first among equal
// tags. No arrival sequence reaches it.
const behind = 1 << 63

func (fl *flowLane) Key() heap.Key {
	k := heap.Key{Value: uint64(fl.tag), Seq: fl.head.seq}
	if !fl.flow.newcomer {
		k.Seq |= behind
	}
	return k
}

func (fl *flowLane) Handle() *int32 { return &fl.number }

// age orders flowLanes by their oldest request, for the starvation guard.
type age flowLane

func (a *age) Key() heap.Key {
	if a.under != nil {
		return a.under.ages.MinKey()
	}
	return heap.Key{Seq: a.line.oldest.seq}
}

func (a *age) Handle() *int32 { return &a.ageNumber }

// oldest returns the request that has waited longest.
func (a *age) oldest() *Request {
	for a.under != nil {
		a = a.under.ages.Min()
	}
	return a.line.oldest
}

// LaneState is the known state of the room in a lane.
type LaneState uint8

const (
	// LaneOpen means that nothing else is known.
	LaneOpen LaneState = iota
	// LaneBusy means that there is no room below the lower bound; a starved head may still go, up to the upper bound.
	LaneBusy
	// LaneFull means that there is no room below the upper bound: no request can go, and none lends its age to its
	// tier. A settlement may change that, as in a busy lane.
	LaneFull
	// LaneBlocked means that its backends are too busy for the class: no request could go even with room, so its
	// waiters do not prevent a bypass. Room does not open it.
	LaneBlocked
	// LaneDead means that there is no ready endpoint: waiters could not go even with room, so they do not prevent a
	// bypass.
	LaneDead
)

// classLane is one lane of a class, with the flows that wait in it. It exists while it has a waiting request.
type classLane struct {
	branch
	class    *class
	name     Lane
	state    LaneState
	queued   int                     // waiting requests
	rooms    heap.Heap[*awaiting]    // the parked flowLanes that could go if another lease's end made room
	roomAges heap.Heap[*awaitingAge] // the same ones, if the tier has a starvation threshold
	number   int32                   // number in the class's heap of open lanes
	busy     laneBusy
	oldest   laneAge
}

// small reports whether the lane, empty, occupies little memory.
func (c *classLane) small() bool {
	return c.branch.small() && c.rooms.Small() && c.roomAges.Small()
}

func (c *classLane) Key() heap.Key { return c.flows.MinKey() }

func (c *classLane) Handle() *int32 { return &c.number }

// awaiting is a flowLane that is parked until another's lease makes room.
type awaiting flowLane

func (a *awaiting) Key() heap.Key { return (*flowLane)(a).Key() }

func (a *awaiting) Handle() *int32 { return &a.awaits }

// awaitingAge orders the same flowLanes by their oldest request.
type awaitingAge flowLane

func (a *awaitingAge) Key() heap.Key { return (*age)(a).Key() }

func (a *awaitingAge) Handle() *int32 { return &a.awaitsAge }

// roomAbove reports whether there may be room below the upper bound.
func (c *classLane) roomAbove() bool { return c.state == LaneOpen || c.state == LaneBusy }

// laneBusy orders the busy lanes, in which a starved head may go, by their next request.
type laneBusy struct {
	lane   *classLane
	number int32
}

func (b *laneBusy) Key() heap.Key { return b.lane.Key() }

func (b *laneBusy) Handle() *int32 { return &b.number }

// laneAge orders lanes by their oldest request that could go.
type laneAge struct {
	lane   *classLane
	number int32
}

func (a *laneAge) Key() heap.Key { return a.lane.ages.MinKey() }

func (a *laneAge) Handle() *int32 { return &a.number }

// stuck returns the number of requests that could not go even with room, because their lane's endpoints are unready or
// too busy, or their flow is at its cap. They do not prevent a bypass.
func (c *classLane) stuck() int {
	if c.allStuck() {
		return c.queued
	}
	return c.capped
}

// allStuck reports whether every request of the lane is stuck because of the lane's state.
func (c *classLane) allStuck() bool { return c.state == LaneDead || c.state == LaneBlocked }

// setMember adds x to h, removes it, or fixes its position, so that h contains x exactly if want is set.
func setMember[T heap.Item](h *heap.Heap[T], x T, want bool) {
	switch in := h.Contains(x); {
	case want && in:
		h.Fix(x)
	case want:
		h.Push(x)
	case in:
		h.Remove(x)
	}
}
