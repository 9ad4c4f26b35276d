package fairqueue

// heapItem is an element of an indexed heap: it orders itself and remembers where it lies, so that it can be moved
// or removed in O(log n).
type heapItem[T any] interface {
	before(T) bool
	slot() *int // 1-based position; 0: in no heap
}

// heap is a 4-ary indexed min-heap. Equal elements do not exist: every before ends in the arrival sequence.
type heap[T heapItem[T]] struct{ items []T }

const heapArity = 4

func (h *heap[T]) len() int { return len(h.items) }

func (h *heap[T]) contains(x T) bool { return *x.slot() != 0 }

// min is the least element; the zero value when there is none.
func (h *heap[T]) min() (x T) {
	if len(h.items) > 0 {
		x = h.items[0]
	}
	return x
}

func (h *heap[T]) push(x T) {
	h.items = append(h.items, x)
	h.up(len(h.items)-1, x)
}

// fix restores the order after x's key has changed.
func (h *heap[T]) fix(x T) {
	i := *x.slot() - 1
	if !h.up(i, x) {
		h.down(i, x)
	}
}

func (h *heap[T]) remove(x T) {
	i, last := *x.slot()-1, len(h.items)-1
	moved := h.items[last]
	var zero T
	h.items[last] = zero
	h.items = h.items[:last]
	*x.slot() = 0
	if i != last && !h.up(i, moved) {
		h.down(i, moved)
	}
}

// up places x, which belongs at i or above, and reports whether it moved.
func (h *heap[T]) up(i int, x T) bool {
	start := i
	for i > 0 {
		parent := (i - 1) / heapArity
		p := h.items[parent]
		if !x.before(p) {
			break
		}
		h.items[i] = p
		*p.slot() = i + 1
		i = parent
	}
	h.items[i] = x
	*x.slot() = i + 1
	return i != start
}

// down places x, which belongs at i or below.
func (h *heap[T]) down(i int, x T) {
	n := len(h.items)
	for {
		first := i*heapArity + 1
		if first >= n {
			break
		}
		least := first
		for child := first + 1; child < min(first+heapArity, n); child++ {
			if h.items[child].before(h.items[least]) {
				least = child
			}
		}
		c := h.items[least]
		if !c.before(x) {
			break
		}
		h.items[i] = c
		*c.slot() = i + 1
		i = least
	}
	h.items[i] = x
	*x.slot() = i + 1
}
