package extproc

import (
	"fmt"
	"sync"
	"time"

	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// bodyAccount accounts for the memory of all bodies that are held. Of those that are still arriving it knows whose they
// are (owner.go) and when they have to be whole (bodydeadline.go). The zero value is an empty account.
//
// The memory is bounded. When it is used up, the owner with the most bytes in incomplete bodies loses its newest
// incomplete body. A complete body is never expelled. Finding the victim takes O(log n) for n owners.
type bodyAccount struct {
	mu sync.Mutex

	// Guarded by mu.
	held       int64 // bytes of all bodies
	incomplete int64 // bytes of the bodies that have an owner
	owners     map[string]*owner
	most       ownerHeap
	due        dueHeap
	timer      *time.Timer
	armed      bool // the timer is
	armedFor   time.Time
}

// mostExpelled is how many bodies may be expelled to make room for one part of another.
const mostExpelled = 64

// arrival is the account's record of one stream's body, which is arriving or has arrived.
type arrival struct {
	// stream is told when the body is expelled, in a goroutine of its own.
	stream interface{ expel(err error) }

	// Guarded by the account's mu.
	err          error // why the body was expelled; nil if it was not
	charged      int64
	awaited      bool   // the body is incomplete
	identity     string // of the owner
	owner        *owner // nil if the body is not awaited or holds nothing
	older, newer *arrival
	deadline     deadline
}

// expect begins to await a body. It has to be whole within timeout of begun, and one second more for every 64 KiB received
// or announced.
func (b *bodyAccount) expect(a *arrival, identity string, begun time.Time, timeout time.Duration, announced int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a.awaited, a.identity = true, identity
	a.deadline = deadline{end: begun.Add(timeout), received: announced}
	b.schedule(a)
}

// charge charges n more bytes for a body of which received more bytes arrived, within a limit for all bodies. The error
// wraps ErrNoMemory, or says why the body was expelled before; the request cannot go on.
func (b *bodyAccount) charge(a *arrival, received, n, limit int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a.err != nil {
		return a.err
	}
	a.deadline.received += received
	if n == 0 {
		return nil
	}
	if b.held-b.incomplete+n > limit { // expelling all others would not make enough room
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
	return fmt.Errorf("extproc: the bodies held take %d bytes: %w", limit, flowcontrol.ErrNoMemory)
}

// complete marks a body as whole. It stays charged. The error says why the body was expelled before.
func (b *bodyAccount) complete(a *arrival) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.leave(a)
	return a.err
}

// release releases the memory of a body, complete or not.
func (b *bodyAccount) release(a *arrival) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.leave(a)
	b.held -= a.charged
	a.charged = 0
}

// expel releases an awaited body because of err, and tells its stream. The caller holds b.mu.
func (b *bodyAccount) expel(a *arrival, err error) {
	b.leave(a)
	b.held -= a.charged
	a.charged, a.err = 0, err
	go a.stream.expel(err)
}

// leave stops awaiting a body. It is idempotent. The caller holds b.mu.
func (b *bodyAccount) leave(a *arrival) {
	if !a.awaited {
		return
	}
	a.awaited = false
	b.unschedule(a)
	if a.owner != nil {
		b.disown(a)
	}
}

// take charges n bytes that belong to no body, and reports whether they fit within limit.
func (b *bodyAccount) take(n, limit int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held+n > limit {
		return false
	}
	b.held += n
	return true
}

// add charges n bytes that belong to no body, without a limit. A negative n releases.
func (b *bodyAccount) add(n int64) {
	b.mu.Lock()
	b.held += n
	b.mu.Unlock()
}

// bytes returns the memory that is held.
func (b *bodyAccount) bytes() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held
}
