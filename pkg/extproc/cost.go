package extproc

import (
	"strconv"
	"sync"
	"time"

	"github.com/weir-epp/weir/pkg/estimate"
	"github.com/weir-epp/weir/pkg/extproc/body"
	"github.com/weir-epp/weir/pkg/extproc/usage"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// costs is the estimator that all streams share.
type costs struct {
	mu        sync.Mutex // guards estimator
	estimator *estimate.Estimator
}

// configure changes the configuration, which is valid. What was learned remains.
func (c *costs) configure(cfg estimate.Config) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.estimator == nil {
		c.estimator = estimate.New(cfg)
		return
	}
	c.estimator.Configure(cfg)
}

func (c *costs) estimate(r *estimate.Request) estimate.Estimate {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.estimator.Estimate(r)
}

// unfinished returns what a request has cost that has ended without usage, and lets the estimator learn from it if the
// answer has begun.
func (c *costs) unfinished(e *ending) estimate.Cost {
	c.mu.Lock()
	defer c.mu.Unlock()
	cost := c.estimator.Unfinished(&e.request, e.estimated, e.produced)
	if e.answered {
		c.estimator.LearnTime(&e.request, e.produced)
	}
	return cost
}

func (c *costs) learn(r *estimate.Request, u estimate.Usage, after time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.estimator.Learn(r, u, after)
}

// charge is what a request was charged in tokens, and why.
type charge struct {
	request   estimate.Request
	estimated estimate.Estimate
	// streamed is the output that was charged because more of it was seen than estimated, in tokens.
	streamed int64
}

// atLeast notes what an answer reports that does not come to its end: it has used no less than that. What it says of the
// prompt replaces a lower estimate.
func (c *charge) atLeast(t usage.Tokens) {
	c.estimated.Input = max(c.estimated.Input, t.Input)
	c.streamed = max(c.streamed, t.Output)
}

// cost returns what the queue charges for the request: what the gateway states, or the estimate in tokens, or 1. With an
// estimate it returns what the request takes of the stock as well; else 0, which means as much as its cost.
func (st *mainStream) cost() (fairqueue.Cost, flowcontrol.Tokens) {
	c := st.cfg
	if n, ok := st.headers.count(c.costHeader); ok && n > 0 {
		return fairqueue.Cost(min(n, int64(fairqueue.MaxCost))), 0
	}
	if c.Cost != CostTokens || st.passes {
		return 1, 0
	}
	st.charge = &charge{request: st.size()}
	st.charge.estimated = st.server.costs.estimate(&st.charge.request)
	if st.info != nil && st.info.most >= 0 {
		// Envoy does not tell how many answers there may be of that length, and engines may read another limit than it does:
		// that bounds the estimate only.
		st.charge.request.MaxOutput = estimate.Unknown
	}
	return fairqueue.Cost(st.charge.estimated.Cost), flowcontrol.Tokens(st.charge.estimated.Stock)
}

// count returns the number in a header, and reports whether there is one.
func (h *headers) count(s slot) (n int64, ok bool) {
	v := h.values[s]
	if v == "" {
		return 0, false
	}
	n, err := strconv.ParseInt(v, 10, 64)
	return n, err == nil && n >= 0
}

// size returns what the request says of its size.
func (st *mainStream) size() estimate.Request {
	_, model := st.labels()
	r := estimate.Request{
		Flow: st.flow, Model: model, Tokens: estimate.Unknown, Text: estimate.Unknown, Length: estimate.Unknown,
		Answers: 1, MaxOutput: estimate.Unknown,
	}
	if n, ok := st.headers.count(st.cfg.inputHeader); ok {
		r.Tokens = n
	} else if st.info != nil {
		r.Tokens = st.info.input
	}
	if n := st.headers.contentLength(); n >= 0 && !body.IsForm(st.headers.values[slotContentType]) { // files are no text
		r.Length = n
	}
	if f := &st.body.fields; f.Prompt.Prompts > 0 { // the body was read
		r.Text, r.Numbers = f.Prompt.Text, f.Prompt.Numbers
		r.Answers = min(max(1, f.N, f.BestOf), estimate.MaxTokens) * f.Prompt.Prompts // at most 2^30 · 2^30
		if most := outputLimit(st.headers.values[slotPath], f); most > 0 {
			r.MaxOutput = most
		}
	}
	if st.info != nil && st.info.most >= 0 {
		r.MaxOutput = st.info.most
	}
	return r
}

