package app

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/weir-epp/weir/internal/printable"
)

// statisticsPage writes the queue's statistics as JSON, in MindRouter's terms.
func (a *App) statisticsPage(w http.ResponseWriter, r *http.Request) {
	limit, ok := flowsLimit(w, r)
	if !ok {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	out := json.NewEncoder(printable.Writer(w))
	out.SetIndent("", "  ")
	_ = out.Encode(a.pool.controller.Statistics(limit)) // an error: the reader is gone
}

// flowsLimit returns the largest number of flows on a page. It answers a request with a wrong limit.
func flowsLimit(w http.ResponseWriter, r *http.Request) (limit int, ok bool) {
	text := r.URL.Query().Get("limit")
	if text == "" {
		return flowsShown, true
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > flowsMost {
		http.Error(w, "limit: must be from 1 to "+strconv.Itoa(flowsMost), http.StatusBadRequest)
		return 0, false
	}
	return n, true
}
