package fairqueue

import "iter"

// key orders the elements of a heap: by value, across its rollover, then by seq. No two keys in a heap are equal.
type key struct{ value, seq uint64 }

func (k key) before(o key) bool {
	if k.value != o.value {
		return int64(k.value-o.value) < 0
	}
	return k.seq < o.seq
}

// heapItem is an element of an indexed heap: it has a key, and stores its number in the heap, so that it can be moved
// or removed in O(log n).
type heapItem interface {
	key() key
	handle() *int32 // 1 or more; 0 if it is in no heap
}

// heap is a 4-ary indexed min-heap. Only keys and numbers move in it; the index and the element of each number are in
// arrays beside it. So comparisons and moves do not touch elements, which saves most of the time with thousands of
// flows that are not cached. An element whose key has changed must be fixed before any other operation.
type heap[T heapItem] struct {
	items   []heapEntry
	index   []int32 // by number: the index in items
	element []T     // by number: the element
	free    []int32 // unused numbers
}

type heapEntry struct {
	key    key
	number int32
}

const heapArity = 4

// small reports whether the heap occupies little memory.
func (h *heap[T]) small() bool { return cap(h.element) <= 64 }

func (h *heap[T]) len() int { return len(h.items) }

func (h *heap[T]) contains(x T) bool { return *x.handle() != 0 }

// min returns the least element; the zero value if there is none.
func (h *heap[T]) min() (x T) {
	if len(h.items) > 0 {
		x = h.element[h.items[0].number]
	}
	return x
}

// all iterates over the elements, the least first and the others in no order.
func (h *heap[T]) all() iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, e := range h.items {
			if !yield(h.element[e.number]) {
				return
			}
		}
	}
}

// first returns the least element that will do; the zero value if none will. It looks at no element that is after one that
// will do.
func (h *heap[T]) first(will func(T) bool) (best T) {
	if len(h.items) > 0 {
		h.firstBelow(0, nil, &best, will)
	}
	return best
}

func (h *heap[T]) firstBelow(i int, least *key, best *T, will func(T) bool) *key {
	switch e := &h.items[i]; {
	case least != nil && !e.key.before(*least):
		return least
	case will(h.element[e.number]):
		*best = h.element[e.number]
		return &e.key
	}
	for child := i*heapArity + 1; child < min((i+1)*heapArity+1, len(h.items)); child++ {
		least = h.firstBelow(child, least, best, will)
	}
	return least
}

func (h *heap[T]) push(x T) {
	if len(h.element) == 0 { // number 0 is not used
		var none T
		h.element, h.index = append(h.element, none), append(h.index, 0)
	}
	var number int32
	if n := len(h.free); n > 0 {
		number, h.free = h.free[n-1], h.free[:n-1]
		h.element[number] = x
	} else {
		number = int32(len(h.element))
		h.element, h.index = append(h.element, x), append(h.index, 0)
	}
	*x.handle() = number
	e := heapEntry{x.key(), number}
	h.items = append(h.items, e)
	h.up(len(h.items)-1, e)
}

// fix restores the order after x's key may have changed.
func (h *heap[T]) fix(x T) {
	number := *x.handle()
	i := int(h.index[number])
	e := heapEntry{x.key(), number}
	if h.items[i].key != e.key && !h.up(i, e) {
		h.down(i, e)
	}
}

func (h *heap[T]) remove(x T) {
	number := *x.handle()
	*x.handle() = 0
	var none T
	h.element[number] = none
	h.free = append(h.free, number)
	i, last := int(h.index[number]), len(h.items)-1
	moved := h.items[last]
	h.items = h.items[:last]
	if i != last && !h.up(i, moved) {
		h.down(i, moved)
	}
}

// up moves e up from i to where it belongs, and reports whether it moved.
func (h *heap[T]) up(i int, e heapEntry) bool {
	start := i
	for i > 0 {
		parent := (i - 1) / heapArity
		p := h.items[parent]
		if !e.key.before(p.key) {
			break
		}
		h.items[i] = p
		h.index[p.number] = int32(i)
		i = parent
	}
	h.items[i] = e
	h.index[e.number] = int32(i)
	return i != start
}

// down moves e down from i to where it belongs.
func (h *heap[T]) down(i int, e heapEntry) {
	items := h.items
	for {
		first := i*heapArity + 1
		if first >= len(items) {
			break
		}
		least, c := first, items[first]
		for n, child := range items[first+1 : min(first+heapArity, len(items))] {
			if child.key.before(c.key) {
				least, c = first+1+n, child
			}
		}
		if !c.key.before(e.key) {
			break
		}
		items[i] = c
		h.index[c.number] = int32(i)
		i = least
	}
	items[i] = e
	h.index[e.number] = int32(i)
}
