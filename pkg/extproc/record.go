package extproc

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/weir-epp/weir/pkg/decision"
	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/request"
)

// A request has a decision record if it is sampled (decisions.sample), or if its client requests one with
// x-weir-explain: 1 and is permitted to (decisions.explain). The record goes to the sink at the end of the stream. Such
// a client gets the response header
//
//	x-weir-decision  the record as JSON, with as many candidates as there is room for
//
// which is missing in the cases of queuestate.go. Other requests have no record and no cost for it.
const decisionHeader = request.ControlPrefix + "decision"

// mostDecision is the length of that header's value, in bytes.
const mostDecision = 4 << 10

// beginRecord begins the record of a request that gets one. It is called after the headers have been read.
func (st *mainStream) beginRecord() {
	if st.server.records == nil || !st.request.Explain && !st.isSampled() {
		return
	}
	st.record = &decision.Record{ID: st.line.id, Outcome: decision.Waiting}
}

// isSampled reports whether the request belongs to the sample.
func (st *mainStream) isSampled() bool {
	switch sample := st.cfg.sample; {
	case sample.None():
		return false
	case st.line.id == "":
		return sample.HasNumber(st.server.unnamed.Add(1))
	default:
		return sample.Has(st.line.id)
	}
}

// recordOffer makes the controller and the board observe the request about to be offered.
func (st *mainStream) recordOffer(r *flowcontrol.Request) {
	if st.record != nil {
		st.record.Model = st.request.Target
		r.Explain = true
		st.grant.placement.Watch()
	}
}

// recordGrant notes the decision on a granted request.
func (st *mainStream) recordGrant() {
	r := st.record
	if r == nil || st.grant.lease == nil {
		return
	}
	r.Outcome, r.Endpoint = decision.InFlight, st.grant.picked
	if f := st.grant.lease.Facts(); f != nil {
		r.Facts = *f
	}
	r.Placement = st.grant.placement.Explained()
}

// recordRejection notes the decision on a rejected request.
func (st *mainStream) recordRejection(rej *flowcontrol.Rejection) {
	r := st.record
	if r == nil {
		return
	}
	r.Outcome, r.RetryAfter = rej.Outcome.String(), rej.RetryAfter.Seconds()
	if st.grant.lease != nil {
		return
	}
	if r.Model == "" {
		r.Model = st.request.Target
	}
	if rej.Facts != nil {
		r.Facts = *rej.Facts
	} else {
		r.Flow, r.Arrived = st.flowKey(), st.begun.Round(0).UTC()
	}
	if st.grant.placement != nil {
		r.Placement = st.grant.placement.Explained()
	}
}

// endRecord passes the record on. It is called once, after settle.
func (st *mainStream) endRecord() {
	if r := st.record; r != nil {
		st.record = nil
		r.Outcome = st.outcome().String()
		st.server.records.Put(r)
	}
}

// tellsDecision reports whether the client gets the decision.
func (st *mainStream) tellsDecision() bool { return st.record != nil && st.request.Explain }

// decisionState returns the header for a client that gets the decision.
func (st *mainStream) decisionState() []*corev3.HeaderValueOption {
	c := st.record.ForClient()
	if text := c.Short(mostDecision); text != "" {
		return []*corev3.HeaderValueOption{setHeader(decisionHeader, text)}
	}
	return nil
}
