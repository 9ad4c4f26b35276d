package estimate

import "time"

// rate is the speed of producing an answer, in thousandths of a token per second. Its range is 1 to maxRate; 0 is none.
type rate int64

const (
	maxRate = 1<<30 - 1
	// An answer with fewer tokens, or in less time, gives no rate.
	leastRateTokens = 16
	leastRateTime   = 100 * time.Millisecond
)

// over returns the number of tokens produced in a time, rounded up.
func (r rate) over(d time.Duration) int64 {
	ms := min(max(d.Milliseconds(), 0), 1<<32) // seven weeks
	return bounded(ceilDiv(int64(r)*ms, 1_000_000))
}

// learned returns the rate after another answer has been produced in a time.
func (r rate) learned(answer int64, in time.Duration) rate {
	if answer < leastRateTokens || in < leastRateTime {
		return r
	}
	sample := min(max(rate(answer*1_000_000/in.Milliseconds()), 1), maxRate)
	if r == 0 {
		return sample
	}
	return max(1, r+(sample-r)/8)
}

// rates counts the flows of a model by their rate, on a scale.
type rates struct {
	flows   int64
	buckets [30*scaleOctave + 1]uint16 // MaxFlows fits
}

// move replaces the rate of a flow; 0 means none.
func (rs *rates) move(have *rate, to rate) {
	rs.count(*have, -1)
	rs.count(to, 1)
	*have = to
}

func (rs *rates) count(r rate, by int64) {
	if r != 0 {
		rs.buckets[onScale(int64(r))] += uint16(by) // -1 wraps, which subtracts
		rs.flows += by
	}
}

// median returns the middle rate, the higher of two, or 0 if there is none.
func (rs *rates) median() rate {
	left := rs.flows/2 + 1
	if rs.flows == 0 {
		return 0
	}
	for b, n := range rs.buckets {
		if left -= int64(n); left <= 0 {
			return rate(endOfScale(b))
		}
	}
	return 0 // not reached: the buckets hold all flows
}

// coldRate returns the rate of unknown answers.
func (c *Config) coldRate() rate { return rate(c.ColdRate * 1000) }

// chargedRate returns the rate for charging an answer to r that ended without usage: the flow's own, or the model's
// median if that is higher. So a flow that has read slowly does not leave fast answers at a lower cost.
func (e *Estimator) chargedRate(r *Request) rate {
	var fastest rate
	if m := e.models[r.Model]; m != nil {
		fastest = m.rates.median()
	}
	if x := e.flows.find(r.Flow, r.Model); x != nil {
		fastest = max(fastest, x.rate)
	}
	if fastest == 0 {
		return e.cfg.coldRate()
	}
	return fastest
}

// learnedRate returns the rate for learning the length of an answer that ended without usage: the flow's own, or
// ColdRate. No other flow influences it.
func (e *Estimator) learnedRate(x *entry) rate {
	if x.rate == 0 {
		return e.cfg.coldRate()
	}
	return x.rate
}
