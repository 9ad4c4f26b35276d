package extproc

import (
	"strings"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// requestVerbosity is the lowest --v with a line in the log for each request.
const requestVerbosity = 1

// maxRequestID is the longest logged or recorded part of an x-request-id, in bytes.
const maxRequestID = 256

// beginLine begins the request's line if the log's verbosity or a reader of the tail needs it. It reads the request's
// ID if the line or a recording needs it.
func (st *mainStream) beginLine(h *extprocv3.HttpHeaders) {
	st.line.logged = st.server.log.V(requestVerbosity).Enabled()
	st.line.wanted = st.line.logged || st.server.tailed()
	if !st.line.wanted && !st.server.names && (st.server.records == nil || st.cfg.sample.None() && len(st.cfg.Explain) == 0) {
		return
	}
	for _, hv := range h.GetHeaders().GetHeaders() {
		if hv.GetKey() == "x-request-id" {
			id := headerValue(hv)
			st.line.id = strings.Clone(id[:min(len(id), maxRequestID)]) // the whole ID may be long
			return
		}
	}
}

// outcome returns the request's outcome as counted by the controller. It is called after settle.
func (st *mainStream) outcome() flowcontrol.Outcome {
	switch {
	case st.grant.lease == nil && st.rejection != nil:
		return st.rejection.Outcome
	case st.grant.lease == nil: // a panic before any outcome could be counted
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

// tellEnd writes the request's line, and tells the tail and the tracer. It is called once, after settle.
func (st *mainStream) tellEnd() {
	tailed := st.server.tailed()
	if !st.line.logged && !tailed && st.trace == nil {
		return
	}
	e := st.ended()
	if st.line.logged {
		st.logRequest(&e)
	}
	if tailed {
		st.server.tail.Ended(&e)
	}
	if st.trace != nil {
		t := st.traced(&e)
		st.server.tracer.Ended(&t)
	}
}

// logRequest writes the request's line. Clients choose some of the values; the log's encoder escapes them.
func (st *mainStream) logRequest(e *Ended) {
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
		values = append(values, "headersHeld", st.line.held)
	}
	st.server.log.V(requestVerbosity).Info("request", values...)
}

// servedElsewhere returns the serving endpoint, seen in the response or by the gate, if it is not the picked one.
func (st *mainStream) servedElsewhere() string {
	if e := st.response.elsewhere; e != "" {
		return e
	}
	return st.link.elsewhere()
}

// ended returns the ended request. It is called after settle.
func (st *mainStream) ended() Ended {
	e := Ended{
		At: time.Now(), ID: st.line.id, Flow: st.flowKey(), Tier: st.tierName(), Model: st.request.Model, TargetModel: st.request.Target,
		Wait: st.line.wait, Endpoint: st.grant.picked, Served: st.servedElsewhere(), Outcome: st.outcome(), Status: st.response.status,
		After: time.Since(st.begun),
	}
	if st.grant.lease != nil {
		e.Wait, e.Bypass = st.grant.waited()
	}
	if rej := st.rejection; rej != nil {
		e.Err, e.RetryAfter = rej.Err, rej.RetryAfter
		e.Status = st.cfg.status(rej.Outcome)
	} else if e.Outcome == flowcontrol.OutcomeClientCancelled {
		e.Status = st.cfg.status(e.Outcome)
	}
	if r := st.response.reading.Report(st.request.PromptOnly); r.Known && r.Whole {
		e.Usage, e.Known = r.Tokens, true
	}
	return e
}
