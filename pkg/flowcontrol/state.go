package flowcontrol

import (
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

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
	Panics       uint64 // in decisions
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
		Capacity: c.ledger.Capacity(), LiveFlows: c.flows.n, Draining: c.draining,
		Panics: c.counts.panics, Attempts: c.counts.attempts, Successes: c.counts.successes,
		TimerStands: !c.armed.IsZero(), PromotedHeld: c.ledger.Promoted(),
	}
}

// Look calls look under the lock: for who reads what the Placer counts. It must be quick, and call nothing here.
func (c *RequestQueueController) Look(look func()) {
	c.mu.Lock()
	defer c.unlock()
	look()
}

// FlowState is a look at one flow with requests waiting.
type FlowState struct {
	Flow string `json:"flow"`
	Tier string `json:"tier"`
	// Waiting and InFlight are numbers of requests, WaitingCost the cost of the former.
	Waiting     int   `json:"waiting"`
	WaitingCost int64 `json:"waitingCost"`
	InFlight    int   `json:"inFlight"`
	// Since is how long its oldest waiter has waited, in seconds.
	Since float64 `json:"sinceSeconds"`
	// Weight and Entitled are its weight and its share of its tier (0 to 1).
	Weight   float64 `json:"weight"`
	Entitled float64 `json:"entitledShare"`
	// Why says what it waits for: "stock" (for the stock to fall), "cap" (it has as much in flight as it may have),
	// "endpoint" (no endpoint that it may use has room, or none is ready), "reservation" (what is free is held for higher
	// tiers) or "spacing" (for Config.ReleaseSpacing since the last release).
	Why string `json:"why"`
}

// Flows looks at up to limit flows with requests waiting, roughly those first that expire first.
func (c *RequestQueueController) Flows(limit int) []FlowState {
	now := time.Now()
	c.mu.Lock()
	defer c.unlock()
	names := map[int]string{}
	for _, t := range c.queue.Tiers() {
		names[t.ID] = t.Name
	}
	states := []FlowState{}
	available, free := fairqueue.TierSet(c.ledger.AvailableTo()), c.ledger.BelowLower()
	for _, v := range c.queue.View(limit) {
		s := FlowState{
			Flow: v.Flow, Tier: names[v.Tier], Waiting: v.Queued, WaitingCost: v.Cost,
			Since: now.Sub(v.Oldest).Seconds(), Weight: float64(v.Weight) / 1e6, Entitled: float64(v.Entitled) / 1e6,
			Why: "stock",
		}
		if a := c.flows.find(v.Tier, v.Flow); a != nil {
			s.InFlight = a.inflight
		}
		switch {
		case c.spaced && !v.Parked && !v.Closed:
			s.Why = "spacing"
		case v.Parked:
			s.Why = "cap"
		case v.Closed:
			s.Why = "endpoint"
		case free && !available.Has(v.Tier):
			s.Why = "reservation"
		}
		states = append(states, s)
	}
	return states
}
