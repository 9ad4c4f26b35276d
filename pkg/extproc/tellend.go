package extproc

import (
	"strings"
	"time"

	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// tellEnd writes the request's line, and tells the tail and the tracer. It is called once, after settle.
func (st *mainStream) tellEnd() {
	tailed := st.server.tailed()
	if !st.line.logged && !tailed && st.trace == nil {
		return
	}
	e := st.ended()
	if st.line.logged {
		st.line.log(st.server.log, &e)
	}
	if tailed {
		st.server.tail.Ended(&e)
	}
	if st.trace != nil {
		t := st.traced(&e)
		st.server.tracer.Ended(&t)
	}
}

// ended returns the ended request. It is called after settle.
func (st *mainStream) ended() Ended {
	e := Ended{
		At: time.Now(), ID: st.line.id, Flow: st.grant.flow(&st.request), Tier: st.tierName(), Model: st.request.Model, TargetModel: st.request.Target,
		Wait: st.line.wait, Endpoint: st.grant.picked, Served: st.response.elsewhere, Outcome: st.grant.outcome(st.rejection), Status: st.response.status,
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
	e.Usage, e.Known = st.response.usage(st.request.PromptOnly)
	return e
}

// traced returns the request for its spans. It is called after settle.
func (st *mainStream) traced(e *Ended) Traced {
	t := Traced{
		Ended: *e, Parent: st.trace.parent, Begun: st.begun, Offered: st.trace.offered, Sent: st.grant.sent, Rejected: st.trace.rejected,
		Rank: st.request.Tier, Fallbacks: strings.Count(st.grant.destination, ","),
	}
	if st.rejection != nil && st.rejection.Limit != nil {
		t.Limit = st.rejection.Limit.Name
	}
	return t
}

// tellRecord passes on the decision record. It is called once, after settle.
func (st *mainStream) tellRecord() {
	if r := st.record; r != nil {
		r.Outcome = st.grant.outcome(st.rejection).String()
		st.server.records.Put(&r.Record)
	}
}
