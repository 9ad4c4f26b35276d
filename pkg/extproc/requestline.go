package extproc

import (
	"strings"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"github.com/go-logr/logr"

	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// requestVerbosity is the lowest --v with a line in the log for each request.
const requestVerbosity = 1

// maxRequestID is the longest logged or recorded part of an x-request-id, in bytes.
const maxRequestID = 256

// requestLine has the facts of a request for the log and the tail only.
type requestLine struct {
	logged bool          // it has a line in the log
	wanted bool          // the log or the tail needs them
	id     string        // its x-request-id, perhaps a client's; empty unless the log, the tail or a recording needs it
	wait   time.Duration // of a rejected request
	held   bool          // a gate held the response headers when the request was preempted
}

// newLine begins the line of a request if the log's verbosity or a reader of the tail needs it. It reads the request's
// ID if the line or a recording needs it.
func (c *connection) newLine(h *extprocv3.HttpHeaders) (l requestLine) {
	s := c.server
	l.logged = s.log.V(requestVerbosity).Enabled()
	l.wanted = l.logged || s.tailed()
	if !l.wanted && !s.names && (s.records == nil || c.cfg.sample.None() && len(c.cfg.Explain) == 0) {
		return l
	}
	for _, hv := range h.GetHeaders().GetHeaders() {
		if hv.GetKey() == "x-request-id" {
			id := headerValue(hv)
			l.id = strings.Clone(id[:min(len(id), maxRequestID)]) // the whole ID may be long
			break
		}
	}
	return l
}

// log writes the line. Clients choose some of the values; the log's encoder escapes them.
func (l *requestLine) log(to logr.Logger, e *Ended) {
	values := []any{
		"id", e.ID, "flow", e.Flow, "tier", e.Tier, "model", e.Model, "targetModel", e.TargetModel,
		"wait", e.Wait, "bypass", e.Bypass, "endpoint", e.Endpoint, "outcome", e.Outcome.String(), "status", e.Status,
		"after", e.After,
	}
	if e.Served != "" {
		values = append(values, "served", e.Served)
	}
	if e.Err != nil {
		values = append(values, "error", e.Err.Error())
		if e.RetryAfter > 0 {
			values = append(values, "retryAfter", e.RetryAfter)
		}
	}
	if e.Outcome == flowcontrol.OutcomePreempted {
		values = append(values, "headersHeld", l.held)
	}
	to.V(requestVerbosity).Info("request", values...)
}
