package fairqueue

import (
	"math"
	"time"
)

// edf is earliest deadline first (Jackson 1955; Liu, Layland 1973). A request's deadline is its client's own, or else the
// end of its TTL, so each has one. Its client's own counts even if the TTL ends before: it says what the client is waiting
// for, and the TTL only how long the queue keeps it. With one TTL and no client's deadlines this is first come, first
// served; each step of priority counts as one second, as in Dynamo. The score is in microseconds and has room for 17 years
// after the queue's first request; deadlines beyond that, or within the same microsecond, are equal.
type edf struct{}

func (edf) rank(sinceEpoch time.Duration, r *Request) uint64 {
	left := r.ttl
	if !r.Deadline.IsZero() {
		left = r.Deadline.Sub(r.arrived)
	}
	at := sinceEpoch + left
	if left > 0 && at < sinceEpoch {
		at = math.MaxInt64
	}
	return rankOf(r, at.Microseconds()-r.priority()*1_000_000+mostScore/2)
}
