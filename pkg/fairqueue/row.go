package fairqueue

// row belongs to a line whose order is not that of arrival: it has its requests by rank, and the oldest and the newest
// of them by arrival. A requeued request is inserted in O(log n) as well.
type row struct {
	next  heap[*inRow]
	old   heap[*byAge]
	young heap[*byYouth]
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

func (r *inRow) key() key { return key{r.request.extra.rank, r.request.seq} }

func (r *inRow) handle() *int32 { return &r.number }

func (r *byAge) key() key { return key{seq: r.request.seq} }

func (r *byAge) handle() *int32 { return &r.number }

func (r *byYouth) key() key { return key{seq: ^r.request.seq} }

func (r *byYouth) handle() *int32 { return &r.number }

func (w *row) insert(r *Request) {
	p := &r.extra.row
	p.next.request, p.old.request, p.young.request = r, r, r
	w.next.push(&p.next)
	w.old.push(&p.old)
	w.young.push(&p.young)
}

func (w *row) remove(r *Request) {
	p := &r.extra.row
	w.next.remove(&p.next)
	w.old.remove(&p.old)
	w.young.remove(&p.young)
}

// first returns the request that goes next, or nil if the row is empty.
func (w *row) first() *Request {
	if p := w.next.min(); p != nil {
		return p.request
	}
	return nil
}

// ends returns the oldest and the newest request; nil if the row is empty.
func (w *row) ends() (oldest, newest *Request) {
	if p := w.old.min(); p != nil {
		oldest, newest = p.request, w.young.min().request
	}
	return oldest, newest
}

// small reports whether the row occupies little memory.
func (w *row) small() bool { return w.next.small() && w.old.small() && w.young.small() }
