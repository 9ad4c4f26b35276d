package flowcontrol

import (
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
)

// State is a copy of the controller's accounts.
type State struct {
	dispatch.State
	TimerStands bool
}

// FlowState is the state of one flow with waiting requests.
type FlowState = dispatch.FlowState

// State returns the current accounts.
func (c *RequestQueueController) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return State{State: c.machine.State(), TimerStands: !c.armed.IsZero()}
}

// Flows returns the states of up to limit flows with waiting requests, roughly in order of expiry.
func (c *RequestQueueController) Flows(limit int) []FlowState {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.machine.Flows(now, limit)
}

// FlowsOf returns the states of these flows, by tier and class, as dispatch.Machine.FlowsOf does. It holds the lock for one
// flow at a time.
func (c *RequestQueueController) FlowsOf(flows []string) (states []FlowState) {
	for _, flow := range flows {
		states = append(states, c.flowsOf(flow)...)
	}
	return states
}

func (c *RequestQueueController) flowsOf(flow string) []FlowState {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.machine.FlowsOf(now, flow)
}

// Tiers returns the state of every tier, by rank.
func (c *RequestQueueController) Tiers() []dispatch.TierState {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.machine.Tiers(nil)
}

// Ended returns the number of requests ended since the start, and how many of them were not served.
func (c *RequestQueueController) Ended() (all, rejected uint64) {
	for o, n := range c.EndedBy() {
		all += n
		if Outcome(o) != OutcomeDispatched {
			rejected += n
		}
	}
	return all, rejected
}

// EndedBy returns the numbers of requests ended since the start, by Outcome.
func (c *RequestQueueController) EndedBy() (by [NumOutcomes]uint64) {
	for o, counter := range c.metrics.outcomes {
		by[o] = countOf(counter)
	}
	return by
}

// Classes returns the state of every class.
func (c *RequestQueueController) Classes() []dispatch.ClassState {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.machine.Classes()
}

// Statistics returns the queue's statistics, of up to limit flows.
func (c *RequestQueueController) Statistics(limit int) dispatch.Statistics {
	s := c.statistics(limit)
	for of, series := range c.metrics.models.all {
		if n := int(gaugeOf(series.length)); n > 0 {
			s.Queue.ByModel[of.model] += n
		}
	}
	return s
}

func (c *RequestQueueController) statistics(limit int) dispatch.Statistics {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.machine.Statistics(now, limit)
}

// Fairness returns one element for each tier with discipline VTC or FairShare.
func (c *RequestQueueController) Fairness() []dispatch.Fairness {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.machine.Fairness()
}

// Engines returns the states of the engines, by endpoint; none without Config.Circuits.
func (c *RequestQueueController) Engines() []dispatch.EngineState {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.machine.Engines(now, nil)
}

// Look calls look under the lock, so that it can read the Placer's counts. look must be quick, and must not call the
// controller.
func (c *RequestQueueController) Look(look func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	look()
}
