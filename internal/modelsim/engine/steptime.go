package engine

import (
	"slices"
	"time"
)

// stepTime is calibrated time: continuous batching in steps.
type stepTime struct {
	engine *Engine
	batch  []*sequence // of the step in progress; nil where one was aborted
	ends   time.Time   // of the step in progress, if any
	active bool
}

func (t *stepTime) next() (time.Time, bool) { return t.ends, t.active }

// fill starts a step, unless one is in progress or there is nothing to do.
func (t *stepTime) fill(now time.Time) {
	if t.active {
		return
	}
	e := t.engine
	t.batch = t.batch[:0]
	budget := e.cfg.TokenBudget
	if budget == 0 {
		budget = int(^uint(0) >> 1)
	}
	tokens := 0
	schedule := func(s *sequence, n int) {
		s.scheduled = n
		budget -= n
		tokens += n
		t.batch = append(t.batch, s)
	}

	preempted := false
	for i := 0; i < len(e.running) && budget > 0; i++ {
		s := e.running[i]
		n := min(s.missing(), budget)
		for !e.cache.grow(s, s.computed+n) {
			preempted = true
			last := e.running[len(e.running)-1]
			t.preempt(last)
			if last == s {
				break
			}
		}
		if s.running {
			schedule(s, n)
		}
	}
	// As in vLLM, no sequence joins in a step that had to preempt: it would take what was just freed.
	for !preempted && len(e.waiting) > 0 && e.freeSlot() && budget > 0 {
		s := e.waiting[0]
		n := min(s.missing(), budget)
		if !e.cache.grow(s, s.computed+n) {
			break
		}
		e.join(s)
		schedule(s, n)
	}
	if len(t.batch) == 0 {
		return
	}
	cost := e.cfg.Step
	d := cost.Base + cost.PerSequence*time.Duration(len(t.batch)) + cost.PerToken*time.Duration(tokens-len(t.batch))
	t.ends = now.Add(e.jittered(d))
	t.active = true
}

// step ends the step in progress: each sequence whose known tokens are all computed gains one.
func (t *stepTime) step(now time.Time) {
	t.active = false
	for i, s := range t.batch {
		if s == nil {
			continue
		}
		t.batch[i] = nil // so that forget does not find it
		s.computed += s.scheduled
		s.scheduled = 0
		if s.missing() == 0 {
			t.engine.produce(s, now, 1)
		}
	}
}

func (t *stepTime) forget(s *sequence) {
	if i := slices.Index(t.batch, s); i >= 0 {
		t.batch[i] = nil
	}
}

// preempt sends a running sequence back to the head of the queue, with all its tokens to be computed again.
func (t *stepTime) preempt(s *sequence) {
	e := t.engine
	e.preemptions++
	e.running = remove(e.running, s)
	s.running = false
	s.computed = 0
	e.cache.free(s)
	e.waiting = slices.Insert(e.waiting, 0, s)
}

// missing returns the number of the sequence's known tokens, prompt and produced, that are not computed yet: the rest
// of the prompt during prefill, 1 while decoding.
func (s *sequence) missing() int { return s.Prompt + s.produced - s.computed }
