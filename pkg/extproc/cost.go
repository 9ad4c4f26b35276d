package extproc

import (
	"strconv"
	"sync"
	"time"

	"github.com/weir-epp/weir/pkg/estimate"
	"github.com/weir-epp/weir/pkg/extproc/body"
	"github.com/weir-epp/weir/pkg/extproc/usage"
	"github.com/weir-epp/weir/pkg/fairqueue"
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

func (c *costs) unfinished(r *estimate.Request, estimated estimate.Estimate, after time.Duration) estimate.Cost {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.estimator.Unfinished(r, estimated, after)
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

// cost returns the request's cost in the queue: what the gateway states, or the estimate in tokens, or 1.
func (st *mainStream) cost() fairqueue.Cost {
	c := st.cfg
	if n, ok := st.headers.count(c.costHeader); ok && n > 0 {
		return fairqueue.Cost(min(n, int64(fairqueue.MaxCost)))
	}
	if c.Cost != CostTokens || st.passes {
		return 1
	}
	st.charge = &charge{request: st.size()}
	st.charge.estimated = st.server.costs.estimate(&st.charge.request)
	return fairqueue.Cost(st.charge.estimated.Cost)
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
	}
	if n := st.headers.contentLength(); n >= 0 && !body.IsForm(st.headers.values[slotContentType]) { // files are no text
		r.Length = n
	}
	if f := &st.body.fields; f.Prompt.Prompts > 0 { // the body was read
		r.Text, r.Numbers = f.Prompt.Text, f.Prompt.Numbers
		r.Answers = max(1, f.N, f.BestOf) * f.Prompt.Prompts // at most 2^40 · 2^30
		// Engines differ in which of them counts, and in what 0 and less means.
		if most := max(f.MaxTokens, f.MaxCompletionTokens, f.MaxOutputTokens); most > 0 {
			r.MaxOutput = most
		}
	}
	return r
}

// actualCost returns what the request has really cost, or fairqueue.UnknownCost if it was not charged in tokens. It is
// called once, when the answer has ended, and lets the estimator learn from it.
func (st *mainStream) actualCost() fairqueue.Cost {
	c := st.charge
	if c == nil || st.rejection != nil { // it was preempted, and settled then
		return fairqueue.UnknownCost
	}
	m := st.server.metrics
	t, known := st.reportedUsage()
	u := estimate.Usage{Input: t.Input, Cached: t.Cached, Output: t.Output}
	switch {
	case known && st.ended:
		st.server.costs.learn(&c.request, u, st.streamedFor())
		m.estimatedTokens[0].Add(float64(c.estimated.Input))
		m.estimatedTokens[1].Add(float64(c.estimated.Output))
		return fairqueue.Cost(st.cfg.Tokens.Weights.Cost(u))
	case st.completion.Unsent || refusedByEngine(st.completion.Status):
		return 1 // nothing was done for it
	default:
		m.unknownUsage.Inc()
		cost := st.server.costs.unfinished(&c.request, c.estimated, time.Since(st.lastAnswered))
		// What an answer reports before it ends is what it has used so far.
		return fairqueue.Cost(max(cost, st.costOf(max(c.streamed, u.Output))))
	}
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

// costOf returns the request's cost with an output of so many tokens.
func (st *mainStream) costOf(output int64) estimate.Cost {
	return st.cfg.Tokens.Weights.Cost(estimate.Usage{Input: st.charge.estimated.Input, Output: output})
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
	st.lease.OnCost(fairqueue.Cost(st.costOf(c.streamed)))
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
