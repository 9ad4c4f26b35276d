package flowcontrol

import "time"

// Drain rejects whatever waits, and every request from now on, with ErrDraining. Leases run to their end.
func (c *RequestQueueController) Drain() {
	now := time.Now()
	c.mu.Lock()
	defer c.unlock()
	c.draining = true
	for _, r := range c.queue.Drain(nil) {
		l := r.Owner.(*Lease)
		c.flows.left(l.flow)
		l.end(ErrDraining, c.retryAfter(now, l, ErrDraining))
	}
	c.arm(now)
}

// State is a look at the controller's accounts.
type State struct {
	Queued       int   // waiting requests
	Flows        int   // flows with waiting requests
	Stock        int   // leases held
	Cost         int64 // Σ cost of the leases held
	Ready        int   // ready backends
	LowerBound   float64
	Watermark    float64
	UpperBound   float64
	Capacity     int // upper bound rounded up
	LiveFlows    int // flows with requests waiting or in flight
	Draining     bool
	Attempts     uint64 // dequeue attempts
	Successes    uint64
	TimerStands  bool
	PromotedHeld int
}

// State returns the accounts at this moment.
func (c *RequestQueueController) State() State {
	c.mu.Lock()
	defer c.unlock()
	band := c.ledger.Band()
	return State{
		Queued: c.queue.Len(), Flows: c.queue.Flows(), Stock: c.ledger.Stock(), Cost: c.ledger.Cost(),
		Ready:      c.ledger.Ready(),
		LowerBound: band.Lower.Float(), Watermark: band.Watermark.Float(), UpperBound: band.Upper.Float(),
		Capacity: c.ledger.Capacity(), LiveFlows: len(c.flows.live), Draining: c.draining,
		Attempts: c.counts.attempts, Successes: c.counts.successes,
		TimerStands: !c.armed.IsZero(), PromotedHeld: c.ledger.Promoted(),
	}
}
