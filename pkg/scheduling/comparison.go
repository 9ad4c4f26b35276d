package scheduling

import "math/bits"

// comparison compares endpoints for a request. It sees one endpoint at a time. So the board can keep each endpoint's
// standing, which suffices for an unknown request, and computes costs only for the few endpoints with ratings.
type comparison interface {
	// standing rates an endpoint by its load: more is better, from 0 to MostStanding. It is called under the lock when
	// the load changes, not for a pick.
	standing(l Load) Standing
	// cost is a request's cost at an endpoint where it has this number of tokens to read: less is better. With equal
	// tokens, an endpoint with a higher standing costs no more. A pick computes up to MaxAbove costs, so it takes the
	// spot instead of a copy of its load.
	cost(s *spot, tokens int64) Cost
	// wait is the addition to the cost at an endpoint that has to read this number of other prompts' tokens first. It
	// is 0 for 0 tokens, and never falls with more.
	wait(tokens int64) Cost
	// bonus is the addition to a standing if the request's model is loaded at the endpoint. points is set if the
	// highest standing wins, regardless of the cost of tokens.
	bonus() (more Standing, points bool)
}

// Standing is a comparison's result for an endpoint's load, for an unknown request.
type Standing int64

// MostStanding is the standing of an endpoint without load.
const MostStanding Standing = 1 << 40

// Cost is a request's cost at an endpoint, in tokens of delay times CostOne.
type Cost int64

// CostOne is the number of units of a Cost in one token.
const CostOne = 1 << 16

// delay compares by the delay that a request's prompt causes and has.
type delay struct{}

// mostLoad caps a load in units of 1/CostOne, so that a cost fits.
const mostLoad = 1 << 40

// unboundedSlots is the assumed bound of an endpoint without one.
const unboundedSlots = 64 * Millionths

// standing implements comparison.
func (delay) standing(l Load) Standing { return leastStock(l) }

// cost implements comparison: tokens · (1 + n) · 64 / bound.
func (delay) cost(s *spot, tokens int64) Cost { return Cost(min(tokens, MaxPrompt) * fill(s)) }

// wait implements comparison: 2 · tokens.
func (delay) wait(tokens int64) Cost { return Cost(waitWeight * CostOne * min(tokens, mostPrompts)) }

// waitWeight is the weight of one token before a request, in uncached tokens of its own prompt. With 4, prompts spread
// to engines with less of them cached, which costs more than it saves where caches are the bottleneck (ADR 0154).
const waitWeight = 2

// mostPrompts caps the tokens of the prompts before, so that a cost fits.
const mostPrompts = 1 << 38

// bonus implements comparison: loading costs tokens.
func (delay) bonus() (Standing, bool) { return 0, false }

// fill returns the larger of (1 + n) · 64 / bound and 64 · tokens / bound in tokens, in units of 1/CostOne.
func fill(s *spot) int64 {
	b := uint64(s.upper)
	switch {
	case b == 0:
		b = Millionths
	case s.upper >= maxBound:
		b = unboundedSlots
	}
	by := quotient((uint64(s.held())+1)*Millionths, b)
	if c := uint64(s.tokens.upper); c > 0 {
		by = max(by, quotient(uint64(max(0, s.tokens.held())), c))
	}
	return by
}

// quotient returns 64 · CostOne · a / b, at most mostLoad and at least 1.
func quotient(a, b uint64) int64 {
	hi, lo := bits.Mul64(a, 64*CostOne)
	if hi >= b {
		return mostLoad
	}
	q, _ := bits.Div64(hi, lo, b)
	return int64(max(1, min(q, mostLoad)))
}

// alike treats all endpoints as equal.
type alike struct{}

func (alike) standing(Load) Standing { return 0 }

func (alike) cost(*spot, int64) Cost { return 0 }

func (alike) wait(int64) Cost { return 0 }

func (alike) bonus() (Standing, bool) { return 0, false }

// comparison returns the configured comparison.
func (c *Config) comparison() comparison {
	switch c.Policy {
	case PolicyMindRouter:
		return &pointed{c.Points}
	case PolicyNone:
		return alike{}
	}
	return delay{}
}
