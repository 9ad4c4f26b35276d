package modelsim

import (
	"context"
	"sync"
	"time"

	"github.com/weir-epp/weir/internal/modelsim/engine"
)

// runner drives the engine with the real clock: one lock, one timer at the engine's next event.
type runner struct {
	mu      sync.Mutex
	core    *engine.Engine
	choices map[engine.ID]choiceOf
	timer   *time.Timer // nil until first needed
	armed   time.Time   // the time of the timer; zero if not set
	closed  bool
	watch   *watch

	punctual bool // Config.Punctual

	changed func([]engine.BlockChange) // called with changes of the KV cache; may be nil

	maxLoad, maxRunning int
}

// choiceOf maps a sequence to a choice of its request.
type choiceOf struct {
	work  *work
	index int
}

// work is one request in the engine: a sequence for each choice.
type work struct {
	// Guarded by runner.mu.
	ids    []engine.ID
	tokens []int // produced by each sequence
	cached []int // tokens of each sequence's prompt that the cache had
	ended  []bool
	left   int // sequences not ended

	notify chan struct{} // of capacity 1: signals possible news
}

// start submits a sequence for each job, in order.
func (r *runner) start(jobs []engine.Job) *work {
	n := len(jobs)
	w := &work{
		ids:    make([]engine.ID, n),
		tokens: make([]int, n),
		cached: make([]int, n),
		ended:  make([]bool, n),
		left:   n,
		notify: make(chan struct{}, 1),
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for i := range jobs {
		id, events := r.core.Submit(now, jobs[i])
		w.ids[i] = id
		r.choices[id] = choiceOf{w, i}
		r.deliver(events)
	}
	r.arm(now)
	return w
}

// abandon ends the rest of the work after its client left, and copies its counts into tokens.
func (r *runner) abandon(w *work, tokens []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for i, id := range w.ids {
		if !w.ended[i] {
			r.deliver(r.core.Abort(now, id))
		}
	}
	copy(tokens, w.tokens)
	r.arm(now)
}

// await blocks until the work has more tokens than seen, or has ended, and copies the counts into seen. It reports
// whether every sequence has ended. An error is the context's: the client has left.
func (r *runner) await(ctx context.Context, w *work, seen []int) (done bool, err error) {
	for {
		r.mu.Lock()
		news := false
		for i, n := range w.tokens {
			news = news || n > seen[i]
		}
		copy(seen, w.tokens)
		done = w.left == 0
		r.mu.Unlock()
		if news || done {
			return done, nil
		}
		select {
		case <-w.notify:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// cachedOf copies the number of cached tokens of each sequence's prompt, known from its first token on.the number of
// cached tokens of each sequence's prompt. They are known from its first token on.
func (r *runner) cachedOf(w *work, cached []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	copy(cached, w.cached)
}

// timerLateness is an upper bound on the lateness of the runtime's timers on a machine without overload.
const timerLateness = 2 * time.Millisecond

// wake is called by the timer.
func (r *runner) wake() {
	if r.punctual {
		r.mu.Lock()
		due := r.armed
		r.mu.Unlock()
		sleepThread(time.Until(due))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	now := time.Now()
	r.armed = time.Time{}
	r.deliver(r.core.Advance(now))
	r.arm(now)
}

// deliver passes the engine's events to the works.
func (r *runner) deliver(events []engine.Event) {
	for _, ev := range events {
		at := r.choices[ev.ID]
		w := at.work
		w.tokens[at.index], w.cached[at.index] = ev.Tokens, ev.Cached
		if ev.End != engine.Going {
			delete(r.choices, ev.ID)
			w.ended[at.index] = true
			w.left--
		}
		select {
		case w.notify <- struct{}{}:
		default:
		}
	}
	r.tellChanges()
	load := r.core.Load()
	r.maxRunning = max(r.maxRunning, load.Running)
	r.maxLoad = max(r.maxLoad, load.Running+load.Waiting)
	r.watch.poke()
}

// tellChanges passes on the changes of the KV cache, if any.
func (r *runner) tellChanges() {
	if r.changed == nil {
		return
	}
	if changes := r.core.BlockChanges(); len(changes) > 0 {
		r.changed(changes)
	}
}

// watchBlocks makes the runner call changed with the changes of the KV cache. changed must not block.
func (r *runner) watchBlocks(changed func([]engine.BlockChange)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.core.WatchBlocks()
	r.changed = changed
}

// resetCache empties the KV cache, unless it is in use.
func (r *runner) resetCache() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	done := r.core.ResetCache()
	r.tellChanges()
	return done
}

// arm sets the timer to the engine's next event, or to none.
func (r *runner) arm(now time.Time) {
	next, ok := r.core.Next()
	if !ok || r.closed {
		if r.timer != nil {
			r.timer.Stop()
		}
		r.armed = time.Time{}
		return
	}
	if next.Equal(r.armed) {
		return
	}
	r.armed = next
	wait := next.Sub(now)
	if r.punctual {
		wait -= timerLateness
	}
	if r.timer == nil {
		r.timer = time.AfterFunc(wait, r.wake)
		return
	}
	r.timer.Reset(wait)
}

// load returns the engine's load now, and the largest so far.
func (r *runner) load() (load engine.Load, maxLoad, maxRunning int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.core.Load(), r.maxLoad, r.maxRunning
}

// published returns the load that the engine publishes now.
func (r *runner) published() engine.Load {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		now := time.Now()
		r.deliver(r.core.Advance(now))
		r.arm(now)
	}
	return r.core.Published()
}

// close stops the timer; unfinished works never end.
func (r *runner) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	if r.timer != nil {
		r.timer.Stop()
	}
}
