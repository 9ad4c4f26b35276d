package fairqueue

import "iter"

// line holds the requests of one flow in one lane. It gives the next request by order, the oldest, which lends its age
// to its tier, and the newest, which is displaced first. In order of arrival it is one intrusive list with O(1)
// removal; with another order it also has a row.
type line struct {
	oldest, newest *Request
	row            *row // nil: in order of arrival
}

// head returns the request that goes next; nil if none waits.
func (l *line) head() *Request {
	if l.row == nil {
		return l.oldest
	}
	return l.row.first()
}

// first calls look with the requests that go first in their order, at most mostLooked of them, until look returns false.
func (l *line) first(look func(*Request) bool) {
	if l.row != nil {
		l.row.next.Least(func(r *inRow) bool { return look(r.request) })
		return
	}
	for r, n := l.oldest, 0; r != nil && n < mostLooked && look(r); r, n = r.next, n+1 {
	}
}

func (l *line) insert(r *Request) { l.insertAfter(r, nil) }

// insertAfter is insert for a request whose place is after the request before; nil: anywhere.
func (l *line) insertAfter(r, before *Request) {
	if l.row != nil {
		l.row.insert(r)
		l.oldest, l.newest = l.row.ends()
		return
	}
	after := l.newest
	if after != nil && after.seq > r.seq { // a requeued request; those before it were requeued too
		n := l.oldest
		if after = before; before != nil {
			n = before.next
		}
		for ; n.seq < r.seq; n = n.next {
			after = n
		}
	}
	r.prev = after
	if after != nil {
		r.next = after.next
		after.next = r
	} else {
		r.next = l.oldest
		l.oldest = r
	}
	if r.next != nil {
		r.next.prev = r
	} else {
		l.newest = r
	}
}

func (l *line) remove(r *Request) {
	if l.row != nil {
		l.row.remove(r)
		l.oldest, l.newest = l.row.ends()
		return
	}
	if r.prev != nil {
		r.prev.next = r.next
	} else {
		l.oldest = r.next
	}
	if r.next != nil {
		r.next.prev = r.prev
	} else {
		l.newest = r.prev
	}
	r.prev, r.next = nil, nil
}

// all iterates over the requests: in order of arrival, or with a row in no order.
func (l *line) all() iter.Seq[*Request] {
	return func(yield func(*Request) bool) {
		if l.row != nil {
			for r := range l.row.next.All() {
				if !yield(r.request) {
					return
				}
			}
			return
		}
		for r := l.oldest; r != nil; r = r.next {
			if !yield(r) {
				return
			}
		}
	}
}
