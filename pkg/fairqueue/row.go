package fairqueue

import "github.com/weir-epp/weir/internal/heap"

// row belongs to a line in another order than arrival: it has its requests by rank, and the oldest and the newest by
// arrival. Arrivals are appended to a list. A requeued request is older than the list's end, and joins heaps, in O(log
// n).
type row struct {
	next           heap.Heap[*inRow]
	oldest, newest *Request // the list's
	old            heap.Heap[*byAge]
	young          heap.Heap[*byYouth]
}

// rowEntry is a request's place in these heaps.
type rowEntry struct {
	next  inRow
	old   byAge
	young byYouth
}

type (
	inRow struct {
		request *Request
		number  int32
	}
	byAge struct {
		request *Request
		number  int32
	}
	byYouth struct {
		request *Request
		number  int32
	}
)

func (r *inRow) Key() heap.Key { return heap.Key{Value: r.request.extra.rank, Seq: r.request.seq} }

func (r *inRow) Handle() *int32 { return &r.number }

func (r *byAge) Key() heap.Key { return heap.Key{Seq: r.request.seq} }

func (r *byAge) Handle() *int32 { return &r.number }

func (r *byYouth) Key() heap.Key { return heap.Key{Seq: ^r.request.seq} }

func (r *byYouth) Handle() *int32 { return &r.number }

func (w *row) insert(r *Request) {
	p := &r.extra.row
	p.next.request = r
	w.next.Push(&p.next)
	if w.newest != nil && r.seq < w.newest.seq {
		p.old.request, p.young.request = r, r
		w.old.Push(&p.old)
		w.young.Push(&p.young)
		return
	}
	if r.prev = w.newest; r.prev != nil {
		r.prev.next = r
	} else {
		w.oldest = r
	}
	w.newest = r
}

func (w *row) remove(r *Request) {
	p := &r.extra.row
	w.next.Remove(&p.next)
	if w.old.Contains(&p.old) {
		w.old.Remove(&p.old)
		w.young.Remove(&p.young)
		return
	}
	if r.prev != nil {
		r.prev.next = r.next
	} else {
		w.oldest = r.next
	}
	if r.next != nil {
		r.next.prev = r.prev
	} else {
		w.newest = r.prev
	}
	r.prev, r.next = nil, nil
}

// first returns the request that goes next, or nil if the row is empty.
func (w *row) first() *Request {
	if p := w.next.Min(); p != nil {
		return p.request
	}
	return nil
}

// ends returns the oldest and the newest request; nil if the row is empty.
func (w *row) ends() (oldest, newest *Request) {
	oldest, newest = w.oldest, w.newest
	if p := w.old.Min(); p != nil {
		if oldest == nil || p.request.seq < oldest.seq {
			oldest = p.request
		}
		if p := w.young.Min(); newest == nil || p.request.seq > newest.seq {
			newest = p.request
		}
	}
	return oldest, newest
}

// small reports whether the row occupies little memory.
func (w *row) small() bool { return w.next.Small() && w.old.Small() && w.young.Small() }
