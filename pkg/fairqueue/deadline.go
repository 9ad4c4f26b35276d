package fairqueue

import "time"

// NextDeadline is when the next waiting request expires.
func (q *FairRequestQueue) NextDeadline() (at time.Time, ok bool) {
	r := q.due.min()
	if r == nil {
		return at, false
	}
	return r.Expires(), true
}

// CleanupExpired removes what is due at now and appends it to expired, earliest first. A request that is due at now
// is never popped after this call. TTLOver tells TTL from the client's own deadline.
func (q *FairRequestQueue) CleanupExpired(now time.Time, expired []*Request) []*Request {
	for {
		r := q.due.min()
		if r == nil || now.Before(r.Expires()) {
			return expired
		}
		q.Remove(r)
		expired = append(expired, r)
	}
}

// Drain removes everything, in order of deadline, and appends it to left.
func (q *FairRequestQueue) Drain(left []*Request) []*Request {
	for r := q.due.min(); r != nil; r = q.due.min() {
		q.Remove(r)
		left = append(left, r)
	}
	return left
}
