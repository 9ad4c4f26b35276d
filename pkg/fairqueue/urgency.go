package fairqueue

import "time"

// Orders in which a request's urgency counts: strict priority first, then a score, then arrival. A rank is both in one
// number, the least first: above scoreBits what is missing to the highest strict priority, below it the score.
const (
	scoreBits  = 50
	mostScore  = 1<<scoreBits - 1
	mostStrict = 1<<(63-scoreBits) - 1
)

// MaxStrict is the highest strict priority; a higher one counts as this, and one below 0 as 0.
const MaxStrict = mostStrict

func rankOf(r *Request, score int64) uint64 {
	strict := 0
	if r.Path != nil {
		strict = max(0, min(r.Path.Strict, mostStrict))
	}
	return uint64(mostStrict-strict)<<scoreBits | uint64(max(0, min(score, mostScore)))
}

// priority is what the request's own score is made better by; 0 to 2^31.
func (r *Request) priority() int64 {
	if r.Path == nil {
		return 0
	}
	return int64(max(0, min(r.Path.Priority, 1<<31)))
}

// urgentFirst is first come, first served, with a second of age for each step of priority. The score counts
// microseconds, for 17 years from the queue's first request on and as many before.
type urgentFirst struct{}

func (urgentFirst) rank(sinceEpoch time.Duration, r *Request) uint64 {
	return rankOf(r, sinceEpoch.Microseconds()-r.priority()*1_000_000+mostScore/2)
}
