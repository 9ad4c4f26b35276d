package extproc

import (
	"fmt"
	"sync"
	"time"

	"github.com/weir-epp/weir/internal/heap"
	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// bodyMemory accounts for the memory of all held bodies. For incomplete bodies it also has their owners and deadlines
// (bodydeadline.go). The zero value is empty.
//
// The memory is bounded. When it is used up, the owner with the most bytes in incomplete bodies loses its newest
// incomplete body. A complete body is never expelled. Finding the victim takes O(log n) for n owners.
type bodyMemory struct {
	mu sync.Mutex

	// Guarded by mu.
	held       int64 // bytes of all bodies
	incomplete int64 // bytes of the bodies that have an owner
	owners     map[string]*owner
	most       heap.Heap[*owner]
	due        deadlines[*arrival]
}

// mostExpelled is the largest number of bodies expelled to make room for one part of another body.
const mostExpelled = 64

// arrival is the record of one stream's body, incomplete or complete.
type arrival struct {
	// stream is told when the body is expelled, in a goroutine of its own.
	stream interface{ expel(err error) }

	// Guarded by mu of bodyMemory.
	err          error // why the body was expelled; nil if it was not
	charged      int64
	awaited      bool   // the body is incomplete
	identity     string // of the owner
	owner        *owner // nil if the body is not awaited or holds nothing
	older, newer *arrival
	deadline
}

// expect begins to await a body. The body must be complete within timeout of begun, plus one second for every 64 KiB
// received or announced.
func (b *bodyMemory) expect(a *arrival, identity string, begun time.Time, timeout time.Duration, announced int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a.awaited, a.identity = true, identity
	a.deadline = deadline{begun: begun, timeout: timeout, received: announced}
	b.due.add(a, b.expire)
}

// charge charges n more bytes for a body after received more bytes have arrived, within a limit for all bodies. The
// error wraps ErrNoMemory, or is the reason why the body was expelled before; it ends the request.
func (b *bodyMemory) charge(a *arrival, received, n, limit int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a.err != nil {
		return a.err
	}
	a.deadline.received += received
	if n == 0 {
		return nil
	}
	if b.held-b.incomplete+n > limit { // expelling all incomplete bodies would not make enough room
		return noMemoryOf(limit)
	}
	for expelled := 0; b.held+n > limit; expelled++ {
		victim := b.victim(a, n)
		if victim == nil || expelled == mostExpelled {
			return noMemoryOf(limit)
		}
		b.expel(victim, noMemoryOf(limit))
	}
	b.held += n
	a.charged += n
	if a.awaited {
		b.chargeOwner(a, n)
	}
	return nil
}

func noMemoryOf(limit int64) error {
	err := fmt.Errorf("extproc: the bodies held take %d bytes: %w", limit, flowcontrol.ErrNoMemory)
	return &flowcontrol.LimitedError{Name: dispatch.LimitMaxBodyBytesTotal, Value: limit, Err: err}
}

// complete marks a body as complete. It stays charged. The error is the reason why the body was expelled before.
func (b *bodyMemory) complete(a *arrival) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.leave(a)
	return a.err
}

// release releases the memory of a body, complete or not.
func (b *bodyMemory) release(a *arrival) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.leave(a)
	b.held -= a.charged
	a.charged = 0
}

// expire expels the bodies whose deadline has passed. The timer calls it.
func (b *bodyMemory) expire() {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	for a, late := b.due.late(now); late; a, late = b.due.late(now) {
		b.expel(a, a.missed(a.charged))
	}
	b.due.fired(b.expire)
}

// expel releases an awaited body because of err, and tells its stream. The caller holds b.mu.
func (b *bodyMemory) expel(a *arrival, err error) {
	b.leave(a)
	b.held -= a.charged
	a.charged, a.err = 0, err
	go a.stream.expel(err)
}

// leave stops awaiting a body. It is idempotent. The caller holds b.mu.
func (b *bodyMemory) leave(a *arrival) {
	if !a.awaited {
		return
	}
	a.awaited = false
	b.due.remove(a)
	if a.owner != nil {
		b.disown(a)
	}
}

// take charges n bytes that belong to no body, and reports whether they fit within limit.
func (b *bodyMemory) take(n, limit int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held+n > limit {
		return false
	}
	b.held += n
	return true
}

// add charges n bytes that belong to no body, without a limit. A negative n releases.
func (b *bodyMemory) add(n int64) {
	b.mu.Lock()
	b.held += n
	b.mu.Unlock()
}

// bytes returns the memory that is held.
func (b *bodyMemory) bytes() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held
}

// owner is an identity with awaited bodies that hold bytes.
type owner struct {
	identity string
	bytes    int64    // of those bodies
	newest   *arrival // of those bodies, in the order in which they got their first bytes
	number   int32    // in the heap
}

// Key puts the owner with the most bytes first.
func (o *owner) Key() heap.Key { return heap.Key{Value: uint64(-o.bytes)} }

func (o *owner) Handle() *int32 { return &o.number }

// chargeOwner charges n bytes of an awaited body to its owner. The caller holds b.mu.
func (b *bodyMemory) chargeOwner(a *arrival, n int64) {
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
	b.most.Fix(o)
}

// ownerOf returns the owner with an identity, which is created if there is none. The caller holds b.mu.
func (b *bodyMemory) ownerOf(identity string) *owner {
	o := b.owners[identity]
	if o == nil {
		if b.owners == nil {
			b.owners = make(map[string]*owner)
		}
		o = &owner{identity: identity}
		b.owners[identity] = o
		b.most.Push(o)
	}
	return o
}

// disown removes a body from its owner, and drops an owner that has no more bodies. The caller holds b.mu.
func (b *bodyMemory) disown(a *arrival) {
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
		b.most.Remove(o)
		delete(b.owners, o.identity)
	} else {
		b.most.Fix(o)
	}
}

// victim returns the awaited body to expel so that a gets n more bytes: the newest body of the owner with the most
// bytes, where a's owner counts with n more. It returns nil if that body is a itself, or if there is none. The caller
// holds b.mu.
func (b *bodyMemory) victim(a *arrival, n int64) *arrival {
	if b.most.Len() == 0 {
		return nil
	}
	o := b.most.Min()
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
			return nil // a is the newest body of the owner with the most bytes
		}
	}
	return o.newest
}
