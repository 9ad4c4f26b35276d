package dispatch

import (
	"fmt"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/stock"
)

// In scenes with usage a request is estimated to cost estimate, and turns out to cost cheap or dear: while it is in
// flight, or at its end.
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
	cost   fairqueue.Cost // of a request, as far as it is known
	tokens stock.Tokens   // that it takes of the stock, as far as is known
}

// everyUse are all inputs that say what a request has cost.
var everyUse = []op{raises, truesUp, completesCheap, completesDear}

// usageInputs are those of the scene's that say what a request has cost and can come now.
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

// useOf is what an input that says what a request has cost does.
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

// usageAgrees: a request that has ended can say what it likes, and the state stays the same.
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
	default: // in flight first, and from an error to the other side, if nobody waits who is released meanwhile
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
