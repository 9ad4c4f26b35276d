package dispatch

import (
	"fmt"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/stock"
)

// In scenes with usage a request's estimated cost is estimate. Its actual cost, cheap or dear, becomes known in flight
// or at its end.
const (
	estimate fairqueue.Cost = 2
	cheap    fairqueue.Cost = 1
	dear     fairqueue.Cost = 4
)

// takes returns the tokens of a request with this cost: different numbers, and in another order.
func takes(cost fairqueue.Cost) stock.Tokens {
	if cost == cheap {
		return 3
	}
	return stock.Tokens(cost)
}

// usage has the costs in a scene with usage.
type usage struct {
	cost   fairqueue.Cost // of a request, as far as known
	tokens stock.Tokens   // in the stock, as far as known
}

// everyUse are all inputs that report a request's cost.
var everyUse = []op{raises, truesUp, completesCheap, completesDear}

// usageInputs returns the scene's possible inputs that report a request's cost.
func (w *world) usageInputs() (in []input) {
	for i, s := range w.subjects {
		flies := s.w.stage == StageSent || s.w.stage == StageStreaming
		can := [...]bool{
			raises: flies && s.cost < dear, truesUp: flies && s.cost != cheap, completesCheap: flies, completesDear: flies,
		}
		for _, use := range w.scene.usage {
			if can[use] {
				in = append(in, input{use, int8(i)})
			}
		}
	}
	return in
}

// useOf applies an input that reports a request's cost.
func (w *world) useOf(in input) {
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
	default:
		panic("not an input of usage")
	}
}

// usageAgrees: a report on an ended request does not change the state.
func (w *world) usageAgrees() error {
	if w.scene.usage == nil {
		return nil
	}
	before := w.state()
	for _, s := range w.subjects {
		if s.w.stage != StageEnded {
			continue
		}
		w.event(func() { w.Raise(w.clock, s.w.Granted(), dear, takes(dear)) })
		w.event(func() { w.TrueUp(w.clock, s.w.Granted(), cheap, takes(cheap)) })
		if w.state() != before {
			return fmt.Errorf("%v has ended, and is charged again", s)
		}
	}
	return nil
}

// otherWay returns another way to the same charges as by the input; nil: none. A request's charge does not depend on
// the way its cost becomes known.
func (w *world) otherWay(in input) func() {
	if in.op < raises || in.op > completesDear {
		return nil
	}
	s := w.subjects[in.index]
	l := s.w.Granted()
	switch in.op {
	case raises: // several raises, and one to less than before
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
	default: // first in flight, and from an error in the other direction, if no waiting request is released meanwhile
		if w.queue.Len() > 0 {
			return nil
		}
		actual, wrong := cheap, dear
		if in.op == completesDear {
			actual, wrong = dear, cheap
		}
		return func() {
			w.event(func() { w.TrueUp(w.clock, l, wrong, takes(wrong)) })
			w.event(func() { w.TrueUp(w.clock, l, actual, takes(actual)) })
			s.cost, s.tokens = actual, takes(actual)
			w.completeWith(s, fairqueue.UnknownCost)
		}
	}
}
