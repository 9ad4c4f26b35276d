package fairqueue

// row belongs to a line whose order is not that of arrival: it has its requests by rank, and the oldest and the newest
// of them by arrival. A requeued request is inserted in O(log n) as well.
type row struct {
	next  heap[*inRow]
	old   heap[*byAge]
	young heap[*byYouth]
}

// inRow, byAge and byYouth are a request as an element of these heaps.
type (
	inRow   Request
	byAge   Request
	byYouth Request
)

func (r *inRow) key() key { return key{r.extra.rank, r.seq} }

func (r *inRow) handle() *int32 { return &r.extra.rowAt[0] }

func (r *byAge) key() key { return key{seq: r.seq} }

func (r *byAge) handle() *int32 { return &r.extra.rowAt[1] }

func (r *byYouth) key() key { return key{seq: ^r.seq} }

func (r *byYouth) handle() *int32 { return &r.extra.rowAt[2] }

func (w *row) insert(r *Request) {
	w.next.push((*inRow)(r))
	w.old.push((*byAge)(r))
	w.young.push((*byYouth)(r))
}

func (w *row) remove(r *Request) {
	w.next.remove((*inRow)(r))
	w.old.remove((*byAge)(r))
	w.young.remove((*byYouth)(r))
}

// ends returns the oldest and the newest request; nil if the row is empty.
func (w *row) ends() (oldest, newest *Request) {
	return (*Request)(w.old.min()), (*Request)(w.young.min())
}

// small reports whether the row occupies little memory.
func (w *row) small() bool { return w.next.small() && w.old.small() && w.young.small() }
