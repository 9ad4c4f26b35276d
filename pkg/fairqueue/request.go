package fairqueue

import "time"

// Lane names a set of backends that a request may use; "" is the whole pool.
type Lane string

// Request is one request in the queue. It is meant to lie inside the caller's own structure: the queue allocates
// nothing for it. The exported fields are set before Push and left alone until the request has left the queue.
type Request struct {
	// Flow is the key of its flow within its class.
	Flow string
	// Path says where else it belongs; nil: to the first class of its tier, and to no flow under Flow.
	Path *Path
	// Lane is the set of backends that it may use.
	Lane Lane
	// Tier is its tier's stable identifier, Tier.ID of Tiers, which is not its rank: they are equal until a reload adds,
	// removes or moves tiers. One that takes no arrivals any more, or never existed, is the lowest tier; Push writes
	// the one that the request has joined.
	Tier int
	// Cost is its work; clamped into 1 to MaxCost.
	Cost Cost
	// Deadline is the client's own; zero: none. The TTL is the tier's.
	Deadline time.Time
	// Owner is the caller's; the queue does not touch it.
	Owner any

	flowLane *flowLane // where it waits; nil: not queued
	prev     *Request  // neighbours in the flowLane's line, by arrival
	next     *Request
	seq      uint64 // arrival sequence, the last tie-break of every order

	due    time.Duration // when it expires, since the queue's epoch: the key of deadlines
	sooner *Request      // neighbours among the deadlines
	later  *Request
	inDue  int32 // number among the odd deadlines

	paid    receipt // what its pop has charged to its flow, for a refund
	extra   *extra
	arrived time.Time // when it was first pushed
	ttl     time.Duration
}

// Path is what a request is part of beside its tier and its flow.
type Path struct {
	// Class names its class within its tier; a name that no class has is the first one's. It says nothing without
	// Config.Classes.
	Class string
	// Under are the keys of the flows under Request.Flow, outermost first: a user of a tenant. As many of them count as
	// Config.Levels says; one that is missing is "".
	Under []string
	// Strict puts it before those of its flow with less of it. Among equals Priority counts, as their order has it. Both
	// say something only with Config.Priorities.
	Strict, Priority int
}

// maxLevels is the most levels that share: classes, and flows within flows.
const maxLevels = 4

// extra is what only some requests need, as their queue is configured.
type extra struct {
	rank   uint64             // its key in the order within its flow
	row    rowEntry           // in its line's row
	paid   [maxLevels]receipt // what its pop has charged to others than its flow
	charge uint64             // the account of weighted tiers: the number of the charge, and
	earned TierSet            // the tiers that earned by it

	inFlight bool // it counts as in flight, where that matters
}

// more is r's extra, made when there is none.
func (r *Request) more() *extra {
	if r.extra == nil {
		r.extra = new(extra)
	}
	return r.extra
}

// receiptOf is where the receipt of a sharer is kept: a flow's by its depth, 0 for one of the class itself, and the
// class's at classDepth.
func (r *Request) receiptOf(depth int) *receipt {
	if depth == 0 {
		return &r.paid
	}
	return &r.more().paid[depth]
}

const classDepth = maxLevels - 1

// Arrived is when the request was first pushed.
func (r *Request) Arrived() time.Time { return r.arrived }

// Expires is when its time in the queue is over: the earlier of its TTL and its own deadline.
func (r *Request) Expires() time.Time {
	ttl := r.arrived.Add(r.ttl)
	if !r.Deadline.IsZero() && r.Deadline.Before(ttl) {
		return r.Deadline
	}
	return ttl
}

// Queued reports whether the request is in a queue now.
func (r *Request) Queued() bool { return r.flowLane != nil }

// TTLOver reports whether, at now, its TTL has ended its wait, rather than the client's own deadline: whichever came
// first, however late one looks. At the same instant it is the TTL.
func (r *Request) TTLOver(now time.Time) bool {
	ttl := r.arrived.Add(r.ttl)
	return !now.Before(ttl) && r.Expires().Equal(ttl)
}

func (r *Request) key() key { return key{uint64(r.due), r.seq} }

func (r *Request) handle() *int32 { return &r.inDue }
