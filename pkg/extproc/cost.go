package extproc

import (
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/metering"
)

// cost returns what the queue charges for the request: what the gateway states, or the estimate in tokens, or 1. With an
// estimate it returns what the request takes of the stock as well; else 0, which means as much as its cost.
func (st *mainStream) cost() (fairqueue.Cost, flowcontrol.Tokens) {
	q := &st.request
	if q.StatedCost > 0 {
		return q.StatedCost, 0
	}
	if st.cfg.Cost != CostTokens || q.PassesOn {
		return 1, 0
	}
	st.charge = st.server.meter.Begin(q.Size, q.LooseLimit, &st.cfg.Tokens)
	estimated := st.charge.Estimated()
	return fairqueue.Cost(estimated.Cost), flowcontrol.Tokens(estimated.Stock)
}

// outgrown raises the charge of a request whose answer is longer than what was charged.
func (st *mainStream) outgrown(seen int64) {
	if st.charge == nil || st.lease == nil {
		return
	}
	if cost, stock, raised := st.charge.Outgrown(seen); raised {
		st.lease.OnCost(fairqueue.Cost(cost), flowcontrol.Tokens(stock))
	}
}

// actualCost returns what the request has really cost, or fairqueue.UnknownCost if it was not charged in tokens. It is
// called once, when the answer has ended, and lets the estimator learn from it.
func (st *mainStream) actualCost() fairqueue.Cost {
	preempted := st.rejection != nil && !st.completion.Unsent // which was settled then
	if st.charge == nil || preempted {
		return fairqueue.UnknownCost
	}
	e := st.ending()
	st.server.noteUsage(&e)
	cost, basis := st.server.meter.End(st.charge, &e, time.Now())
	st.server.metrics.countCharge(st.charge, basis)
	return fairqueue.Cost(cost)
}

// ending returns how the request has ended.
func (st *mainStream) ending() metering.End {
	produced, took := st.worked()
	return metering.End{
		Report: st.reading.Report(st.request.PromptOnly), Status: st.completion.Status, Unsent: st.completion.Unsent,
		Answered: st.state == responding && (st.completion.Status == 0 || st.completion.Status/100 == 2),
		Produced: produced, Took: took,
	}
}

// worked returns for how long the engine has worked on the answer: since its first byte if it is a stream of events, whose
// headers come at once, else since the request went there, since its headers may come with its last token. took is that
// time if the answer came as it was produced, else 0.
func (st *mainStream) worked() (produced, took time.Duration) {
	if st.state == responding && st.events {
		took = time.Since(st.lastAnswered)
		return took, took
	}
	return time.Since(st.sent), 0
}

// UsageSeen returns what the server has seen of usage since its start.
func (s *Server) UsageSeen() metering.Seen { return s.meter.Seen() }
