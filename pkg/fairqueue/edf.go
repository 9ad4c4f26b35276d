package fairqueue

import "time"

// edf is earliest deadline first (Jackson 1955; Liu, Layland 1973). A request's deadline is its client's own, or else
// the end of its TTL. The client's own deadline counts even if the TTL ends earlier: the client waits until then, and
// the TTL only limits the time in the queue. With one TTL and no client deadlines this is first come, first served.
// Each step of priority counts as one second, as in Dynamo. The score is in microseconds and has room for 17 years
// after the queue's first request; deadlines beyond that, or within the same microsecond, are equal.
type edf struct{}

func (edf) rank(_, deadline time.Duration, r *Request) uint64 {
	return rankOf(r, deadline.Microseconds()-r.priority()*1_000_000+mostScore/2)
}
