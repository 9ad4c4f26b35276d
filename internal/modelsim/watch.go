package modelsim

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
)

// watch wakes the waiters for a change of the statistics. Without waiters a change costs one atomic load.
type watch struct {
	watchers atomic.Int32
	mu       sync.Mutex
	changed  chan struct{} // closed and replaced at each change
}

func newWatch() *watch { return &watch{changed: make(chan struct{})} }

// poke announces a change, which must come first.
func (w *watch) poke() {
	if w.watchers.Load() == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.changed)
	w.changed = make(chan struct{})
}

// next returns a channel that the next poke closes.
func (w *watch) next() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed
}

// WaitFor blocks until the statistics satisfy the condition, without polling. The error is the context's, with the last
// statistics seen.
func (h *Handler) WaitFor(ctx context.Context, condition func(Stats) bool) error {
	h.watch.watchers.Add(1)
	defer h.watch.watchers.Add(-1)
	for {
		changed := h.watch.next()
		stats := h.Stats()
		if condition(stats) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("modelsim: waiting, last seen %+v: %w", stats, ctx.Err())
		}
	}
}