// outputLimit returns the most tokens of one answer that a body allows by the fields that engines read on its path, or less
// than 1 if there is no such limit, or it cannot be told: engines differ in what 0 and less means, and which of two counts.
func outputLimit(path string, f *body.Fields) int64 {
	switch inferencePath(path) {
	case "/v1/chat/completions", "/v1/chat/completions/batch":
		if f.MaxTokens == 0 || f.MaxCompletionTokens == 0 {
			return 0
		}
		return max(f.MaxTokens, f.MaxCompletionTokens)
	case "/v1/completions", messagesPath:
		return f.MaxTokens
	case responsesPath:
		return f.MaxOutputTokens
	default:
		return 0
	}
}

// actualCost returns what the request has really cost, or fairqueue.UnknownCost if it was not charged in tokens, or if that
// is told later. It is called once, when the answer has ended, and lets the estimator learn from it.
func (st *mainStream) actualCost() fairqueue.Cost {
	if st.charge == nil || st.rejection != nil || st.awaits { // a preempted request was settled then
		return fairqueue.UnknownCost
	}
	t, known := st.reportedUsage()
	e := st.ending()
	r := reported{Tokens: t, known: known, whole: st.ended}
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
	took     time.Duration // what streamedFor returned
}

func (st *mainStream) ending() ending {
	return ending{
		charge: st.charge, weights: st.cfg.Tokens.Weights, status: st.completion.Status, unsent: st.completion.Unsent,
		answered: st.state == responding && (st.completion.Status == 0 || st.completion.Status/100 == 2),
		produced: st.producedFor(), took: st.streamedFor(),
	}
}

// producedFor returns for how long the engine has worked on the answer: since its first byte if it is a stream of events,
// whose headers come at once, else since the request went there, since its headers may come with its last token.
func (st *mainStream) producedFor() time.Duration {
	if st.state == responding && st.events {
		return time.Since(st.lastAnswered)
	}
	return time.Since(st.sent)
}

// reported is what is known of the usage of a response.
type reported struct {
	usage.Tokens
	known bool // there are Tokens
	whole bool // the response was sent to its end
	began bool // the engine has begun to work, whatever the status says
}

// atEnd returns what a request has cost that was charged in tokens, and lets the estimator learn from it.
func (c *costs) atEnd(e *ending, r reported, m *metrics) fairqueue.Cost {
	u := estimate.Usage{Input: r.Input, Cached: r.Cached, Output: r.Output}
	switch {
	case r.known && r.whole:
		c.learn(&e.request, u, e.took)
		m.estimatedTokens[0].Add(float64(e.estimated.Input))
		m.estimatedTokens[1].Add(float64(e.estimated.Output))
		return fairqueue.Cost(e.weights.Cost(u))
	case e.unsent:
		return 1 // nothing was done for it
	case refusedByEngine(e.status) && !r.began:
		return heldFor(e.estimated.Cost, e.produced)
	default:
		m.unknownUsage.Inc()
		e.atLeast(r.Tokens)
		used := estimate.Usage{Input: e.estimated.Input, Output: e.streamed}
		return fairqueue.Cost(max(c.unfinished(e), e.weights.Cost(used)))
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

// streamedFor returns how long the answer took from its first byte on, or 0 if that does not say how fast it was produced.
func (st *mainStream) streamedFor() time.Duration {
	if !st.events || st.state != responding {
		return 0
	}
	return time.Since(st.lastAnswered)
}

// outgrown raises the charge of a request whose answer is longer than what was charged, by an eighth and 16 tokens more
// than was seen, so that not every token needs the controller's lock.
func (st *mainStream) outgrown(seen int64) {
	c := st.charge
	if c == nil || st.lease == nil {
		return
	}
	charged := max(c.estimated.Output, c.streamed)
	if seen <= charged || charged >= c.request.MostOutput() {
		return
	}
	c.streamed = min(seen+seen/8+16, c.request.MostOutput())
	used := estimate.Usage{Input: c.estimated.Input, Output: c.streamed}
	st.lease.OnCost(fairqueue.Cost(st.cfg.Tokens.Weights.Cost(used)), flowcontrol.Tokens(st.cfg.Tokens.StockWeights.Cost(used)))
}

// reportedUsage returns the usage of the answer, and reports whether it is known. What Envoy has read goes before what
// Weir has.
func (st *mainStream) reportedUsage() (t usage.Tokens, known bool) {
	if st.told != nil {
		return *st.told, true
	}
	if st.usage != nil {
		return st.usage.Tokens()
	}
	return t, false
}
