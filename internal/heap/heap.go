// Package heap is Weir's heap: 4-ary, indexed, of elements with integer keys. It keeps the queue's orders, the victims
// of preemption, the due times of probes and scrapes, incomplete bodies, and the next steps of a simulation.
package heap

import (
	"fmt"
	"iter"
	"time"
)

// Key orders the elements of a heap: by Value, across its rollover, then by Seq. Elements with equal keys have no
// order.
type Key struct{ Value, Seq uint64 }

// Before reports whether k is before o.
func (k Key) Before(o Key) bool {
	if k.Value != o.Value {
		return int64(k.Value-o.Value) < 0
	}
	return k.Seq < o.Seq
}

// At returns the key of a non-zero time.
func At(t time.Time) Key { return Key{Value: uint64(t.UnixNano())} }

// Item is an element: it has a key, and stores its number in the heap, so that it can be moved or removed in O(log n).
type Item interface {
	Key() Key
	Handle() *int32 // 1 or more; 0 if it is in no heap
}

// Heap is a 4-ary indexed min-heap. Only keys and numbers move in it; separate arrays have the index and the element of
// each number. So comparisons and moves do not touch elements, which saves most of the time with thousands of uncached
// flows. After a change of its key an element must be fixed before any other operation. The zero value is empty.
type Heap[T Item] struct {
	items   []entry
	index   []int32 // by number: the index in items
	element []T     // by number: the element
	free    []int32 // unused numbers
}

type entry struct {
	key    Key
	number int32
}

const arity = 4

// Small reports whether the heap occupies little memory.
func (h *Heap[T]) Small() bool { return cap(h.element) <= 64 }

// Len returns the number of elements.
func (h *Heap[T]) Len() int { return len(h.items) }

// Contains reports whether x is in this heap. x must not be in another heap.
func (h *Heap[T]) Contains(x T) bool { return *x.Handle() != 0 }

// Min returns the least element; the zero value if there is none.
func (h *Heap[T]) Min() (x T) {
	if len(h.items) > 0 {
		x = h.element[h.items[0].number]
	}
	return x
}

// MinKey returns the key of the least element of a non-empty heap.
func (h *Heap[T]) MinKey() Key { return h.items[0].key }

// All iterates over the elements, the least first and the others in no order.
func (h *Heap[T]) All() iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, e := range h.items {
			if !yield(h.element[e.number]) {
				return
			}
		}
	}
}

// First returns the least element for which will is true; the zero value if there is none. It visits no element after
// one that satisfies will.
func (h *Heap[T]) First(will func(T) bool) (best T) {
	if len(h.items) > 0 {
		h.firstBelow(0, nil, &best, will)
	}
	return best
}

func (h *Heap[T]) firstBelow(i int, least *Key, best *T, will func(T) bool) *Key {
	switch e := &h.items[i]; {
	case least != nil && !e.key.Before(*least):
		return least
	case will(h.element[e.number]):
		*best = h.element[e.number]
		return &e.key
	}
	for child := i*arity + 1; child < min((i+1)*arity+1, len(h.items)); child++ {
		least = h.firstBelow(child, least, best, will)
	}
	return least
}

// MostLeast is the number of elements visited by Least.
const MostLeast = 8

// Least calls look with the least elements in order, at most MostLeast of them, until look returns false. look must not
// change the heap.
func (h *Heap[T]) Least(look func(T) bool) {
	var next [1 + (arity-1)*MostLeast]int // where the next may be
	n := min(1, len(h.items))
	for looked := 0; n > 0 && looked < MostLeast; looked++ {
		best := 0
		for i := range n {
			if h.items[next[i]].key.Before(h.items[next[best]].key) {
				best = i
			}
		}
		at := next[best]
		if !look(h.element[h.items[at].number]) {
			return
		}
		n--
		next[best] = next[n]
		for child := at*arity + 1; child < min((at+1)*arity+1, len(h.items)); child++ {
			next[n] = child
			n++
		}
	}
}

// Push adds x.
func (h *Heap[T]) Push(x T) {
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
	*x.Handle() = number
	e := entry{x.Key(), number}
	h.items = append(h.items, e)
	h.up(len(h.items)-1, e)
}

// Fix restores the order after x's key may have changed.
func (h *Heap[T]) Fix(x T) {
	number := *x.Handle()
	i := int(h.index[number])
	e := entry{x.Key(), number}
	if h.items[i].key != e.key && !h.up(i, e) {
		h.down(i, e)
	}
}

// Remove removes x, which is in the heap.
func (h *Heap[T]) Remove(x T) {
	number := *x.Handle()
	*x.Handle() = 0
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

// Walk visits the elements, each before those below it, which have later keys. It skips the elements below one for
// which visit returns false.
func (h *Heap[T]) Walk(visit func(T) (below bool)) { h.walkBelow(0, visit) }

func (h *Heap[T]) walkBelow(i int, visit func(T) bool) {
	if i >= len(h.items) || !visit(h.element[h.items[i].number]) {
		return
	}
	for child := i*arity + 1; child < min((i+1)*arity+1, len(h.items)); child++ {
		h.walkBelow(child, visit)
	}
}

// FixAll restores the order after any of the keys may have changed.
func (h *Heap[T]) FixAll() {
	for i := range h.items {
		h.items[i].key = h.element[h.items[i].number].Key()
	}
	for i := (len(h.items) + arity - 2) / arity; i > 0; i-- { // the parents, the last first
		h.down(i-1, h.items[i-1])
	}
}

// Problem returns an error if an invariant of the heap is broken. It is for tests.
func (h *Heap[T]) Problem() error {
	if numbers := max(0, len(h.element)-1); len(h.items)+len(h.free) != numbers || len(h.index) != len(h.element) {
		return fmt.Errorf("%d elements and %d free numbers of %d", len(h.items), len(h.free), numbers)
	}
	for i, x := range h.items {
		of := h.element[x.number]
		switch parent := h.items[max(0, i-1)/arity]; {
		case *of.Handle() != x.number || int(h.index[x.number]) != i:
			return fmt.Errorf("the element at %d, number %d, believes to be number %d at %d", i, x.number, *of.Handle(), h.index[x.number])
		case x.key != of.Key():
			return fmt.Errorf("the element at %d lies there by %v, its key is %v", i, x.key, of.Key())
		case x.key.Before(parent.key):
			return fmt.Errorf("the element at %d is before its parent", i)
		}
	}
	return nil
}

// Holds reports whether x is in this heap and no other. It is for tests.
func (h *Heap[T]) Holds(x T) bool {
	number := *x.Handle()
	return number > 0 && int(number) < len(h.element) && h.element[number].Handle() == x.Handle()
}

// up moves e up from i to its place, and reports whether it moved.
func (h *Heap[T]) up(i int, e entry) bool {
	start := i
	for i > 0 {
		parent := (i - 1) / arity
		p := h.items[parent]
		if !e.key.Before(p.key) {
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

// down moves e down from i to its place.
func (h *Heap[T]) down(i int, e entry) {
	items := h.items
	for {
		first := i*arity + 1
		if first >= len(items) {
			break
		}
		least, c := first, items[first]
		for n, child := range items[first+1 : min(first+arity, len(items))] {
			if child.key.Before(c.key) {
				least, c = first+1+n, child
			}
		}
		if !c.key.Before(e.key) {
			break
		}
		items[i] = c
		h.index[c.number] = int32(i)
		i = least
	}
	items[i] = e
	h.index[e.number] = int32(i)
}
