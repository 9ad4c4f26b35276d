package app

import (
	"net/http"

	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// The default and the largest number of flows on /debug/flows (?limit=).
const (
	flowsShown = 100
	flowsMost  = 10_000
)

// waitingFlows lists the waiting flows, with the times and the reasons.
type waitingFlows struct {
	Queued int `json:"queued"` // waiting requests, of all flows
	Flows  int `json:"flows"`  // flows with waiting requests, shown or not
	Stock  int `json:"stock"`  // leases held
	// Waiting has up to limit flows, roughly in order of expiry.
	Waiting []flowcontrol.FlowState `json:"waiting"`
}

// flowsPage writes the flows with waiting requests as JSON.
func (a *App) flowsPage(w http.ResponseWriter, r *http.Request) {
	limit, ok := flowsLimit(w, r)
	if !ok {
		return
	}
	state := a.pool.controller.State()
	writeJSON(w, waitingFlows{
		Queued: state.Queued, Flows: state.Flows, Stock: state.Stock, Waiting: a.pool.controller.Flows(limit),
	})
}
