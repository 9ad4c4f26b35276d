package app

import (
	"encoding/json"
	"net/http"

	"github.com/weir-epp/weir/internal/printable"
)

// rejectionsPage writes the last rejections as JSON, the newest first, each with its limit and the flows that hold most of it.
func (a *App) rejectionsPage(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	out := json.NewEncoder(printable.Writer(w))
	out.SetIndent("", "  ")
	_ = out.Encode(a.pool.controller.Rejections()) // an error: the reader is gone
}
