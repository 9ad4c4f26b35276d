package metering

import (
	"github.com/weir-epp/weir/pkg/estimate"
	"github.com/weir-epp/weir/pkg/extproc/usage"
)

// Charge is what a request was charged in tokens so far, and why.
type Charge struct {
	request   estimate.Request
	estimated estimate.Estimate
	// streamed is the output that was charged because more of it was seen than estimated, in tokens.
	streamed int64
	cfg      *estimate.Config
}

// Estimated returns the estimate, raised by reports.
func (c *Charge) Estimated() estimate.Estimate { return c.estimated }

// AtLeast notes a report of an answer that has not come to its end: the request has used no less than that. A report of
// the prompt is exact, and replaces a lower estimate.
func (c *Charge) AtLeast(t usage.Tokens) {
	if t.Input > 0 {
		c.request.Tokens = t.Input
	}
	c.estimated.Input = max(c.estimated.Input, t.Input)
	c.streamed = max(c.streamed, t.Output)
}

// Outgrown reports whether an answer of which so many tokens were seen is longer than its charge. If so, it returns the
// raised cost, and the tokens of the stock, for an eighth and 16 tokens more than was seen, so that not every token raises
// them.
func (c *Charge) Outgrown(seen int64) (cost, stock estimate.Cost, raised bool) {
	charged := max(c.estimated.Output, c.streamed)
	if seen <= charged || charged >= c.request.MostOutput() {
		return 0, 0, false
	}
	c.streamed = min(seen+seen/8+16, c.request.MostOutput())
	cost = c.cfg.Weights.Cost(estimate.Usage{Input: c.estimated.Input, Output: c.streamed})
	stock = c.cfg.StockWeights.Cost(estimate.Usage{Input: c.estimated.Held, Output: c.streamed})
	return cost, stock, true
}
