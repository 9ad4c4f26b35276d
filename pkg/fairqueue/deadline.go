package fairqueue

import (
	"iter"
	"time"

	"github.com/weir-epp/weir/internal/heap"
)

// deadlines holds the waiting requests by expiry time. Requests with the same TTL arrive in that order, so each is
// appended to a list; a request that expires before the last of the list (because of its own deadline, a shorter TTL,
// or a requeue) goes to a heap.
type deadlines struct {
	first, last *Request
	odd         heap.Heap[*oddDue]
}

func (d *deadlines) push(r *Request) {
	if d.last != nil && r.key().Before(d.last.key()) {
		d.odd.Push((*oddDue)(r))
		return
	}
	if r.sooner = d.last; d.last != nil {
		d.last.later = r
	} else {
		d.first = r
	}
	d.last = r
}

func (d *deadlines) remove(r *Request) {
	if r.inDue != 0 {
		d.odd.Remove((*oddDue)(r))
		return
	}
	if r.sooner != nil {
		r.sooner.later = r.later
	} else {
		d.first = r.later
	}
	if r.later != nil {
		r.later.sooner = r.sooner
	} else {
		d.last = r.sooner
	}
	r.sooner, r.later = nil, nil
}

// min returns the request that expires next; nil if there is none.
func (d *deadlines) min() *Request {
	if d.odd.Len() == 0 {
		return d.first
	}
	if r := (*Request)(d.odd.Min()); d.first == nil || r.key().Before(d.first.key()) {
		return r
	}
	return d.first
}

// all iterates over the waiting requests, roughly in order of expiry: those in the heap come before the list.
func (d *deadlines) all() iter.Seq[*Request] {
	return func(yield func(*Request) bool) {
		for r := range d.odd.All() {
			if !yield((*Request)(r)) {
				return
			}
		}
		for r := d.first; r != nil; r = r.later {
			if !yield(r) {
				return
			}
		}
	}
}

// event caches the time of an event, which needs it several times, relative to the queue's epoch.
type event struct {
	now   time.Time
	since time.Duration
}

// Since returns the time from the queue's epoch to now; the epoch is the time of the first push.
func (q *FairRequestQueue) Since(now time.Time) time.Duration {
	if now != q.event.now {
		q.event = event{now, now.Sub(q.epoch)}
	}
	return q.event.since
}

// UntilDeadline returns the time from now until the next waiting request expires, negative if it is overdue. ok is
// false if nothing waits.
func (q *FairRequestQueue) UntilDeadline(now time.Time) (left time.Duration, ok bool) {
	r := q.due.min()
	if r == nil {
		return 0, false
	}
	return r.due - q.Since(now), true // from memory that min has just read
}

// setDue sets when r, which arrives at now, expires.
func (q *FairRequestQueue) setDue(now time.Time, r *Request, ttl time.Duration) {
	if q.epoch.IsZero() {
		q.epoch = now
		q.event = event{now: now}
	}
	r.arrived = q.Since(now)
	r.due, r.ownDue = r.arrived+ttl, false
	if own := r.deadline(); own < r.due {
		r.due, r.ownDue = own, true
	}
}

// deadline returns the client's own deadline of r, or else the end of its TTL, relative to the queue's epoch.
func (r *Request) deadline() time.Duration {
	if r.Within == 0 {
		return r.due
	}
	return r.arrived + r.Within
}

// Arrived returns when r was first pushed.
func (q *FairRequestQueue) Arrived(r *Request) time.Time { return q.epoch.Add(r.arrived) }

// Waited returns the time from the first push of r to now.
func (q *FairRequestQueue) Waited(now time.Time, r *Request) time.Duration {
	return q.Since(now) - r.arrived
}

// Expired reports whether the pushed r has expired at now: at the end of its TTL or its client's own deadline, whichever
// is earlier.
func (q *FairRequestQueue) Expired(now time.Time, r *Request) bool { return q.Since(now) >= r.due }

// TTLOver reports whether the TTL of the pushed r has ended at now, no later than its client's own deadline. For an
// expired request it distinguishes the two; if they are equal the TTL counts.
func (q *FairRequestQueue) TTLOver(now time.Time, r *Request) bool {
	return q.Expired(now, r) && !r.ownDue
}

// Overdue reports whether any waiting request is due at now.
func (q *FairRequestQueue) Overdue(now time.Time) bool {
	r := q.due.min()
	return r != nil && q.Since(now) >= r.due
}

// CleanupExpired removes at most most requests that are due at now, and appends them to expired, earliest first. more
// reports whether more are due: they can still be popped. TTLOver distinguishes the TTL from the client's own deadline.
func (q *FairRequestQueue) CleanupExpired(now time.Time, most int, expired []*Request) (all []*Request, more bool) {
	since := q.Since(now)
	for {
		r := q.due.min()
		switch {
		case r == nil || since < r.due:
			return expired, false
		case most <= 0:
			return expired, true
		}
		q.Remove(r)
		expired = append(expired, r)
		most--
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
