package fairqueue

import "iter"

// line is the requests of one flow in one lane: the next one by their order, and beside that the arrivals, of which the
// oldest lends its age to its tier and the newest is displaced first. Where the order is that of arrival both are one
// intrusive list, with O(1) removal anywhere; otherwise there is a row beside.
type line struct {
	oldest, newest *Request
	row            *row // nil: they go as they came
}

// head is the request that goes next; nil: nobody waits.
func (l *line) head() *Request {
	if l.row == nil {
		return l.oldest
	}
	return (*Request)(l.row.next.min())
}

func (l *line) insert(r *Request) {
	if l.row != nil {
		l.row.insert(r)
		l.oldest, l.newest = l.row.ends()
		return
	}
	after := l.newest
	if after != nil && after.seq > r.seq { // it came back into the queue; those before it came back too
		after = nil
		for n := l.oldest; n.seq < r.seq; n = n.next {
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

// all are the requests: as they came, or with a row in no order.
func (l *line) all() iter.Seq[*Request] {
	return func(yield func(*Request) bool) {
		if l.row != nil {
			for r := range l.row.next.all() {
				if !yield((*Request)(r)) {
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
