package extproc

import (
	"fmt"
	"sync"
	"time"

	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// bodyAccount charges the memory of all bodies that are held, and knows those that are still arriving: whose they are
// (owner.go), and until when they have to be whole (bodydeadline.go). Its zero value is empty.
//
// The memory is bounded. When it is used up, the owner with the most bytes in incomplete bodies loses its newest
// incomplete one; a complete body is never taken away. A search takes O(log n) of n owners.
type bodyAccount struct {
	mu sync.Mutex

	// Guarded by mu.
	held       int64 // bytes of all bodies
	incomplete int64 // of these, what owners have
	owners     map[string]*owner
	most       ownerHeap
	due        dueHeap
	timer      *time.Timer
	standing   bool // the timer is
	standsAt   time.Time
}

// mostExpelled bounds how many bodies make room for one part of another.
const mostExpelled = 64

// arrival is a body that is arriving, or has arrived. It belongs to its stream, and is part of it.
type arrival struct {
	// stream is told when the body is no longer awaited, in a goroutine of its own.
	stream interface{ expel(err error) }

	// Guarded by the account's mu.
	err          error // why it is no longer awaited; nil: nothing has happened to it
	charged      int64
	awaited      bool   // it is incomplete
	identity     string // whose it is
	owner        *owner // nil: it is not awaited, or holds nothing
	older, newer *arrival
	deadline     deadline
}

// expect begins to await a body: it has to be whole within timeout of begun, and a second more for every 64 KiB; announced
// bytes count as received.
func (b *bodyAccount) expect(a *arrival, identity string, begun time.Time, timeout time.Duration, announced int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a.awaited, a.identity = true, identity
	a.deadline = deadline{end: begun.Add(timeout), received: announced}
	b.watch(a)
}

// charge takes n bytes more for a body of which so many bytes came, of a limit for all. An error wraps ErrNoMemory, or is
// what has happened to the body before: it is then over.
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
	if b.held-b.incomplete+n > limit { // nobody needs to lose for nothing
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
		b.owns(a, n)
	}
	return nil
}

func noMemoryOf(limit int64) error {
	return fmt.Errorf("extproc: the bodies held take %d bytes: %w", limit, flowcontrol.ErrNoMemory)
}

// complete ends the awaiting of a body: it is whole, and stays charged. An error is what has happened to it before.
func (b *bodyAccount) complete(a *arrival) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.leave(a)
	return a.err
}

// release gives back all that the body holds.
func (b *bodyAccount) release(a *arrival) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.leave(a)
	b.held -= a.charged
	a.charged = 0
}

// expel gives up an awaited body for err, and what it holds.
func (b *bodyAccount) expel(a *arrival, err error) {
	b.leave(a)
	b.held -= a.charged
	a.charged, a.err = 0, err
	go a.stream.expel(err)
}

// leave takes the body out of what is awaited, if it is there.
func (b *bodyAccount) leave(a *arrival) {
	if !a.awaited {
		return
	}
	a.awaited = false
	b.unwatch(a)
	if a.owner != nil {
		b.disowns(a)
	}
}

// take adds n bytes that belong to nobody's body unless there would be more than limit.
func (b *bodyAccount) take(n, limit int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held+n > limit {
		return false
	}
	b.held += n
	return true
}

// add is take without a limit, and with n < 0 gives back.
func (b *bodyAccount) add(n int64) {
	b.mu.Lock()
	b.held += n
	b.mu.Unlock()
}

// bytes is what is held.
func (b *bodyAccount) bytes() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held
}
