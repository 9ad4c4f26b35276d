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
	mu        sync.Mutex // guards all
	estimator *estimate.Estimator
	seen      usageSeen
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
	c.seen.count(true)
	cost := c.estimator.Unfinished(&e.request, e.estimated, e.produced)
	if e.answered {
		c.estimator.LearnTime(&e.request, e.produced)
	}
	return cost
}

// learn lets the estimator learn from usage that has come by a way.
func (c *costs) learn(r *estimate.Request, u estimate.Usage, after time.Duration, by UsageWay) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen.known(by, time.Now())
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
	if st.info != nil && st.info.most >= 0 && !st.promptOnly() {
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
	if st.promptOnly() {
		r.MaxOutput = 0
		if r.Text >= 0 {
			r.Text += st.body.fields.Pairs.Text
		}
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
