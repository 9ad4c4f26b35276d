package scheduling

import "math/bits"

// comparison is how endpoints are compared for a request. It looks at one endpoint at a time, so that the board keeps the
// standing of each, which is all that a pick needs where nothing is known of the request; and a cost is computed of those
// few endpoints of which something is.
type comparison interface {
	// standing rates an endpoint by its requests: more is better, from 0 to MostStanding. It is called under the lock
	// when its load changes, not for a pick.
	standing(l Load) Standing
	// cost is a request's cost at an endpoint if so many of its tokens have to be read there: less is better. Of two
	// endpoints with equal tokens, the one with the higher standing costs no more. A pick asks for up to MaxAbove of
	// them, so it looks at the endpoint instead of a copy of its load.
	cost(s *spot, tokens int64) Cost
	// wait is the addition to the cost at an endpoint that has to read so many tokens of other prompts before. It is 0
	// for 0 tokens, and not less for more.
	wait(tokens int64) Cost
	// bonus is the addition to a standing for a request whose model is loaded at the endpoint. points is set if the
	// request goes where that is most, whatever its tokens cost.
	bonus() (more Standing, points bool)
}

// Standing is a comparison's result for an endpoint's load, for an unknown request.
type Standing int64

// MostStanding is that of an endpoint without any load.
const MostStanding Standing = 1 << 40

// Cost is a request's cost at an endpoint, in tokens of delay times CostOne.
type Cost int64

// CostOne is the number of units of a Cost in one token.
const CostOne = 1 << 16

// delay compares by the delay that a request's prompt causes, and suffers.
type delay struct{}

// mostLoad caps a load in units of 1/CostOne, so that a cost fits.
const mostLoad = 1 << 40

// unboundedSlots is the bound that an endpoint without one is taken to have.
const unboundedSlots = 64 * Millionths

// standing implements comparison.
func (delay) standing(l Load) Standing { return leastStock(l) }

// cost implements comparison: tokens · (1 + n) · 64 / bound.
func (delay) cost(s *spot, tokens int64) Cost { return Cost(min(tokens, MaxPrompt) * fill(s)) }

// wait implements comparison: 2 · tokens.
func (delay) wait(tokens int64) Cost { return Cost(waitWeight * CostOne * min(tokens, mostPrompts)) }

// waitWeight is the worth of one token before a request, in uncached tokens of its own prompt. With 4, prompts spread
// to engines that have less of them, which costs more than it saves where caches are the bottleneck (ADR 0154).
const waitWeight = 2

// mostPrompts caps the tokens of the prompts before, so that a cost fits.
const mostPrompts = 1 << 38

// bonus implements comparison: loading costs tokens.
func (delay) bonus() (Standing, bool) { return 0, false }

// fill returns (1 + n) · 64 / bound, or 64 times the part of its tokens that an endpoint has if that is more, in units of
// 1/CostOne.
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

// alike takes all endpoints for alike.
type alike struct{}

func (alike) standing(Load) Standing { return 0 }

func (alike) cost(*spot, int64) Cost { return 0 }

func (alike) wait(int64) Cost { return 0 }

func (alike) bonus() (Standing, bool) { return 0, false }

// comparison returns the comparison that a configuration asks for.
func (c *Config) comparison() comparison {
	switch c.Policy {
	case PolicyMindRouter:
		return &pointed{c.Points}
	case PolicyNone:
		return alike{}
	}
	return delay{}
}
