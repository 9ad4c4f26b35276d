package engine

import (
	"math"
	"slices"
	"sort"
	"time"
)

// stepTime is calibrated time: continuous batching in steps. Steps that differ only in the number of existing tokens
// are one run, which costs no more than a step. In each, every sequence of the batch gains a token.
type stepTime struct {
	engine  *Engine
	batch   []*sequence   // of the current step; nil for an aborted one
	started time.Time     // of the step in progress
	length  time.Duration // of each step of the run
	steps   int           // of the run, not ended yet; 0: no current step
	blocked *sequence     // the queue's head, which could not join the batch; nil if none waited

	waiting          int // when the current step began
	left, leftBehind int // by the last ended step: the running sequences at its end, and the waiting ones at its begin
}

func (t *stepTime) next() (time.Time, bool) {
	return t.started.Add(t.length * time.Duration(t.steps)), t.steps > 0
}

// fill starts a run, unless there is a current step or no work. If the queue has a new head that may join the batch,
// the current run ends with its current step.
func (t *stepTime) fill(now time.Time) {
	e := t.engine
	if t.steps > 0 {
		if len(e.waiting) > 0 && e.waiting[0] != t.blocked && e.freeSlot() {
			t.steps = 1
		}
		return
	}
	t.batch = t.batch[:0]
	budget := e.cfg.TokenBudget
	if budget == 0 {
		budget = math.MaxInt
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
	// As in vLLM, no sequence joins in a step that had to preempt: it would take the blocks just freed.
	for i := 0; !preempted && i < len(e.waiting) && e.freeSlot() && budget > 0; {
		s := e.waiting[i]
		if !e.lora.admits(s, e.running) {
			i++
			continue
		}
		n, ok := e.cache.admit(s, budget)
		if !ok {
			break
		}
		e.lora.use(s, e.running)
		e.join(s)
		schedule(s, n)
	}
	t.waiting = len(e.waiting)
	if len(t.batch) == 0 {
		return
	}
	t.blocked = nil
	if len(e.waiting) > 0 {
		t.blocked = e.waiting[0]
	}
	cost := e.cfg.Step
	d := cost.Base + cost.PerSequence*time.Duration(len(t.batch)) + cost.PerToken*time.Duration(tokens-len(t.batch))
	d += e.lora.takes(e.cfg.AdapterLoad)
	t.started, t.length, t.steps = now, e.jittered(d), 1
	if !preempted {
		t.steps = t.equalSteps()
	}
}

// equalSteps returns the number of equal steps from now on, if no sequence arrives or is aborted: each computes one
// token of each sequence, no sequence ends before the last step, and the cache suffices. No waiting sequence can join
// meanwhile, since no slot or block becomes free.
func (t *stepTime) equalSteps() int {
	e := t.engine
	if e.cfg.Jitter != 0 || e.lora.room > 0 && len(e.waiting) > 0 { // later sequences may join before waiting ones
		return 1
	}
	steps := math.MaxInt
	for _, s := range t.batch {
		if s.Streamed || s.produced == 0 || s.missing() != 1 {
			return 1
		}
		steps = min(steps, s.Output-s.produced)
	}
	if !e.cache.fits(t.batch, steps) {
		steps = sort.Search(steps, func(n int) bool { return !e.cache.fits(t.batch, n) }) - 1
	}
	return max(1, steps)
}

// sync carries out the run's steps that have ended by now, except the last.
func (t *stepTime) sync(now time.Time) {
	if t.steps <= 1 || t.length <= 0 {
		return
	}
	if n := min(int(now.Sub(t.started)/t.length), t.steps-1); n > 0 {
		t.pass(n)
		t.steps -= n
		t.started = t.started.Add(t.length * time.Duration(n))
	}
}

// pass ends steps of a run, not its last, and begins the step after them.
func (t *stepTime) pass(steps int) {
	for _, s := range t.batch {
		s.computed += steps
		s.produced += steps
		t.engine.cache.grow(s, s.computed+1) // equalSteps has checked the room
	}
	t.engine.generated += uint64(steps) * uint64(len(t.batch))
	t.waiting = len(t.engine.waiting)
	t.left, t.leftBehind = len(t.engine.running), t.waiting
}

func (t *stepTime) published() (running, waiting int) { return t.left, t.leftBehind }

// step ends the current run: each sequence whose known tokens are all computed gains one.
func (t *stepTime) step(now time.Time) {
	if t.steps > 1 {
		t.pass(t.steps - 1)
	}
	t.steps = 0
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
	t.left, t.leftBehind = len(t.engine.running), t.waiting
}

// forget ends the run with its current step, without the sequence.
func (t *stepTime) forget(s *sequence) {
	if i := slices.Index(t.batch, s); i >= 0 {
		t.batch[i] = nil
		t.steps = min(t.steps, 1)
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
