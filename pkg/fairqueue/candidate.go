package fairqueue

import "time"

// Allowed is the stock's permission at the moment.
type Allowed struct {
	// Tiers are the tiers to which stock is available.
	Tiers TierSet
	// Promote permits a starved head to go ahead of higher tiers and of others' reservations.
	Promote bool
}

// Candidate is a request that may go now, with the changes that its pop will commit. Only Peek and Claim make one. It
// is valid until a request is pushed or removed, or can no longer go. A request that becomes able to go does not
// invalidate it.
type Candidate struct {
	// Request is nil if there is none.
	Request *Request
	// Promoted means that it goes as a starved head, out of order.
	Promoted bool
	// Starved is the waiter that lends its age to the promoted tier; often another one, perhaps in another lane. If its
	// lane turns out to be full, it does not lend its age: close the lane and peek again.
	Starved *Request

	queue   *FairRequestQueue
	changes uint64   // q.changes when it was made
	allowed TierSet  // Peek's argument, for the account of weighted tiers
	claimed bool     // it does not go by its class's turn
	turn    *Request // the request whose turn it takes; nil if it is its own
}

// Peek returns the next request among those that allowed permits. It changes nothing except tags that depend on the
// time. Commit the candidate with Pop; if it cannot be placed, close its lane or park its flow and peek again.
func (q *FairRequestQueue) Peek(now time.Time, allowed Allowed) Candidate {
	if q.queued == 0 {
		return Candidate{}
	}
	q.now = now
	if q.shares != nil {
		q.review()
	}
	next := q.next(allowed.Tiers)
	for q.lowers(next) {
		next = q.next(allowed.Tiers)
	}
	if allowed.Promote && q.guarded {
		if t := q.starvedTier(now, next); t != nil {
			head := t.starvedHead()
			for q.lowers(head) {
				head = t.starvedHead()
			}
			c := q.candidate(head, allowed.Tiers)
			c.Promoted, c.Starved = true, t.oldest()
			return c
		}
	}
	if next == nil {
		return Candidate{}
	}
	return q.candidate(next, allowed.Tiers)
}

// next returns the request that goes next among those of these tiers; nil if there is none.
func (q *FairRequestQueue) next(allowed TierSet) *Request {
	if q.config.TierMode == Weighted {
		return q.peekWeighted(allowed)
	}
	for _, t := range q.tiers {
		if !allowed.Has(t.id) {
			continue
		}
		if next := t.head(); next != nil {
			return next
		}
	}
	return nil
}

// Claim returns a candidate for the head of a line out of turn, because a slot is free for it alone, as for a
// preemptor. It is charged like any other.
func (q *FairRequestQueue) Claim(head *Request) Candidate {
	c := q.candidate(head, 0)
	c.claimed = true
	head.flowLane.outermost().unsettle()
	return c
}

func (q *FairRequestQueue) candidate(r *Request, allowed TierSet) Candidate {
	return Candidate{Request: r, queue: q, changes: q.changes, allowed: allowed}
}

// review recomputes the key of each flow above the threshold of FairShare, since the key changes with time and every
// charge.
func (q *FairRequestQueue) review() {
	for _, t := range q.tiers {
		for _, c := range t.classes {
			c.fair.review()
		}
	}
}

// lowers reports whether the flow of the next request r turns out to be above the threshold of FairShare, so that
// another flow may be next.
func (q *FairRequestQueue) lowers(r *Request) bool {
	if q.shares == nil || r == nil {
		return false
	}
	f := r.flowLane.outermost().flow
	return f.siblings.fair.lowers(&f.share)
}

// Pop commits a candidate: the request leaves the queue, and everything on its path is charged. It panics if the
// candidate is not this queue's, or if the queue has changed since.
func (q *FairRequestQueue) Pop(c Candidate) {
	r := c.Request
	if c.queue != q || c.changes != q.changes {
		panic("fairqueue: Pop of a candidate that is not the queue's, or not any more")
	}
	if r.flowLane.head != r && c.turn == nil {
		panic("fairqueue: Pop of a request that is not the head of its line")
	}
	q.changes++
	if c.turn != nil {
		c.overtake()
	}
	cl := r.flowLane.flow.class
	q.dispatched()
	if c.Promoted {
		q.promote(cl.tier)
	}
	if q.config.TierMode == Weighted {
		q.chargeTier(cl.tier, r, c.allowed)
	}
	q.queued--
	q.arrivedSum -= uint64(r.arrived)
	q.due.remove(r)
	q.departed(r.flowLane.flow, r)
	r.turns = r.turns.with(aside, c.claimed)
	cl.pop(&c)
	r.flowLane = cl.left
	q.left(cl)
}
