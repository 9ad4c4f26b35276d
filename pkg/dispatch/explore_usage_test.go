package dispatch

import (
	"fmt"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/stock"
)

// In scenes with usage a request is estimated to cost estimate, and turns out to cost cheap or dear: while it is in
// flight, at its end, or later.
const (
	estimate fairqueue.Cost = 2
	cheap    fairqueue.Cost = 1
	dear     fairqueue.Cost = 4
)

// takes is what a request of a cost takes of the stock in tokens: something else, and in another order.
func takes(cost fairqueue.Cost) stock.Tokens {
	if cost == cheap {
		return 3
	}
	return stock.Tokens(cost)
}

// usage is what a scene with usage knows of costs.
type usage struct {
	cost    fairqueue.Cost // of a request, as far as it is known
	tokens  stock.Tokens   // that it takes of the stock, as far as is known
	lacking bool           // its usage may still come: it is complete, and its cost was not known then
	later   int            // how many were complete like that after it
}

// everyUse are all inputs that say what a request has cost.
var everyUse = []op{raises, truesUp, completesCheap, completesDear, isLateCheap, isLateDear, othersComplete}

// usageInputs are those of the scene's that say what a request has cost and can come now.
func (w *world) usageInputs() (in []input) {
	lacking := false
	for i, s := range w.subjects {
		flies, late := s.w.stage == StageSent || s.w.stage == StageStreaming, s.takesUsage()
		can := [...]bool{
			raises: flies && s.cost < dear, truesUp: flies && s.cost != cheap, completesCheap: flies, completesDear: flies,
			isLateCheap: late, isLateDear: late, othersComplete: late && !lacking,
		}
		lacking = lacking || late
		for _, use := range w.scene.usage {
			if can[use] {
				in = append(in, input{use, int8(i)})
			}
		}
	}
	return in
}

// takesUsage reports whether the usage of the request may still come: it is among the last of those that lack it.
func (s *subject) takesUsage() bool { return s.lacking && s.later < MostLate }

// useOf is what an input that says what a request has cost does.
func (w *world) useOf(in input) {
	if in.op == othersComplete {
		w.othersComplete(MostLate - 1)
		return
	}
	s := w.subjects[in.index]
	l := s.w.Granted()
	switch in.op {
	case raises:
		w.event(func() { w.Raise(w.clock, l, dear, takes(dear)) })
		s.cost, s.tokens = dear, takes(dear)
	case truesUp:
		w.event(func() { w.TrueUp(w.clock, l, cheap, takes(cheap)) })
		s.cost, s.tokens = cheap, takes(cheap)
	case completesCheap:
		w.completeWith(s, cheap)
	case completesDear:
		w.completeWith(s, dear)
	case isLateCheap:
		w.event(func() { w.UsageLate(w.clock, s.w, cheap) })
		s.lacking = false
	case isLateDear:
		w.event(func() { w.UsageLate(w.clock, s.w, dear) })
		s.lacking = false
	default:
		panic("not an input of usage")
	}
}

// othersComplete is what so many requests of others leave behind that lived and were complete before their cost was known.
func (w *world) othersComplete(n int) {
	for _, s := range w.subjects {
		if s.lacking {
			s.later += n
		}
	}
	for range n {
		w.lacking = max(1, w.lacking+1)
	}
}

// noteEnd notes that a stream has ended with this cost.
func (w *world) noteEnd(s *subject, cost fairqueue.Cost) {
	if s.preempted || s.lacking || cost != fairqueue.UnknownCost {
		return
	}
	for _, o := range w.subjects {
		if o.lacking {
			o.later++
		}
	}
	s.lacking = true
}

// usageAgrees: usage is taken of exactly those that may still tell it, and whoever may not can say what he likes: a state
// that he has been charged in once is the same state afterwards.
func (w *world) usageAgrees() error {
	if w.scene.usage == nil {
		return nil
	}
	for _, s := range w.subjects {
		if s.w.stage == StageEnded && w.TakesUsage(s.w) != s.takesUsage() {
			return fmt.Errorf("usage of %v is taken: %t, want %t", s, w.TakesUsage(s.w), s.takesUsage())
		}
	}
	before := w.state()
	for _, s := range w.subjects {
		if s.w.stage != StageEnded {
			continue
		}
		w.event(func() { w.Raise(w.clock, s.w.Granted(), dear, takes(dear)) })
		w.event(func() { w.TrueUp(w.clock, s.w.Granted(), cheap, takes(cheap)) })
		if !s.takesUsage() {
			w.event(func() { w.UsageLate(w.clock, s.w, dear) })
		}
		if w.state() != before {
			return fmt.Errorf("%v has ended, and is charged again", s)
		}
	}
	return nil
}

// otherWay is another way to come to the same charges as by the input; nil: there is none. What a request has cost is
// charged alike, however it comes to be known.
func (w *world) otherWay(in input) func() {
	if in.op < raises || in.op > completesDear {
		return nil
	}
	s := w.subjects[in.index]
	l := s.w.Granted()
	switch in.op {
	case raises: // more often, and to less than before
		return func() {
			w.event(func() { w.Raise(w.clock, l, dear-1, takes(dear)-1) })
			w.useOf(in)
			w.event(func() { w.Raise(w.clock, l, cheap, takes(cheap)) })
		}
	case truesUp: // from more
		return func() {
			w.event(func() { w.TrueUp(w.clock, l, dear, takes(dear)) })
			w.useOf(in)
		}
	default: // late, and from an error to the other side, if nobody waits who is released before
		if w.queue.Len() > 0 {
			return nil
		}
		for _, o := range w.subjects {
			if o.takesUsage() {
				return nil // for the others, one more would be complete before its cost is known
			}
		}
		actual, wrong := cheap, dear
		if in.op == completesDear {
			actual, wrong = dear, cheap
		}
		return func() {
			w.event(func() { w.TrueUp(w.clock, l, wrong, takes(wrong)) })
			s.cost, s.tokens = wrong, takes(wrong)
			w.completeWith(s, fairqueue.UnknownCost)
			w.event(func() { w.UsageLate(w.clock, s.w, actual) })
			s.lacking = false
		}
	}
}
