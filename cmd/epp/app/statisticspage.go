package app

import (
	"net/http"
	"strconv"
)

// statisticsPage writes the queue's statistics as JSON, in MindRouter's terms.
func (a *App) statisticsPage(w http.ResponseWriter, r *http.Request) {
	limit, ok := flowsLimit(w, r)
	if !ok {
		return
	}
	writeJSON(w, a.pool.controller.Statistics(limit))
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
