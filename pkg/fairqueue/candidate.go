package fairqueue

import "time"

// Admit says what the stock lets through at this moment.
type Admit struct {
	// Tiers are those with stock available to them.
	Tiers TierSet
	// Promote lets a starved head go past strict order and others' reservations.
	Promote bool
}

// Candidate is a request that may go now, with what its going commits. Only Peek and Claim make one. It is good until
// anybody comes or goes, or can go no more; it does not matter when meanwhile others can go again.
type Candidate struct {
	// Request is nil when there is none.
	Request *Request
	// Promoted: it goes as a starved head, out of order.
	Promoted bool
	// Starved is the waiter that lends its age to the promoted one's tier; often another one, maybe in another lane. If
	// its lane turns out to be full, it lends its age to nobody: close the lane and peek again.
	Starved *Request

	queue   *FairRequestQueue
	changes uint64      // q.changes when it was made
	admit   TierSet     // what Peek was told, for the account of weighted tiers
	turn    VirtualTime // the tag of its class, where classes share the tier
	claimed bool        // it goes by another right than its class's turn
}

// Peek is the request that goes next, if what the stock lets through allows one. It changes nothing but what time has
// changed: commit with Pop, or, when it cannot be placed, park its lane or its flow and peek again.
func (q *FairRequestQueue) Peek(now time.Time, admit Admit) Candidate {
	if q.queued == 0 {
		return Candidate{}
	}
	q.now = now
	if q.active {
		q.look()
	}
	var next *Request
	if q.config.TierMode == Weighted {
		next = q.peekWeighted(admit.Tiers)
	} else {
		for _, t := range q.tiers {
			if !admit.Tiers.Has(t.id) {
				continue
			}
			if next = t.head(); next != nil {
				break
			}
		}
	}
	if admit.Promote {
		if t := q.starvedTier(now, next); t != nil {
			c := q.candidate(t.starvedHead(), admit.Tiers)
			c.Promoted, c.Starved = true, t.oldest()
			return c
		}
	}
	if next == nil {
		return Candidate{}
	}
	return q.candidate(next, admit.Tiers)
}

// Claim is the candidate of the head of a line whose turn it need not be: a place is free for it and for nobody else, as
// for a preemptor. It is charged like any other.
func (q *FairRequestQueue) Claim(head *Request) Candidate {
	c := q.candidate(head, 0)
	c.claimed = true
	return c
}

func (q *FairRequestQueue) candidate(r *Request, admit TierSet) Candidate {
	c := Candidate{Request: r, queue: q, changes: q.changes, admit: admit}
	if cl := r.at.flow.class; len(cl.tier.classes) > 1 {
		c.turn = cl.turnTag(r)
	}
	return c
}

// look lets the disciplines whose tags change with time look at those.
func (q *FairRequestQueue) look() {
	for _, t := range q.tiers {
		for _, c := range t.classes {
			if was := c.restless; was != nil && !q.now.Before(c.until) {
				c.discipline.look(&c.level)
				was.flow.retag(nil)
				if c.restless != nil && c.restless != was {
					c.restless.flow.retag(nil)
				}
			}
		}
	}
}

// Pop commits a candidate: the request leaves the queue, and everybody on its path is charged. It panics when the
// candidate is none of this queue's, or the queue has changed since.
func (q *FairRequestQueue) Pop(c Candidate) {
	r := c.Request
	if c.queue != q || c.changes != q.changes {
		panic("fairqueue: Pop of a candidate that is not the queue's, or not any more")
	}
	if r.at.head != r {
		panic("fairqueue: Pop of a request that is not the head of its line")
	}
	q.changes++
	cl := r.at.flow.class
	q.dispatched()
	if c.Promoted {
		q.promote(cl.tier)
	}
	if q.config.TierMode == Weighted {
		q.chargeTier(cl.tier, r, c.admit)
	}
	q.queued--
	q.due.remove(r)
	if q.active {
		q.departed(r.at.flow, r)
	}
	cl.pop(&c)
	q.emptied(cl)
}
