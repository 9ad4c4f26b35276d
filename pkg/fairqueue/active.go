package fairqueue

import (
	"time"
)

// Some disciplines charge requests that do not wait, or correct charges later. For them a flow is active while it has a
// request queued or in flight, and the queue must learn of every dispatch and its end. Active flows are always known.
// The last keptFlows inactive flows of a class, and the last keptUnder under each active flow, are kept with the
// discipline's state; all others start over when they return. Discipline none ignores requests in flight, so this costs
// it nothing. Configured classes are always known.

// Bypassed must be called for each request that is dispatched without waiting. In wfq the request leaves no tag (as in
// the seed) and is not counted as in flight, but it counts for the promotion budget.
func (q *FairRequestQueue) Bypassed(now time.Time, r *Request) {
	q.dispatched()
	if !q.bypasses {
		return
	}
	q.now = now
	if q.shares != nil {
		q.shares.stirs(false)
	}
	t := q.tierOf(r.Tier)
	r.Tier, r.Cost = t.id, r.Cost.clamp()
	c := t.classOf(r)
	f, stale := q.flowOf(c, r, true), false
	q.weigh(f, r)
	q.departed(f, r)
	r.turns = r.turns.with(aside, true)
	for ; f != nil; f = f.above {
		if f.siblings.discipline.bypassed(&f.siblings.level, &f.share, r, r.receiptOf(f.depth)) {
			f.retag(nil)
		}
		stale = stale || f.siblings.stale
	}
	if stale {
		c.siblings.freshen()
	}
	r.flowLane = c.left
}

// Completed must be called when r, which was popped or bypassed, is no longer in flight. Only the first call for a
// dispatch counts.
func (q *FairRequestQueue) Completed(r *Request) {
	if !r.inFlight {
		return
	}
	c, f := r.chargedTo(), r.flow
	q.landed(r)
	for ; f != nil; f = f.above {
		if f.above == nil && q.attained != nil && !r.turns.has(aside) {
			q.attained.add(f, r, r.paid.charged, r.paid.charged-increment(r.Cost, r.paid.weight))
		}
		if f.inflight--; f.inflight == 0 && f.queued == 0 {
			f.siblings.discipline.end(&f.siblings.level, &f.share)
			f.siblings.flows.keep(f)
		}
	}
	c.inflight--
	q.emptied(c)
	if q.shares != nil {
		q.shares.settles()
	}
}

// CountsIdle reports whether CompletedAt needs the time: with FairShare.
func (q *FairRequestQueue) CountsIdle() bool { return q.shares != nil }

// CompletedAt is Completed with the time, which burst credits need.
func (q *FairRequestQueue) CompletedAt(now time.Time, r *Request) {
	if q.shares != nil && !now.IsZero() {
		q.now = now
	}
	q.Completed(r)
}

// landed counts r as no longer in flight in the queue.
func (q *FairRequestQueue) landed(r *Request) {
	if r.inFlight {
		q.inflight--
	}
	r.inFlight, r.flow = false, nil
}

// Adjust raises the charges of r, which is in flight, because it costs more than estimated: those of its tier and class
// and of the flows on its path.
func (q *FairRequestQueue) Adjust(now time.Time, r *Request, to Cost) {
	to = to.clamp()
	q.correct(now, r, to, discipline.adjust)
	if r.extra != nil && to > r.extra.charged {
		q.correctTier(r, to)
	}
}

// TrueUp corrects the charges of r to its actual cost: those of its tier and class and of the flows on its path. After
// Completed it corrects only the parts still known: the tier, unless it has started over or the configuration has
// changed since the pop; the class, as long as it shares its tier; and the flows that are active or were among the last
// active ones. A flow that has started over meanwhile is corrected all the same.
func (q *FairRequestQueue) TrueUp(now time.Time, r *Request, to Cost) {
	to = to.clamp()
	q.correct(now, r, to, discipline.trueUp)
	q.correctTier(r, to)
}

// Refund takes back all charges of r, a request in flight whose dispatch is undone. It is TrueUp to no cost, so a flow
// that has started over meanwhile gets no credit. (Requeue is for requests that wait and will be charged again.)
func (q *FairRequestQueue) Refund(now time.Time, r *Request) {
	q.correct(now, r, 0, discipline.trueUp)
	q.correctTier(r, 0)
}

func (q *FairRequestQueue) correct(
	now time.Time, r *Request, to Cost, how func(discipline, *level, *share, *Request, Cost, *receipt) bool,
) {
	c := r.chargedTo()
	if !q.known(c) {
		return // its tier, its class and its flows may be gone by now
	}
	q.now = now
	q.changes++
	if p := c.receipt(r); p != nil {
		how(c.ring.discipline, &c.ring.level, &c.share, r, to, p)
		c.changed()
	}
	if !q.active {
		return
	}
	was := r.paid.charged
	f := r.flow
	if f == nil {
		f = q.flowOf(c, r, false)
	}
	for ; f != nil; f = f.above {
		if how(f.siblings.discipline, &f.siblings.level, &f.share, r, to, r.receiptOf(f.depth)) {
			f.retag(nil)
		}
		if f.above == nil && q.attained != nil && !r.inFlight && !r.turns.has(aside) {
			by := r.paid.charged - was
			q.attained.add(f, r, by, by)
		}
	}
}

// departed counts r as in flight in flow f.
func (q *FairRequestQueue) departed(f *flow, r *Request) {
	r.inFlight = true
	q.inflight++
	f.class.inflight++
	if !q.active {
		return
	}
	for r.flow = f; f != nil; f = f.above {
		f.inflight++
	}
}

// returned counts r, which waits again in flow f, as no longer in flight there.
func (q *FairRequestQueue) returned(f *flow, r *Request) {
	if !r.inFlight {
		return
	}
	q.landed(r)
	f.class.inflight--
	for ; f != nil && q.active; f = f.above {
		f.inflight--
	}
}

// flowOf returns r's flow in class c, whether any request waits in it or not. If the flow has been forgotten, it returns
// nil, or a new one if wanted is set.
func (q *FairRequestQueue) flowOf(c *class, r *Request, wanted bool) (f *flow) {
	if f = c.known(r); q.config.levels() == 1 { // nearly always
		if wanted && (f == nil || !f.tracked && !f.resting) {
			key := c.flowKey(r)
			f = c.flows.claim(key, f)
			q.prepare(f, c, nil, key, r)
			c.flows.rest(f)
		}
		return f
	}
	f = nil
	for depth := range q.config.levels() {
		above, key := f, c.keyAt(r, depth)
		siblings := siblingsUnder(c, above)
		if f = siblings.flows.known[key]; wanted && (f == nil || !f.tracked && !f.resting) {
			f = siblings.flows.claim(key, f)
			q.prepare(f, c, above, key, r)
			siblings.flows.rest(f)
		}
		if f == nil {
			return nil
		}
		if f.under == nil && depth < q.config.levels()-1 {
			return nil // kept without the flows under it
		}
	}
	return f
}
