package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/weir-epp/weir/internal/printable"
	"github.com/weir-epp/weir/internal/status"
	"github.com/weir-epp/weir/pkg/extproc"
)

// tailTimeout bounds the writing of lines to a reader of the tail.
const tailTimeout = 10 * time.Second

// tailPage writes a line of JSON for each request that ends from now on (?flow=, ?outcome=), until the reader leaves. A
// reader that is too slow gets a last line with the reason, and is dropped.
func (a *App) tailPage(w http.ResponseWriter, r *http.Request) {
	reader := &tailReader{flow: r.URL.Query().Get("flow"), lines: make(chan extproc.Ended, tailLines)}
	if asked := r.URL.Query().Get("outcome"); asked != "" {
		reader.outcomes = map[string]bool{}
		for name := range strings.SplitSeq(asked, ",") {
			if !slices.Contains(outcomeNames(), name) {
				http.Error(w, fmt.Sprintf("outcome: %q: must be one of %s", name, strings.Join(outcomeNames(), ", ")), http.StatusBadRequest)
				return
			}
			reader.outcomes[name] = true
		}
	}
	if err := a.pool.tail.join(reader); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer a.pool.tail.leave(reader)
	out := &tailWriter{lines: json.NewEncoder(printable.Writer(w)), control: http.NewResponseController(w)}
	w.Header().Set("Content-Type", "application/x-ndjson")
	// The server's own limits are for short pages. The limit on reading would end this one.
	if out.control.SetReadDeadline(time.Time{}) != nil || out.flush() != nil {
		return
	}
	for {
		select {
		case e, more := <-reader.lines:
			if !more {
				_ = out.write(&status.Ended{Dropped: "this reader was too slow"})
				_ = out.flush()
				return
			}
			if out.write(lineOf(&e)) != nil || len(reader.lines) == 0 && out.flush() != nil {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

// tailWriter writes lines, each part with a deadline.
type tailWriter struct {
	lines   *json.Encoder
	control *http.ResponseController
}

func (w *tailWriter) write(e *status.Ended) error {
	if err := w.control.SetWriteDeadline(time.Now().Add(tailTimeout)); err != nil {
		return err
	}
	return w.lines.Encode(e)
}

func (w *tailWriter) flush() error {
	if err := w.control.SetWriteDeadline(time.Now().Add(tailTimeout)); err != nil {
		return err
	}
	return w.control.Flush()
}

func lineOf(e *extproc.Ended) *status.Ended {
	line := &status.Ended{
		At: e.At, ID: e.ID, Flow: e.Flow, Tier: e.Tier, Model: e.Model, TargetModel: e.TargetModel, Wait: e.Wait.Seconds(), Bypass: e.Bypass,
		Endpoint: e.Endpoint, Served: e.Served, Outcome: e.Outcome.String(), Status: e.Status, After: e.After.Seconds(), RetryAfter: e.RetryAfter.Seconds(),
	}
	if e.Err != nil {
		line.Error = e.Err.Error()
	}
	if e.Known {
		line.Usage = &status.Usage{Input: e.Usage.Input, Output: e.Usage.Output, Cached: e.Usage.Cached}
	}
	return line
}
