package extproc

import (
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// requestLine has the facts of a request that only the log needs. It exists only at a verbosity of requestVerbosity or
// more, so that it costs nothing otherwise.
type requestLine struct {
	wait time.Duration // of a rejected request
	held bool          // a gate held the response headers when the request was preempted
}

// requestVerbosity is the --v from which on each request has a line in the log.
const requestVerbosity = 1

// maxRequestID is how much of an x-request-id is logged or recorded, in bytes.
const maxRequestID = 256

// beginLine begins the request's line, if the log's verbosity asks for one, and reads the request's ID, if that or a
// recording does.
func (st *mainStream) beginLine(h *extprocv3.HttpHeaders) {
	if st.server.log.V(requestVerbosity).Enabled() {
		st.line = &requestLine{}
	} else if !st.server.names {
		return
	}
	for _, hv := range h.GetHeaders().GetHeaders() {
		if hv.GetKey() == "x-request-id" {
			id := headerValue(hv)
			st.id = id[:min(len(id), maxRequestID)]
			return
		}
	}
}

// noteRejection records the rejection, and for the log the facts of that moment.
func (st *mainStream) noteRejection(rej *flowcontrol.Rejection) {
	st.rejection = rej
	if st.line == nil {
		return
	}
	st.line.wait, _ = st.waited()
	if rej.Outcome == flowcontrol.OutcomePreempted {
		st.line.held = st.state == holding
		if st.link != nil {
			_, st.line.held = st.link.status()
		}
	}
}

// outcome returns how the request ended, as the controller has counted it. It is called after settle.
func (st *mainStream) outcome() flowcontrol.Outcome {
	switch {
	case st.lease == nil && st.rejection != nil:
		return st.rejection.Outcome
	case st.lease == nil: // a panic before anything could be counted
		return flowcontrol.OutcomeInternal
	}
	select {
	case <-st.lease.Preempted():
		return flowcontrol.OutcomePreempted
	default:
	}
	if st.completion.Unsent {
		return flowcontrol.OutcomeClientCancelled
	}
	return flowcontrol.OutcomeDispatched
}

// logRequest writes the request's line. It is called once, after settle. Clients choose some of the values; the log's
// encoder escapes them.
func (st *mainStream) logRequest() {
	if st.line == nil {
		return
	}
	outcome := st.outcome()
	status, wait, bypass := st.completion.Status, st.line.wait, false
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
		"id", st.id, "flow", st.flowKey(), "tier", st.tierName(), "model", st.request.Model, "targetModel", st.request.Target,
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
