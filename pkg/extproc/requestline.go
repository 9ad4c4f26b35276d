package extproc

import (
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// requestLine is what only the log's line of a request needs to know; there is none at a lower verbosity than
// requestVerbosity, so that nobody pays for it.
type requestLine struct {
	id   string        // the request's x-request-id, which a client may have chosen
	wait time.Duration // of a request that was turned away
	held bool          // a gate held the answer's headers when it was preempted
}

// requestVerbosity is the --v at which each request has a line.
const requestVerbosity = 1

// maxRequestID is the most of an x-request-id that is logged, in bytes.
const maxRequestID = 256

// beginLine begins the request's line, if it shall have one.
func (st *stream) beginLine(h *extprocv3.HttpHeaders) {
	if !st.server.log.V(requestVerbosity).Enabled() {
		return
	}
	st.line = &requestLine{}
	for _, hv := range h.GetHeaders().GetHeaders() {
		if hv.GetKey() == "x-request-id" {
			id := headerValue(hv)
			st.line.id = id[:min(len(id), maxRequestID)]
			return
		}
	}
}

// turnedAway notes what a rejection's line says of the moment of the rejection.
func (st *stream) turnedAway(rej *flowcontrol.Rejection) {
	st.rejection = rej
	if st.line == nil {
		return
	}
	st.line.wait, _ = st.waited()
	if rej.Outcome == flowcontrol.OutcomePreempted {
		st.line.held = st.state == gated
		if st.tie != nil {
			_, st.line.held = st.tie.status()
		}
	}
}

// outcome is how the request ended, as the controller has counted it. It is known when everything is settled.
func (st *stream) outcome(unsent bool) flowcontrol.Outcome {
	switch {
	case st.lease == nil && st.rejection != nil:
		return st.rejection.Outcome
	case st.lease == nil: // a panic before there was anything to count
		return flowcontrol.OutcomeInternal
	}
	select {
	case <-st.lease.Preempted():
		return flowcontrol.OutcomePreempted
	default:
	}
	if unsent {
		return flowcontrol.OutcomeClientCancelled
	}
	return flowcontrol.OutcomeDispatched
}

// logRequest writes the request's line. It is called once, after its settlement. Every value is one of the line's
// fields, which the log's encoder escapes: clients choose some of them.
func (st *stream) logRequest() {
	if st.line == nil {
		return
	}
	outcome := st.outcome(st.state == collecting)
	status, wait, bypass := st.status, st.line.wait, false
	if st.lease != nil {
		wait, bypass = st.waited()
	}
	if rej := st.rejection; rej != nil || outcome == flowcontrol.OutcomeClientCancelled {
		if rej == nil {
			rej = &flowcontrol.Rejection{Outcome: outcome}
		}
		status = st.cfg.status(rej.Outcome)
	}
	values := []any{
		"id", st.line.id, "flow", st.flowSaid(), "tier", st.tierSaid(), "model", st.model, "targetModel", st.target,
		"wait", wait, "bypass", bypass, "endpoint", st.picked, "outcome", outcome.String(), "status", status,
		"after", time.Since(st.begun),
	}
	if elsewhere := st.servedBy(); elsewhere != "" {
		values = append(values, "served", elsewhere)
	}
	if rej := st.rejection; rej != nil {
		values = append(values, "error", rej.Err.Error())
		if rej.RetryAfter > 0 {
			values = append(values, "retryAfter", rej.RetryAfter)
		}
	}
	if outcome == flowcontrol.OutcomePreempted {
		values = append(values, "headersHeld", st.line.held)
	}
	st.server.log.V(requestVerbosity).Info("request", values...)
}
