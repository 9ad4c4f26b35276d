package extproc

import "container/heap"

// owner is an identity with awaited bodies that hold any bytes.
type owner struct {
	identity string
	bytes    int64    // of these bodies
	newest   *arrival // of them, in the order that they began to hold any
	place    int      // in the heap
}

// ownerHeap has the one with the most bytes first.
type ownerHeap []*owner

func (h ownerHeap) Len() int           { return len(h) }
func (h ownerHeap) Less(i, j int) bool { return h[i].bytes > h[j].bytes }
func (h ownerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push implements heap.Interface.
func (h *ownerHeap) Push(x any) {
	o := x.(*owner)
	o.place = len(*h)
	*h = append(*h, o)
}

// Pop implements heap.Interface.
func (h *ownerHeap) Pop() any {
	last := len(*h) - 1
	o := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return o
}

// owns counts n bytes more of an awaited body.
func (b *bodyAccount) owns(a *arrival, n int64) {
	o := a.owner
	if o == nil {
		o = b.ownerOf(a.identity)
		a.owner, a.older, o.newest = o, o.newest, a
		if a.older != nil {
			a.older.newer = a
		}
	}
	b.incomplete += n
	o.bytes += n
	heap.Fix(&b.most, o.place)
}

func (b *bodyAccount) ownerOf(identity string) *owner {
	o := b.owners[identity]
	if o == nil {
		if b.owners == nil {
			b.owners = make(map[string]*owner)
		}
		o = &owner{identity: identity}
		b.owners[identity] = o
		heap.Push(&b.most, o)
	}
	return o
}

// disowns takes a body from its owner, and forgets an owner without any.
func (b *bodyAccount) disowns(a *arrival) {
	o := a.owner
	if a.newer != nil {
		a.newer.older = a.older
	} else {
		o.newest = a.older
	}
	if a.older != nil {
		a.older.newer = a.newer
	}
	a.owner, a.older, a.newer = nil, nil, nil
	b.incomplete -= a.charged
	o.bytes -= a.charged
	if o.newest == nil {
		heap.Remove(&b.most, o.place)
		delete(b.owners, o.identity)
	} else {
		heap.Fix(&b.most, o.place)
	}
}

// victim is the awaited body that has to go so that a can have n bytes more: the newest of the owner with the most, in
// which a's own counts with the bytes that it asks for. nil: a itself is that body, or there is none.
func (b *bodyAccount) victim(a *arrival, n int64) *arrival {
	if len(b.most) == 0 {
		return nil
	}
	o := b.most[0]
	if a.awaited {
		own := b.owners[a.identity]
		asked := n
		if own != nil {
			asked += own.bytes
		}
		if asked >= o.bytes {
			o = own
		}
		if o == own && (a.owner == nil || o.newest == a) {
			return nil // a is the newest of the one with the most
		}
	}
	return o.newest
}
