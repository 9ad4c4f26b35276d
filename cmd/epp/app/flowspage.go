package app

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// How many flows /debug/flows shows by default and at most (?limit=).
const (
	flowsShown = 100
	flowsMost  = 10_000
)

// waitingFlows lists who waits, since when and why.
type waitingFlows struct {
	Queued int `json:"queued"` // waiting requests, of all flows
	Flows  int `json:"flows"`  // flows with waiting requests, shown or not
	Stock  int `json:"stock"`  // leases held
	// Waiting has up to limit flows, roughly in the order in which their requests expire.
	Waiting []waitingFlow `json:"waiting"`
}

// waitingFlow is flowcontrol.FlowState, with the names of its fields on the page.
type waitingFlow struct {
	Flow        string  `json:"flow"`
	Tier        string  `json:"tier"`
	Class       string  `json:"class,omitempty"`
	Waiting     int     `json:"waiting"`
	WaitingCost int64   `json:"waitingCost"`
	InFlight    int     `json:"inFlight"`
	Since       float64 `json:"sinceSeconds"`
	Weight      float64 `json:"weight"`
	Entitled    float64 `json:"entitledShare"`
	Why         string  `json:"why"`
}

// flowsPage writes the flows with waiting requests as JSON.
func (a *App) flowsPage(w http.ResponseWriter, r *http.Request) {
	limit := flowsShown
	if text := r.URL.Query().Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > flowsMost {
			http.Error(w, "limit: must be from 1 to "+strconv.Itoa(flowsMost), http.StatusBadRequest)
			return
		}
		limit = n
	}
	state, waiting := a.pool.controller.State(), []waitingFlow{}
	for _, f := range a.pool.controller.Flows(limit) {
		waiting = append(waiting, waitingFlow(f))
	}
	w.Header().Set("Content-Type", "application/json")
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	_ = out.Encode(waitingFlows{ // an error: the reader is gone
		Queued: state.Queued, Flows: state.Flows, Stock: state.Stock, Waiting: waiting,
	})
}
