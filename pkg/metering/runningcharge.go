package metering

import (
	"github.com/weir-epp/weir/pkg/estimate"
	"github.com/weir-epp/weir/pkg/usage"
)

// Charge is a request's charge in tokens so far, with its reason.
type Charge struct {
	request   estimate.Request
	estimated estimate.Estimate
	// streamed is the output charged because more was seen than estimated, in tokens.
	streamed int64
	// expected is the number of tokens of the prompt that the engine is expected to have cached.
	expected int64
	// fixed is set if the prompt's charge is fixed to a number of uncached tokens.
	fixed    bool
	uncached int64
	// used is the number of tokens used, at the request's end.
	used int64
	cfg  *estimate.Config
}

// Uses returns the estimated numbers of tokens of the prompt and the answer.
func (c *Charge) Uses() int64 { return c.estimated.Input + c.estimated.Output }

// Used returns the number of tokens of prompt and answer after Meter.End: from the usage, or without one from the
// charge; 0 if the engine refused the request.
func (c *Charge) Used() int64 { return c.used }

// Estimated returns the estimate, raised by reports.
func (c *Charge) Estimated() estimate.Estimate { return c.estimated }

// AtLeast notes a report of an unfinished answer as a lower limit of the request's use. A report of the prompt is
// exact, and replaces a lower estimate.
func (c *Charge) AtLeast(t usage.Tokens) {
	if t.Input > 0 {
		c.request.Tokens = t.Input
	}
	c.estimated.Input = max(c.estimated.Input, t.Input)
	c.streamed = max(c.streamed, t.Output)
}

// Expect notes that the request's engine is expected to have cached tokens of its prompt, and reports whether the
// request costs less. If so, it returns the lower cost. Its part of the stock does not change.
func (c *Charge) Expect(cached int64) (cost estimate.Cost, less bool) {
	if c.fixed {
		return 0, false
	}
	c.expected = min(cached, c.estimated.Input)
	cost = c.costWith(max(c.estimated.Output, c.streamed))
	return cost, cost < c.estimated.Cost
}

// Fix fixes the prompt's charge to its uncached tokens at its arrival; cached is the most at any engine that it may
// use. Neither the chosen engine nor a report of its prompt changes this charge; cached tokens cost nothing. The answer
// is charged as usual, with an output weight of 0 nothing. It returns the cost, at least 1.
func (c *Charge) Fix(cached int64) estimate.Cost {
	c.fixed, c.uncached = true, c.estimated.Input-max(0, min(cached, c.estimated.Input))
	return c.costWith(c.estimated.Output)
}

// costWith returns the present cost with an answer of this length.
func (c *Charge) costWith(output int64) estimate.Cost {
	if c.fixed {
		return c.cfg.Weights.Cost(estimate.Usage{Input: c.uncached, Output: output})
	}
	return c.cfg.Weights.Cost(estimate.Usage{Input: c.estimated.Input, Cached: c.expected, Output: output})
}

// Outgrown reports whether an answer with this number of tokens seen is longer than its charge. If so, it returns the
// raised cost and stock, for an eighth plus 16 tokens more than seen, so that not every token raises them.
func (c *Charge) Outgrown(seen int64) (cost, stock estimate.Cost, raised bool) {
	charged := max(c.estimated.Output, c.streamed)
	if seen <= charged || charged >= c.request.MostOutput() {
		return 0, 0, false
	}
	c.streamed = min(seen+seen/8+16, c.request.MostOutput())
	cost = c.costWith(c.streamed)
	stock = c.cfg.StockWeights.Cost(estimate.Usage{Input: c.estimated.Held, Output: c.streamed})
	return cost, stock, true
}
