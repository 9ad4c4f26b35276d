package fairqueue

import (
	"iter"
	"time"
)

// deadlines holds the waiting requests by expiry time. Requests with the same TTL arrive in that order, so each is
// appended to a list; a request that expires before the last of the list (because of its own deadline, a shorter TTL,
// or a requeue) goes to a heap.
type deadlines struct {
	first, last *Request
	odd         heap[*Request]
}

func (d *deadlines) push(r *Request) {
	if d.last != nil && r.key().before(d.last.key()) {
		d.odd.push(r)
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
	if d.odd.contains(r) {
		d.odd.remove(r)
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
	if d.odd.len() == 0 {
		return d.first
	}
	if r := d.odd.min(); d.first == nil || r.key().before(d.first.key()) {
		return r
	}
	return d.first
}

// all iterates over the waiting requests, roughly in order of expiry: those in the heap come before the list.
func (d *deadlines) all() iter.Seq[*Request] {
	return func(yield func(*Request) bool) {
		for r := range d.odd.all() {
			if !yield(r) {
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

// event is the time of an event, which asks for it several times, and how long it is after the queue's epoch.
type event struct {
	now   time.Time
	since time.Duration
}

// since returns how long now is after the epoch.
func (q *FairRequestQueue) since(now time.Time) time.Duration {
	if now != q.event.now {
		q.event = event{now, now.Sub(q.epoch)}
	}
	return q.event.since
}

// UntilDeadline returns how long it is from now until the next waiting request expires; it is negative if that time is
// over. ok is false if nothing waits.
func (q *FairRequestQueue) UntilDeadline(now time.Time) (left time.Duration, ok bool) {
	r := q.due.min()
	if r == nil {
		return 0, false
	}
	return r.due - q.since(now), true // from memory that min has just read
}

// Overdue reports whether any waiting request is due at now.
func (q *FairRequestQueue) Overdue(now time.Time) bool {
	r := q.due.min()
	return r != nil && q.since(now) >= r.due
}

// CleanupExpired removes the requests that are due at now, at most so many, and appends them to expired, earliest first.
// more reports whether others are due: they can still be popped. TTLOver distinguishes the TTL from the client's own
// deadline.
func (q *FairRequestQueue) CleanupExpired(now time.Time, most int, expired []*Request) (all []*Request, more bool) {
	since := q.since(now)
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
