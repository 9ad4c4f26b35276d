package fairqueue

// key orders the elements of a heap: by at, across its rollover, then by seq. Equal keys do not exist in one heap.
type key struct{ at, seq uint64 }

func (k key) before(o key) bool {
	if k.at != o.at {
		return int64(k.at-o.at) < 0
	}
	return k.seq < o.seq
}

// heapItem is an element of an indexed heap: it knows its key, and remembers where it lies, so that it can be moved
// or removed in O(log n).
type heapItem interface {
	key() key
	slot() *int // 1-based position; 0: in no heap
}

// heap is a 4-ary indexed min-heap. The keys lie beside each other in it, so that a comparison follows no pointer: with
// thousands of flows that is most of the time. An element whose key changes must be fixed before anything else.
type heap[T heapItem] struct{ items []heapEntry[T] }

type heapEntry[T heapItem] struct {
	key key
	of  T
}

const heapArity = 4

func (h *heap[T]) len() int { return len(h.items) }

func (h *heap[T]) contains(x T) bool { return *x.slot() != 0 }

// min is the least element; the zero value when there is none.
func (h *heap[T]) min() (x T) {
	if len(h.items) > 0 {
		x = h.items[0].of
	}
	return x
}

func (h *heap[T]) push(x T) {
	e := heapEntry[T]{x.key(), x}
	h.items = append(h.items, e)
	h.up(len(h.items)-1, e)
}

// fix restores the order after x's key may have changed.
func (h *heap[T]) fix(x T) {
	i := *x.slot() - 1
	e := heapEntry[T]{x.key(), x}
	if h.items[i].key != e.key && !h.up(i, e) {
		h.down(i, e)
	}
}

func (h *heap[T]) remove(x T) {
	i, last := *x.slot()-1, len(h.items)-1
	moved := h.items[last]
	h.items[last] = heapEntry[T]{}
	h.items = h.items[:last]
	*x.slot() = 0
	if i != last && !h.up(i, moved) {
		h.down(i, moved)
	}
}

// up places e, which belongs at i or above, and reports whether it moved.
func (h *heap[T]) up(i int, e heapEntry[T]) bool {
	start := i
	for i > 0 {
		parent := (i - 1) / heapArity
		p := h.items[parent]
		if !e.key.before(p.key) {
			break
		}
		h.items[i] = p
		*p.of.slot() = i + 1
		i = parent
	}
	h.items[i] = e
	*e.of.slot() = i + 1
	return i != start
}

// down places e, which belongs at i or below.
func (h *heap[T]) down(i int, e heapEntry[T]) {
	n := len(h.items)
	for {
		first := i*heapArity + 1
		if first >= n {
			break
		}
		least := first
		for child := first + 1; child < min(first+heapArity, n); child++ {
			if h.items[child].key.before(h.items[least].key) {
				least = child
			}
		}
		c := h.items[least]
		if !c.key.before(e.key) {
			break
		}
		h.items[i] = c
		*c.of.slot() = i + 1
		i = least
	}
	h.items[i] = e
	*e.of.slot() = i + 1
}
