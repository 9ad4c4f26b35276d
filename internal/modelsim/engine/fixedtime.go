package engine

import (
	"container/heap"
	"slices"
	"time"
)

// fixedTime gives each sequence the same service time, whatever the batch.
type fixedTime struct {
	engine *Engine
	dues   dueHeap
}

func (t *fixedTime) next() (time.Time, bool) {
	if len(t.dues) == 0 {
		return time.Time{}, false
	}
	return t.dues[0].due, true
}

func (t *fixedTime) fill(now time.Time) {
	e := t.engine
	for len(e.waiting) > 0 && e.freeSlot() {
		s := e.waiting[0]
		e.join(s)
		e.cache.hold(s, s.Prompt+s.Output)
		s.started = now
		s.service = e.jittered(e.cfg.ServiceTime)
		s.due = s.dueAfter(0)
		heap.Push(&t.dues, s)
	}
}

func (t *fixedTime) step(now time.Time) {
	s := t.dues[0]
	if !s.Streamed {
		t.engine.produce(s, now, s.Output)
		return
	}
	t.engine.produce(s, now, 1)
	if s.running {
		s.due = s.dueAfter(s.produced)
		heap.Fix(&t.dues, 0)
	}
}

func (t *fixedTime) sync(time.Time) {}

func (t *fixedTime) forget(s *sequence) { heap.Remove(&t.dues, slices.Index(t.dues, s)) }

// dueAfter returns when the next token is due after the given number of tokens: the k-th of n at k/n of the service
// time; without streaming only the last one is reported.
func (s *sequence) dueAfter(tokens int) time.Time {
	if !s.Streamed {
		return s.started.Add(s.service)
	}
	part := float64(tokens+1) / float64(s.Output)
	return s.started.Add(time.Duration(float64(s.service) * part))
}

// dueHeap orders sequences by the time of their next event, then by arrival.
type dueHeap []*sequence

func (h dueHeap) Len() int { return len(h) }
func (h dueHeap) Less(i, j int) bool {
	if h[i].due.Equal(h[j].due) {
		return h[i].id < h[j].id
	}
	return h[i].due.Before(h[j].due)
}
func (h dueHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *dueHeap) Push(x any) { *h = append(*h, x.(*sequence)) }

// Pop implements heap.Interface.
func (h *dueHeap) Pop() any {
	old := *h
	last := len(old) - 1
	s := old[last]
	old[last] = nil
	*h = old[:last]
	return s
}
