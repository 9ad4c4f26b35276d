package extproc

import (
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// requestVerbosity is the --v from which on each request has a line in the log.
const requestVerbosity = 1

// maxRequestID is how much of an x-request-id is logged or recorded, in bytes.
const maxRequestID = 256

// beginLine begins the request's line, if the log's verbosity asks for one, and reads the request's ID, if that or a
// recording does.
func (st *mainStream) beginLine(h *extprocv3.HttpHeaders) {
	st.line.wanted = st.server.log.V(requestVerbosity).Enabled()
	if !st.line.wanted && !st.server.names {
		return
	}
	for _, hv := range h.GetHeaders().GetHeaders() {
		if hv.GetKey() == "x-request-id" {
			id := headerValue(hv)
			st.line.id = id[:min(len(id), maxRequestID)]
			return
		}
	}
}

// outcome returns how the request ended, as the controller has counted it. It is called after settle.
func (st *mainStream) outcome() flowcontrol.Outcome {
	switch {
	case st.grant.lease == nil && st.rejection != nil:
		return st.rejection.Outcome
	case st.grant.lease == nil: // a panic before anything could be counted
		return flowcontrol.OutcomeInternal
	}
	select {
	case <-st.grant.lease.Preempted():
		return flowcontrol.OutcomePreempted
	default:
	}
	if st.grant.sent.IsZero() {
		return flowcontrol.OutcomeClientCancelled
	}
	return flowcontrol.OutcomeDispatched
}

// logRequest writes the request's line. It is called once, after settle. Clients choose some of the values; the log's
// encoder escapes them.
func (st *mainStream) logRequest() {
	if !st.line.wanted {
		return
	}
	outcome := st.outcome()
	status, wait, bypass := st.response.status, st.line.wait, false
	if st.grant.lease != nil {
		wait, bypass = st.grant.waited()
	}
	if rej := st.rejection; rej != nil || outcome == flowcontrol.OutcomeClientCancelled {
		if rej == nil {
			rej = &flowcontrol.Rejection{Outcome: outcome}
		}
		status = st.cfg.status(rej.Outcome)
	}
	values := []any{
		"id", st.line.id, "flow", st.flowKey(), "tier", st.tierName(), "model", st.request.Model, "targetModel", st.request.Target,
		"wait", wait, "bypass", bypass, "endpoint", st.grant.picked, "outcome", outcome.String(), "status", status,
		"after", time.Since(st.begun),
	}
	if elsewhere := st.servedElsewhere(); elsewhere != "" {
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

// servedElsewhere returns the endpoint that served, as the response or the gate has seen it, if it is not the one picked.
func (st *mainStream) servedElsewhere() string {
	if e := st.response.elsewhere; e != "" {
		return e
	}
	return st.link.elsewhere()
}
