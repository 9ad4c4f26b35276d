// Package due runs tasks at their due times, at most a given number concurrently. Its caller keeps the tasks, in a heap
// under its own lock; this package owns the loop.
//
// Invariant: a task returned by next is done once, unless ctx ends first. Run returns after the last task has ended.
package due

import (
	"context"
	"sync"
	"time"

	"github.com/weir-epp/weir/internal/heap"
)

// Wake makes Run call next again. wake has the capacity 1.
func Wake(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// First removes the first task of a heap and returns it, if it is due; at returns a task's due time. If none is due, it
// returns the time until one will be, or 0 without tasks.
func First[T heap.Item](tasks *heap.Heap[T], at func(T) time.Time) (first T, wait time.Duration) {
	if tasks.Len() == 0 {
		return first, 0
	}
	t := tasks.Min()
	if wait = time.Until(at(t)); wait > 0 {
		return first, wait
	}
	tasks.Remove(t)
	return t, 0
}

// Run does tasks until ctx is done and the last of them has ended, at most most of them concurrently (at least 1). next
// removes a due task from the caller's tasks; if none is due, it returns nil and the time until one will be, or 0
// without tasks. A value in wake makes Run call next again.
func Run[T any](ctx context.Context, most int, wake <-chan struct{}, next func() (*T, time.Duration), do func(context.Context, *T)) {
	var doing sync.WaitGroup
	defer doing.Wait()
	slots := make(chan struct{}, most)
	timer := time.NewTimer(0)
	timer.Stop()
	defer timer.Stop()
	for {
		task, wait := next()
		if task == nil {
			var ring <-chan time.Time // nil blocks: nothing is due until wake
			if wait > 0 {
				timer.Reset(wait)
				ring = timer.C
			}
			select {
			case <-ctx.Done():
				return
			case <-wake:
			case <-ring:
			}
			continue
		}
		select {
		case <-ctx.Done():
			return
		case slots <- struct{}{}:
		}
		doing.Go(func() {
			do(ctx, task)
			<-slots
		})
	}
}
