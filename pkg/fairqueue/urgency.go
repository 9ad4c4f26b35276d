package fairqueue

import "time"

// These orders use a request's urgency: first its strict priority, then a score, then its arrival. A rank combines the
// first two in one number, and the least rank goes first: the upper bits are mostStrict minus the strict priority, the
// lower scoreBits the score.
const (
	scoreBits  = 50
	mostScore  = 1<<scoreBits - 1
	mostStrict = 1<<(63-scoreBits) - 1
)

// MaxStrict is the highest strict priority. Path.Strict is clamped to 0 to MaxStrict.
const MaxStrict = mostStrict

// rankOf returns the rank of r with this score, which is clamped to scoreBits.
func rankOf(r *Request, score int64) uint64 {
	return uint64(mostStrict-r.strict())<<scoreBits | uint64(max(0, min(score, mostScore)))
}

// strict returns the request's Path.Strict, clamped to 0 to MaxStrict.
func (r *Request) strict() int {
	if r.Path == nil {
		return 0
	}
	return max(0, min(r.Path.Strict, mostStrict))
}

// priority returns the request's Path.Priority, clamped to 0 to 2^31.
func (r *Request) priority() int64 {
	if r.Path == nil {
		return 0
	}
	return int64(max(0, min(r.Path.Priority, 1<<31)))
}

// urgentFirst is first come, first served, where each step of priority counts as one second of age. The score is in
// microseconds and has room for 17 years after the queue's first request, and as many before.
type urgentFirst struct{}

func (urgentFirst) rank(arrived, _ time.Duration, r *Request) uint64 {
	return rankOf(r, arrived.Microseconds()-r.priority()*1_000_000+mostScore/2)
}
