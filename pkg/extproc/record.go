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

// record is the decision record of one request. Its methods do nothing for a nil record.
type record struct {
	decision.Record
	told bool // the client gets it
}

// newRecord returns the record of a request whose headers have been read, or nil if it gets none.
func (c *connection) newRecord(q *request.Request, id string) *record {
	if c.server.records == nil || !q.Explain && !c.samples(id) {
		return nil
	}
	r := &record{Record: decision.Record{ID: id, Outcome: decision.Waiting}, told: q.Explain}
	r.Arrived = c.begun.Round(0).UTC()
	return r
}

// samples reports whether the request with this ID belongs to the sample.
func (c *connection) samples(id string) bool {
	switch sample := c.cfg.sample; {
	case sample.None():
		return false
	case id == "":
		return sample.HasNumber(c.server.unnamed.Add(1))
	default:
		return sample.Has(id)
	}
}

// offer makes the controller and the board observe a request that is about to be offered.
func (r *record) offer(offered *flowcontrol.Request, target string, p Placement) {
	if r != nil {
		r.Model = target
		offered.Explain = true
		p.Watch()
	}
}

// grant notes the decision on a granted request.
func (r *record) grant(g *grant) {
	if r == nil || g.lease == nil {
		return
	}
	r.Outcome, r.Endpoint = decision.InFlight, g.picked
	if f := g.lease.Facts(); f != nil {
		r.Facts = *f
	}
	r.Placement = g.placement.Explained()
}

// reject notes the decision on a rejected request, which was granted before if it was preempted.
func (r *record) reject(rej *flowcontrol.Rejection, q *request.Request, g *grant) {
	if r == nil {
		return
	}
	r.Outcome, r.RetryAfter = rej.Outcome.String(), rej.RetryAfter.Seconds()
	if g.lease != nil {
		return
	}
	if r.Model == "" {
		r.Model = q.Target
	}
	if rej.Facts != nil {
		r.Facts = *rej.Facts
	} else {
		r.Flow = g.flow(q)
	}
	if g.placement != nil {
		r.Placement = g.placement.Explained()
	}
}

// tells reports whether the client gets the decision.
func (r *record) tells() bool { return r != nil && r.told }

// header returns the header for a client that gets the decision; none for others.
func (r *record) header() []*corev3.HeaderValueOption {
	if !r.tells() {
		return nil
	}
	c := r.ForClient()
	if text := c.Short(mostDecision); text != "" {
		return []*corev3.HeaderValueOption{setHeader(decisionHeader, text)}
	}
	return nil
}
