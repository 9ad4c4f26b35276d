package fairqueue

import "time"

// Lane names a set of backends that a request may use; "" is the whole pool.
type Lane string

// Request is one request in the queue. It is meant to lie inside the caller's own structure: the queue allocates
// nothing for it. The exported fields are set before Push and left alone until the request has left the queue.
type Request struct {
	// Flow is the key of its flow within its tier.
	Flow string
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

	at   *flowLane // where it waits; nil: not queued
	prev *Request  // neighbours in the flowLane's line
	next *Request
	seq  uint64 // arrival sequence, the last tie-break of every order

	due    time.Duration // when it expires, since the queue's epoch: the key of deadlines
	sooner *Request      // neighbours among the deadlines
	later  *Request
	inDue  int32 // number among the odd deadlines

	start    VirtualTime // its flow's start when it was popped, and
	charged  VirtualTime // what it added to it, for a refund
	charge   uint64      // the account of weighted tiers: the number of the charge, and
	earned   TierSet     // the tiers that earned by it
	newcomer bool        // whether its flow was a newcomer
	arrived  time.Time   // when it was first pushed
	ttl      time.Duration
}

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

// Queued says whether the request is in a queue now.
func (r *Request) Queued() bool { return r.at != nil }

// TTLOver says whether at now its TTL is what ended its wait, rather than the client's own deadline: whichever came
// first, however late one looks. At the same instant it is the TTL.
func (r *Request) TTLOver(now time.Time) bool {
	ttl := r.arrived.Add(r.ttl)
	return !now.Before(ttl) && r.Expires().Equal(ttl)
}

func (r *Request) key() key { return key{uint64(r.due), r.seq} }

func (r *Request) handle() *int32 { return &r.inDue }

// line is an intrusive list of requests in order of arrival: removal is O(1) anywhere.
type line struct {
	first, last *Request
	n           int
}

// insert puts r in its place by arrival: at the end, but for one that comes back into the queue. Those before it
// then are others that came back, since a lane's line is popped in order.
func (l *line) insert(r *Request) {
	after := l.last
	if after != nil && after.seq > r.seq {
		after = nil
		for n := l.first; n.seq < r.seq; n = n.next {
			after = n
		}
	}
	r.prev = after
	if after != nil {
		r.next = after.next
		after.next = r
	} else {
		r.next = l.first
		l.first = r
	}
	if r.next != nil {
		r.next.prev = r
	} else {
		l.last = r
	}
	l.n++
}

func (l *line) remove(r *Request) {
	if r.prev != nil {
		r.prev.next = r.next
	} else {
		l.first = r.next
	}
	if r.next != nil {
		r.next.prev = r.prev
	} else {
		l.last = r.prev
	}
	r.prev, r.next = nil, nil
	l.n--
}
