package extproc

import (
	"sync"
	"time"

	"github.com/weir-epp/weir/pkg/estimate"
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
// prompt is exact, and replaces a lower estimate.
func (c *charge) atLeast(t usage.Tokens) {
	if t.Input > 0 {
		c.request.Tokens = t.Input
	}
	c.estimated.Input = max(c.estimated.Input, t.Input)
	c.streamed = max(c.streamed, t.Output)
}

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
	st.charge = &charge{request: q.Size}
	st.charge.estimated = st.server.costs.estimate(&st.charge.request)
	if q.LooseLimit {
		st.charge.request.MaxOutput = estimate.Unknown
	}
	return fairqueue.Cost(st.charge.estimated.Cost), flowcontrol.Tokens(st.charge.estimated.Stock)
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
	cost := st.cfg.Tokens.Weights.Cost(estimate.Usage{Input: c.estimated.Input, Output: c.streamed})
	held := st.cfg.Tokens.StockWeights.Cost(estimate.Usage{Input: c.estimated.Held, Output: c.streamed})
	st.lease.OnCost(fairqueue.Cost(cost), flowcontrol.Tokens(held))
}
