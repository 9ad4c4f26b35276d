package fairqueue

import (
	"time"

	"github.com/weir-epp/weir/internal/heap"
)

// Lane names a set of backends that a request may use; "" is the whole pool.
type Lane string

// Request is a request in the queue. Callers embed it in a structure of their own, so the queue allocates nothing for
// it. Set the exported fields before Push, and do not change them while the request is queued. The fields are in order
// of use, because a waiter's memory has left the caches when it goes: the first cache line is used on arrival only.
type Request struct {
	// Flow is the key of the request's flow within its class.
	Flow string `graph:"key"`
	// Path names the request's class, flows under Flow, and urgency. nil means only the first class of its tier.
	Path *Path
	// Lane is the set of backends that the request may use.
	Lane Lane
	// Within is the time from its arrival to its client's own deadline (see Until): below 0 for a past deadline, and 0
	// without one. The TTL comes from the tier.
	Within time.Duration
	// Tier is the stable identifier of its tier (Tier.ID), which differs from its rank after a reload has added, removed
	// or moved tiers. An identifier that accepts no arrivals means the lowest tier. Push sets it to the tier that the
	// request has joined.
	Tier int
	// Cost is the request's work, clamped to 1 to MaxCost.
	Cost Cost
	// Owner belongs to the caller; the queue does not use it.
	Owner any

	// Its place in the queue, or class.left of the class that has charged its pop or bypass; nil if it never was in a
	// class, or left it without being dispatched. One field has both, to save memory, because only one counts at a
	// time.
	flowLane *flowLane
	flow     *flow // in which it is in flight, if the discipline needs to know; else nil

	prev *Request // its neighbours in the line, by arrival
	next *Request
	seq  uint64 // arrival sequence, the last tie-break of every order

	arrived  time.Duration // when it was first pushed, relative to the queue's epoch
	due      time.Duration // when it expires, likewise: its key in deadlines
	sooner   *Request      // its neighbours in the list of deadlines
	later    *Request
	inDue    int32 // its number in the heap of deadlines; 0 if it is in the list
	inFlight bool  // it is counted as in flight, which only some disciplines need
	ownDue   bool  // it expires at its client's deadline, before its TTL ends
	turns    turns

	extra *extra
	paid  receipt // the charge of its pop to the class's own flow
}

// Path has the names of a request beside its tier and its flow: its class, the flows under its flow, its urgency, and
// the length of its prompt.
type Path struct {
	// Ring is the name of its ring within its tier, and Class that of its class within the ring. An unknown name means the
	// first ring, or the first class of the ring. They have no effect without Config.Classes.
	Ring, Class string
	// Prompt is the length of its prompt, for Config.Classes with Limits.
	Prompt Prompt
	// Under has the keys of the flows under Request.Flow, outermost first; for example a tenant's user. Config.Levels
	// determines how many count; a missing key is "".
	Under []string `graph:"key"`
	// Role is the role of the innermost of these flows, or of Request.Flow; see Config.Roles. An unknown one is none.
	Role string
	// Strict is its strict priority: it goes before requests of its flow with a lower one. Among requests of equal Strict,
	// Priority counts as the class's Order defines. Both have an effect only with Config.Priorities.
	Strict, Priority int
}

// distant is a time of 73 years. A client's deadline further away than that is that far away.
const distant time.Duration = 1 << 61

// Until returns Request.Within for a request that arrives now and has this deadline; zero: none.
func Until(now, deadline time.Time) time.Duration {
	if deadline.IsZero() {
		return 0
	}
	if within := max(-distant, min(deadline.Sub(now), distant)); within != 0 {
		return within
	}
	return -1 // over at its arrival, as 0 would be
}

// maxLevels is the largest number of levels below a tier: the classes, and flows under flows.
const maxLevels = 4

// extra holds the fields that a request needs only with some configurations.
type extra struct {
	rank uint64             // its rank in its line's order
	row  rowEntry           // its entry in its line's row
	paid [maxLevels]receipt // the charges of its pop to its class and to flows under another, by depth

	// With weighted tiers, the charge of its pop.
	charge  uint64  // the number of that charge; 0: there is none
	charged Cost    // the cost charged now; 0: refunded
	earned  TierSet // the tiers that earned by it

	also []Lane // see CountAlsoIn
}

// more returns r's extra; it makes one if there is none.
func (r *Request) more() *extra {
	if r.extra == nil {
		r.extra = new(extra)
	}
	return r.extra
}

// CountAlsoIn names other lanes where the request's flow waits and competes for the request's backend. The request's
// charge and its corrections count there too. Call it before Pop or Bypassed; otherwise they count only in its own
// lane.
func (r *Request) CountAlsoIn(lanes []Lane) {
	if r.extra != nil || len(lanes) > 0 {
		r.more().also = lanes
	}
}

// also returns the lanes of CountAlsoIn.
func (r *Request) also() []Lane {
	if r.extra == nil {
		return nil
	}
	return r.extra.also
}

// receiptOf returns r's receipt at a depth: 0 is the class's own flow, 1 the flow under it and so on, and classDepth the
// class.
func (r *Request) receiptOf(depth int8) *receipt {
	if depth == 0 {
		return &r.paid
	}
	return &r.more().paid[depth]
}

// classDepth is the depth of the class's receipt.
const classDepth = maxLevels - 1

// MaxWait returns the pushed request's longest total wait: until the end of its TTL or its client's own deadline,
// whichever is earlier. It is below 0 if the deadline had passed on arrival.
func (r *Request) MaxWait() time.Duration { return r.due - r.arrived }

// AloneInLane reports whether the waiting request is the only one of its class in its lane.
func (r *Request) AloneInLane() bool { return r.flowLane.lane.queued == 1 }

// OnlyLane reports whether the waiting request is in its flow's only lane.
func (r *Request) OnlyLane() bool { return len(r.flowLane.outermost().flow.lanes) == 1 }

// Queued reports whether the request is in a queue now.
func (r *Request) Queued() bool { return r.flowLane != nil && r.flowLane.flow != nil }

// chargedTo returns the class that has charged the popped or bypassed request, or nil. The receipts belong to that
// class and its flows, even if it has been renamed or is gone.
func (r *Request) chargedTo() *class {
	if r.flowLane == nil || r.flowLane.flow != nil {
		return nil
	}
	return r.flowLane.lane.class
}

func (r *Request) key() heap.Key { return heap.Key{Value: uint64(r.due), Seq: r.seq} }

// oddDue is a request in the heap of deadlines.
type oddDue Request

func (r *oddDue) Key() heap.Key { return (*Request)(r).key() }

func (r *oddDue) Handle() *int32 { return &r.inDue }
