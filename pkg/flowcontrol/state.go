package flowcontrol

import (
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
)

// State is a look at the controller's accounts.
type State struct {
	dispatch.State
	TimerStands bool
}

// FlowState is a look at one flow with requests waiting.
type FlowState = dispatch.FlowState

// State returns the accounts at this moment.
func (c *RequestQueueController) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return State{State: c.machine.State(), TimerStands: !c.armed.IsZero()}
}

// Flows looks at up to limit flows with requests waiting, roughly those first that expire first.
func (c *RequestQueueController) Flows(limit int) []FlowState {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.machine.Flows(now, limit)
}

// Look calls look under the lock: for who reads what the Placer counts. It must be quick, and call nothing here.
func (c *RequestQueueController) Look(look func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	look()
}
