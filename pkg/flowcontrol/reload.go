package flowcontrol

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/stock"
)

// Reconfigure changes the configuration of the running controller: all of it, or on an error nothing. Waiters keep
// their places and deadlines, leases and counters stay; a tier that is listed no more keeps its rank, takes no arrivals
// and drains. commit, if not nil, is called under the lock with the new band, so that the Placer's bounds change in the
// same step. The tier mode, the capacity mode and the discipline cannot change; MaxLabels stays what it was.
func (c *RequestQueueController) Reconfigure(cfg Config, commit func(stock.Config)) error {
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("flowcontrol: configuration: %w", err)
	}
	for _, t := range cfg.Queue.Tiers {
		c.metrics.tiers.of(t.Name) // looks their labels up before the lock
	}
	now := time.Now()
	c.mu.Lock()
	defer c.unlock()
	inUse := fairqueue.TierSet(c.ledger.InUse())
	if err := c.queue.Reconfigurable(cfg.Queue, inUse); err != nil {
		return fmt.Errorf("flowcontrol: configuration: %w", err)
	}
	// Nothing is refused from here on. Those that are gone make room for new ones.
	c.queue.Forget(inUse)
	c.forgetCounts()
	if err := c.queue.Reconfigure(cfg.Queue); err != nil {
		return fmt.Errorf("flowcontrol: configuration: %w", err)
	}
	c.config = cfg
	c.ledger.Configure(cfg.Stock)
	if commit != nil {
		c.contains("reconfiguration", func() { commit(cfg.Stock) })
	}
	c.victims.reorder(cfg.VictimOrder)
	c.arrange()
	c.contains("reconfiguration", func() { c.reopen(now) })
	c.resizePoppers()
	c.pump(now) // with Enabled false it releases everybody
	c.arm(now)
	return nil
}

// reopen looks at every lane again, after the endpoints or the bounds have changed.
func (c *RequestQueueController) reopen(now time.Time) {
	c.queue.OpenLanes()
	c.memory.reset()
	for a := range c.flows.all() { // caps may be gone or wider, and an endpoint more is room below them
		c.queue.UnparkFlow(a.tier, a.flow)
	}
	c.lanes = c.queue.Lanes(c.lanes[:0])
	slices.SortFunc(c.lanes, func(a, b *fairqueue.Request) int {
		return cmp.Or(cmp.Compare(a.Lane, b.Lane), cmp.Compare(a.Tier, b.Tier))
	})
	for _, r := range c.lanes {
		l, ready := r.Owner.(*Lease), true
		c.asks(l, func() { ready = c.placer.HasReady(l.placement, nil) })
		if ready || !r.Queued() {
			if r.Queued() {
				c.asks(l, func() { c.hunts(l) })
			}
			continue
		}
		if c.config.HoldWhenEmpty {
			c.queue.CloseLane(r, fairqueue.LaneDead)
			continue
		}
		for r := c.queue.HeadIn(r.Tier, r.Lane); r != nil; r = c.queue.HeadIn(r.Tier, r.Lane) {
			c.turnAway(now, r.Owner.(*Lease), ErrNoEndpoint)
		}
	}
	clear(c.lanes)
	if c.capped() {
		for _, a := range c.flows.inOrder() {
			c.repark(a)
		}
	}
}

// turnAway ends a waiter that is still in the queue.
func (c *RequestQueueController) turnAway(now time.Time, l *Lease, err error) {
	c.queue.Remove(&l.queued)
	l.end(err, c.retryAfter(now, l, err))
	c.leaves(l)
}

// releaseEverybody is what Enabled false comes to: all that wait go, in the queue's order and charged, whatever the
// bounds, caps and spacing say; whoever has no ready endpoint ends with ErrNoEndpoint.
func (c *RequestQueueController) releaseEverybody(now time.Time) {
	c.queue.OpenLanes() // the caps are gone already: capped
	everybody := fairqueue.Admit{Tiers: ^fairqueue.TierSet(0)}
	for next := c.queue.Peek(now, everybody); next.Request != nil; next = c.queue.Peek(now, everybody) {
		l := next.Request.Owner.(*Lease)
		c.asking = l
		if e := c.placer.Place(l.placement, Unbounded, nil); e != NoEndpoint {
			c.take(l, e, false)
			c.granted(now, next, l)
		} else {
			c.turnAway(now, l, ErrNoEndpoint)
		}
		c.asking = nil
	}
}

// forgetCounts drops the counters of identifiers that no tier has any more: the next one to get them starts at zero.
func (c *RequestQueueController) forgetCounts() {
	var known fairqueue.TierSet
	for _, t := range c.queue.Tiers() {
		known = known.With(t.ID)
	}
	for id := range stock.MaxTiers {
		if !known.Has(id) {
			c.counts.displaced[id], c.counts.promotions[id] = 0, 0
		}
	}
	for pair := range c.counts.preempted {
		if !known.Has(pair[0]) || !known.Has(pair[1]) {
			delete(c.counts.preempted, pair)
		}
	}
}
