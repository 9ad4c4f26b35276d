package extproc

import (
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/metering"
)

// cost returns the queue's charge for the request: the gateway's figure, the estimate in tokens, or 1. With an estimate
// it also returns the request's tokens of the stock; otherwise 0, which means as many as its cost.
func (st *mainStream) cost() (fairqueue.Cost, flowcontrol.Tokens) {
	q := &st.request
	if q.StatedCost > 0 {
		return q.StatedCost, 0
	}
	if !st.cfg.Cost.inTokens() || q.PassesOn {
		return 1, 0
	}
	st.grant.charge = st.server.meter.Begin(q.Size, q.LooseLimit, &st.cfg.Tokens)
	estimated := st.grant.charge.Estimated()
	return fairqueue.Cost(estimated.Cost), flowcontrol.Tokens(estimated.Stock)
}

// prompt returns the length of the request's prompt at its arrival, and the part cached at the best engine that it may
// use. It is known only with CostUncached, after rate.
func (g *grant) prompt(unit CostUnit) (p fairqueue.Prompt, known bool) {
	if unit != CostUncached || g.charge == nil {
		return fairqueue.Prompt{}, false
	}
	cached := int64(0)
	if g.affinity != nil {
		cached = g.affinity.Cached()
	}
	return fairqueue.PromptOf(g.charge.Estimated().Input, cached), true
}

// actualCost returns the real cost of the request, or fairqueue.UnknownCost if it was not charged in tokens. It is
// called once, at the end of the answer, and lets the estimator learn from it.
func (st *mainStream) actualCost() fairqueue.Cost {
	g, r, s := &st.grant, &st.response, st.server
	unsent := g.sent.IsZero()
	preempted := st.rejection != nil && !unsent // its lease was settled at the preemption
	if g.charge == nil || preempted {
		return fairqueue.UnknownCost
	}
	// An engine works on a stream of events from the first byte on, since its headers come at once. For other answers
	// the time starts at the request, since the headers may come with the last token; it gives no rate of production.
	begun, took := g.sent, time.Duration(0)
	if st.state == responding && r.events {
		begun = st.lastAnswered()
		took = time.Since(begun)
	}
	e := metering.End{
		Report: r.reading.Report(st.request.PromptOnly), Status: r.status, Unsent: unsent,
		Answered: st.state == responding && (r.status == 0 || r.status/100 == 2),
		Produced: time.Since(begun), Took: took,
	}
	s.noteUsage(&e)
	cost, basis := s.meter.End(g.charge, &e, time.Now())
	s.metrics.countCharge(g.charge, basis)
	return fairqueue.Cost(cost)
}

// noteUsage warns if no answer reports its usage. Error responses do not count, and with usage: none no answer does.
func (s *shared) noteUsage(e *metering.End) {
	if e.Answered && s.config.Load().Usage != UsageNone && s.silence.ended(e.Known) {
		s.once.warn(s.log, "silence", "no answer reports its usage, so requests are charged by their estimates and times: does "+
			"Envoy tell the usage (docs/envoy.md, Usage), and do the clients of streams ask for it (stream_options.include_usage)?",
			"answers", silentRun)
	}
}
