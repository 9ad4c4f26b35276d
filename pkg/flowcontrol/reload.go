package flowcontrol

import (
	"fmt"
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
	c.queue.Forget(fairqueue.TierSet(c.ledger.InUse()))
	c.forgetCounts()
	if err := c.queue.Reconfigure(cfg.Queue); err != nil {
		return fmt.Errorf("flowcontrol: configuration: %w", err)
	}
	c.config = cfg
	c.ledger.Configure(cfg.Stock)
	if commit != nil {
		commit(cfg.Stock)
	}
	c.victims.reorder(cfg.VictimOrder)
	c.arrange()
	c.reopen()
	c.resizePoppers()
	c.pump(now)
	c.arm(now)
	return nil
}

// reopen looks at every lane again, after the endpoints or the bounds have changed.
func (c *RequestQueueController) reopen() {
	c.queue.OpenLanes()
	clear(c.closed)
	for a := range c.flows.all() { // caps may be gone or wider, and an endpoint more is room below them
		c.queue.UnparkFlow(a.tier, a.flow)
	}
	c.lanes = c.queue.Lanes(c.lanes[:0])
	for _, r := range c.lanes {
		if l := r.Owner.(*Lease); !c.placer.HasReady(l.placement, nil) {
			c.queue.CloseLane(r, true)
		}
	}
	clear(c.lanes)
	for a := range c.flows.all() {
		c.repark(a)
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
