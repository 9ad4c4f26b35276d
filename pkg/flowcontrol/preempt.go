package flowcontrol

import (
	"slices"
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// mayBeVictim says whether a lease of this tier, granted in order, could ever be preempted.
func (c *RequestQueueController) mayBeVictim(tier int) bool {
	if c.config.Queue.TierMode == fairqueue.Weighted {
		return false
	}
	for _, id := range c.byRank {
		if id == tier {
			return false
		}
		if c.preempts.Has(id) {
			return true
		}
	}
	return false
}

// preemptFor looks for a lease that l may take over, and takes it over. The caller has found that nothing is available
// to l. It is refused when l's client is gone, when its flow is at its cap, and when the victim's place would not be
// enough: more than the capacity is in use, or it is held back for a higher tier, or no victim is at an endpoint that l
// may use.
func (c *RequestQueueController) preemptFor(now time.Time, l *Lease) bool {
	tier := l.queued.Tier
	switch {
	case c.victims.n == 0 || !c.preempts.Has(tier) || c.config.Queue.TierMode == fairqueue.Weighted:
		return false
	case c.ledger.Headroom(tier) < 0 || !c.ledger.BelowUpperWithout(1):
		return false
	case c.atCap(l.flow) || l.ctx.Err() != nil:
		return false
	}
	v := c.victimFor(l, c.note(l))
	if v == nil {
		return false
	}
	c.takeOver(now, l, v)
	return true
}

// victimFor is the lease that l would take over: of the lowest tier below l's that has one, the first in victim order.
// That there is none is noted of l's lane, unless it is for the caps of l's own flow.
func (c *RequestQueueController) victimFor(l *Lease, n *laneNote) *Lease {
	tier := l.queued.Tier
	if n.barren(tier) {
		return nil
	}
	full := c.fullFor(l.flow)
	capped := false
	usable := func(e Endpoint) bool {
		if slices.Contains(full, e) {
			capped = true
			return false
		}
		return true
	}
	for i := len(c.byRank) - 1; i >= 0 && c.byRank[i] != tier; i-- {
		v := c.victims.first(c.byRank[i], n, func(e Endpoint) bool {
			return (!n.whole || c.placer.CanServe(l.placement, e)) && usable(e)
		})
		if v == nil {
			continue
		}
		if !c.placer.CanTakeOver(l.placement, v.endpoint) {
			n.over = n.over.With(tier) // wherever in the lane
			return nil
		}
		return v
	}
	if !capped {
		n.none = n.none.With(tier)
	}
	return nil
}

// takeOver passes v's place to l in one transition: the stock does not change. If v's destination was already sent, its
// stream is told; otherwise v goes back to its place in the queue and nobody will know.
func (c *RequestQueueController) takeOver(now time.Time, l, v *Lease) {
	e := v.endpoint
	c.placer.PlaceAt(l.placement, e) // first: a panic of it leaves v alone
	l.endpoint = e
	c.counts.preempted[[2]int{v.held.Tier(), l.queued.Tier}]++
	c.victims.remove(v)
	c.ledger.Settle(&v.held)
	c.uncount(v)
	if v.stage == stageGranted {
		c.waitsAgain(v)
		c.flows.settled(v.flow)
		v.stage, v.endpoint = stageWaiting, NoEndpoint
		c.queue.Requeue(&v.queued)
		c.hunts(v)
		c.released = time.Time{} // its own came to nothing
	} else {
		c.flows.settled(v.flow)
		v.stage = stageEnded
		v.err, v.retry = ErrPreempted, c.retryAfter(now, v, ErrPreempted)
		v.series.stock.Dec()
		close(v.preempted)
	}
	c.giveBack(e)
	c.repark(v.flow)
	c.take(l, e, false)
}

// preemptForHeads lets the heads of the tiers that may preempt do so, highest first; it says whether one did.
func (c *RequestQueueController) preemptForHeads(now time.Time) bool {
	if c.victims.n == 0 {
		return false
	}
	for _, id := range c.byRank {
		if !c.preempts.Has(id) || c.ledger.BelowUpper() && c.ledger.Available(id) > 0 {
			continue // inside the band it is released when the stock is below the lower bound
		}
		if c.ledger.Headroom(id) < 0 || !c.ledger.BelowUpperWithout(1) || len(c.memory.hunts[id]) == 0 {
			continue
		}
		// One head without a victim in its lane does not stand in the way of those in other lanes.
		c.heads = c.heads[:0]
		c.memory.leave(id, func(n *laneNote) bool {
			head := c.queue.HeadIn(id, n.lane)
			if head != nil {
				c.heads = append(c.heads, head)
			}
			return head == nil
		})
		fairqueue.SortHeads(c.heads)
		if c.headPreempts(now, id) {
			return true
		}
	}
	return false
}

// headPreempts lets the first of c.heads, of a tier, preempt that can; it reports whether one did. The lanes that have
// none to take over hunt no more.
func (c *RequestQueueController) headPreempts(now time.Time, tier int) (went bool) {
	for _, head := range c.heads {
		l := head.Owner.(*Lease)
		c.asking = l
		if went = c.preemptFor(now, l); went {
			c.granted(now, fairqueue.Candidate{Request: head}, l)
		}
		c.asking = nil
		if went {
			break
		}
	}
	c.memory.leave(tier, func(n *laneNote) bool { return n.barren(tier) })
	return went
}
