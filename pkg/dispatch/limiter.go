package dispatch

import (
	"time"

	"github.com/weir-epp/weir/pkg/invalid"
)

// LimiterConfig is a token bucket over all requests while nothing queues (Enabled false): each request takes a token;
// without one it is rejected as OutcomeShed.
type LimiterConfig struct {
	// Rate is the number of new tokens per second, in millionths: 0 (no limit) to MaxLimiterRate.
	Rate int64
	// Burst is the most tokens that the bucket holds, 1 to MaxLimiterBurst.
	Burst int
}

// The largest values of a LimiterConfig.
const (
	MaxLimiterRate  = 1_000_000_000_000
	MaxLimiterBurst = 1_000_000
	// leastLimiterRate is a token in a thousand seconds.
	leastLimiterRate = 1000
)

func (c *LimiterConfig) check(ps *invalid.Problems, at invalid.Path) {
	if c.Rate != 0 && (c.Rate < leastLimiterRate || c.Rate > MaxLimiterRate) {
		ps.Add(at.At("Rate"), float64(c.Rate)/1_000_000, "must be 0 or from 0.001 to 1000000")
	}
	invalid.Within(ps, at.At("Burst"), c.Burst, 1, MaxLimiterBurst)
}

// interval is the time between two tokens.
func (c *LimiterConfig) interval() time.Duration {
	return time.Duration(int64(time.Second) * 1_000_000 / c.Rate)
}

// limiter is the bucket in the virtual scheduling form of the generic cell rate algorithm: the time when it is full
// again without further requests. A zero time is a full bucket.
type limiter struct{ full time.Time }

// take takes a token. If there is none, wait is the time until there is one.
func (l *limiter) take(now time.Time, c *LimiterConfig) (wait time.Duration) {
	if l.full.Before(now) {
		l.full = now
	}
	step := c.interval()
	if wait = l.full.Sub(now) - time.Duration(c.Burst-1)*step; wait > 0 {
		return wait
	}
	l.full = l.full.Add(step)
	return 0
}

// adopt follows a new configuration: the bucket lacks as many tokens as before, up to the new burst. A limiter that was off begins
// with a full bucket.
func (l *limiter) adopt(now time.Time, was, is *LimiterConfig) {
	if *was == *is {
		return
	}
	if was.Rate == 0 || is.Rate == 0 {
		l.full = time.Time{}
		return
	}
	step := was.interval()
	missing := (max(0, l.full.Sub(now)) + step - 1) / step
	l.full = now.Add(min(missing, time.Duration(is.Burst)) * is.interval())
}

// overRate takes a token for an arrival that does not queue, and reports whether there was none: then it is rejected.
func (m *Machine) overRate(w *Waiter) bool {
	c := &m.config.Limiter
	if c.Rate == 0 {
		return false
	}
	wait := m.limiter.take(m.now, c)
	if wait == 0 {
		return false
	}
	w.rarely().wait = wait
	m.noteRate(w)
	m.reject(w, OutcomeShed)
	return true
}

// nextToken returns the Retry-After of a request that the limiter rejects: the next token not yet announced to a
// client, at least 1 s. Times beyond 50 s are spread over 50 s.
func (m *Machine) nextToken(w *Waiter) time.Duration {
	var told time.Time
	first := min(max(placeFirst, w.rare.wait), placeLast/2)
	return m.places.take(m.now, &told, schedule{step: max(placeLeast, m.config.Limiter.interval()), first: first, last: placeLast})
}
