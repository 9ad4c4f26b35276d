package extproc

import "container/heap"

// owner is an identity with awaited bodies that hold bytes.
type owner struct {
	identity string
	bytes    int64    // of those bodies
	newest   *arrival // of those bodies, in the order in which they got their first bytes
	place    int      // in the heap
}

// ownerHeap has the owner with the most bytes first.
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

// chargeOwner charges n bytes of an awaited body to its owner. The caller holds b.mu.
func (b *bodyAccount) chargeOwner(a *arrival, n int64) {
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

// ownerOf returns the owner with an identity, which is created if there is none. The caller holds b.mu.
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

// disown removes a body from its owner, and drops an owner that has no more bodies. The caller holds b.mu.
func (b *bodyAccount) disown(a *arrival) {
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

// victim returns the awaited body to expel so that a gets n more bytes: the newest body of the owner with the most bytes,
// where a's owner counts with the bytes it asks for. It returns nil if that body is a itself, or if there is none. The
// caller holds b.mu.
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
