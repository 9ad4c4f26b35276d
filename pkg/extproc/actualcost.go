package extproc

import (
	"time"

	"github.com/weir-epp/weir/pkg/estimate"
	"github.com/weir-epp/weir/pkg/extproc/usage"
	"github.com/weir-epp/weir/pkg/fairqueue"
)

// actualCost returns what the request has really cost, or fairqueue.UnknownCost if it was not charged in tokens, or if that
// is told later. It is called once, when the answer has ended, and lets the estimator learn from it.
func (st *mainStream) actualCost() fairqueue.Cost {
	preempted := st.rejection != nil && !st.completion.Unsent // which was settled then
	if st.charge == nil || preempted {
		return fairqueue.UnknownCost
	}
	t, known := st.reportedUsage()
	e := st.ending()
	r := reported{Tokens: t, known: known, whole: st.ended, by: st.toldBy()}
	st.server.noteUsage(&e, &r)
	return st.server.costs.atEnd(&e, r, st.server.metrics)
}

// ending is what has to be kept of a request that has ended to charge it: its stream may be gone when its usage comes.
type ending struct {
	*charge  // nil if the request is not charged in tokens
	weights  estimate.Weights
	status   int           // of the response; 0 if it was not seen
	unsent   bool          // the request went to no engine, or reached none
	answered bool          // the answer has begun, and is none of an error
	produced time.Duration // for how long the engine has worked on the answer
	took     time.Duration // from the answer's first byte to its end; 0 if that does not say how fast it was produced
}

func (st *mainStream) ending() ending {
	produced, took := st.worked()
	return ending{
		charge: st.charge, weights: st.cfg.Tokens.Weights, status: st.completion.Status, unsent: st.completion.Unsent,
		answered: st.state == responding && (st.completion.Status == 0 || st.completion.Status/100 == 2),
		produced: produced, took: took,
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

// reported is what is known of the usage of a response.
type reported struct {
	usage.Tokens
	known bool // there are Tokens
	whole bool // the response was sent to its end
	by    UsageWay
}

// atEnd returns what a request has cost that was charged in tokens, and lets the estimator learn from it.
func (c *costs) atEnd(e *ending, r reported, m *metrics) fairqueue.Cost {
	u := estimate.Usage{Input: r.Input, Cached: r.Cached, Output: r.Output}
	switch {
	case r.known && r.whole:
		c.learn(&e.request, u, e.took, r.by)
		m.estimatedTokens[0].Add(float64(e.estimated.Input))
		m.estimatedTokens[1].Add(float64(e.estimated.Output))
		return fairqueue.Cost(e.weights.Cost(u))
	case e.unsent:
		return 1 // nothing was done for it
	case refusedByEngine(e.status):
		return heldFor(e.estimated.Cost, e.produced)
	default:
		m.unknownUsage.Inc()
		e.atLeast(r.Tokens)
		e.estimated.Output = max(e.estimated.Output, e.streamed)
		return fairqueue.Cost(c.unfinished(e))
	}
}

// heldFor returns what a request costs for which nothing was done, but which took its estimate of the stock until the
// engine refused it: that part of the estimate which the time is of a second, at least 1 and at most the whole.
func heldFor(estimated estimate.Cost, held time.Duration) fairqueue.Cost {
	ms := min(max(held.Milliseconds(), 0), 1000)
	return max(1, fairqueue.Cost(int64(estimated)*ms/1000)) // below 2^30 · 2^10
}

// refusedByEngine reports whether a response without usage says that the engine did not begin to work.
func refusedByEngine(status int) bool { return status/100 == 4 || status == 503 }

// reportedUsage returns the usage of the answer, and reports whether it is known. What Envoy has read goes before what
// Weir has.
func (st *mainStream) reportedUsage() (t usage.Tokens, known bool) {
	if st.told != nil {
		return *st.told, true
	}
	if st.usage != nil {
		c := st.usage.Counts()
		return c.Tokens(st.request.PromptOnly)
	}
	return t, false
}
