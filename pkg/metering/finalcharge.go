package metering

import (
	"time"

	"github.com/weir-epp/weir/pkg/estimate"
)

// End describes the end of a request.
type End struct {
	// Report is the usage reported in its answer.
	Report
	// Status is the response's status; 0 if it was not seen.
	Status int
	// Unsent is set if the request reached no engine.
	Unsent bool
	// Answered is set if the answer has begun and is not an error.
	Answered bool
	// Produced is the time for which the engine has worked on the answer. Took is the time from the answer's first byte
	// to its end; 0 if the answer was not sent while it was produced.
	Produced, Took time.Duration
}

// Basis is the rule for a request's final charge.
type Basis uint8

// The rules; see the package comment.
const (
	ByUsage Basis = iota
	ByNothing
	ByRoom
	ByTime
)

// End returns the final cost of a request, and learns from it. It is called once for each charge.
func (m *Meter) End(c *Charge, e *End, now time.Time) (estimate.Cost, Basis) {
	cost, basis := m.end(c, e, now)
	if c.fixed {
		cost = c.costWith(c.outputAt(e, basis))
	}
	return cost, basis
}

// outputAt returns the charged number of answer tokens for a request with a fixed prompt.
func (c *Charge) outputAt(e *End, basis Basis) int64 {
	switch basis {
	case ByUsage:
		return e.Output
	case ByTime:
		return max(c.estimated.Output, c.streamed)
	default:
		return 0
	}
}

func (m *Meter) end(c *Charge, e *End, now time.Time) (estimate.Cost, Basis) {
	switch {
	case e.Known && e.Whole:
		u := estimate.Usage{Input: e.Input, Cached: e.Cached, Output: e.Output}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.seen.known(e.By, now)
		m.estimator.Learn(&c.request, u, e.Took)
		c.used = u.Tokens()
		return c.cfg.Weights.Cost(u), ByUsage
	case e.Unsent:
		return 1, ByNothing
	case refused(e.Status):
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.estimator.Refused(&c.request, c.estimated, e.Produced), ByRoom
	}
	c.AtLeast(e.Tokens)
	c.estimated.Output = max(c.estimated.Output, c.streamed)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen.count(true)
	cost := m.estimator.Unfinished(&c.request, c.estimated, e.Produced)
	if e.Status < 400 {
		c.used = m.estimator.UnfinishedUsage(&c.request, c.estimated, e.Produced).Tokens()
	}
	if e.Answered {
		m.estimator.LearnTime(&c.request, e.Produced)
	}
	return cost, ByTime
}

// refused reports whether a response without usage means that the engine refused the request. The engine may still have
// worked: some check an answer when it is complete.
func refused(status int) bool { return status/100 == 4 || status == 503 }
