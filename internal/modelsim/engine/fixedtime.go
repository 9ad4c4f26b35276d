package engine

import (
	"time"

	"github.com/weir-epp/weir/internal/heap"
)

// fixedTime gives each sequence the same service time, whatever the batch.
type fixedTime struct {
	engine *Engine
	dues   heap.Heap[*sequence]
}

func (t *fixedTime) next() (time.Time, bool) {
	if t.dues.Len() == 0 {
		return time.Time{}, false
	}
	return t.dues.Min().due, true
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
		t.dues.Push(s)
	}
}

func (t *fixedTime) step(now time.Time) {
	s := t.dues.Min()
	if !s.Streamed {
		t.engine.produce(s, now, s.Output)
		return
	}
	t.engine.produce(s, now, 1)
	if s.running {
		s.due = s.dueAfter(s.produced)
		t.dues.Fix(s)
	}
}

func (t *fixedTime) sync(time.Time) {}

func (t *fixedTime) published() (running, waiting int) {
	return len(t.engine.running), len(t.engine.waiting)
}

func (t *fixedTime) forget(s *sequence) { t.dues.Remove(s) }

// dueAfter returns the due time of the next token after the given number: the k-th of n is due at k/n of the service
// time. Without streaming only the last token is reported.
func (s *sequence) dueAfter(tokens int) time.Time {
	if !s.Streamed {
		return s.started.Add(s.service)
	}
	part := float64(tokens+1) / float64(s.Output)
	return s.started.Add(time.Duration(float64(s.service) * part))
}

// Key orders sequences by the time of their next event, then by arrival.
func (s *sequence) Key() heap.Key {
	k := heap.At(s.due)
	k.Seq = uint64(s.id)
	return k
}

// Handle returns the sequence's number in the heap.
func (s *sequence) Handle() *int32 { return &s.number }
