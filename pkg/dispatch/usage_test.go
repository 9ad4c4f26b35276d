package dispatch

import (
	"testing"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// usages is a machine of one slot and two classes of equal quanta. A request of class x holds the slot; of each class
// four wait, each of cost 1, in the turn y, x, y, x.
func usages(t *testing.T) (b *bench, first *Waiter, goes func(n int) string) {
	b = newBench(t, []int{1}, func(c *Config) {
		inClasses(c)
		perBackend(c, 1, 1)
		c.Queue.Classes[0].Quantum, c.Queue.Cursor = 1, fairqueue.Advance
	})
	classOf := map[*Waiter]string{}
	arrives := func(class string) *Waiter {
		w := new(Waiter)
		classOf[w] = class
		a := Arrival{Flow: "f", Tier: 1, Cost: 1, Path: &fairqueue.Path{Class: class}, Placement: reach("")}
		b.event(func() { b.Arrive(b.clock, w, a) })
		return w
	}
	holder := arrives("y")
	var waiting []*Waiter
	for range 5 {
		waiting = append(waiting, arrives("x"), arrives("y"))
	}
	complete := func(w *Waiter) { b.event(func() { b.Complete(b.clock, (*Lease)(w), fairqueue.UnknownCost) }) }
	held := func() *Waiter {
		for _, w := range waiting {
			if w.stage == StageGranted {
				b.Told(w)
			}
			if w.held.Held() {
				return w
			}
		}
		return nil
	}
	complete(holder)
	first = held()
	if classOf[first] != "x" {
		t.Fatalf("%s goes first, want x", classOf[first])
	}
	return b, first, func(n int) (classes string) {
		for range n {
			if w := held(); w != nil {
				classes += classOf[w]
				complete(w)
			}
		}
		return classes
	}
}

// A completion with the request's actual cost corrects the charge in the same step, so it decides the next request. A
// completion with an unknown cost keeps the charge.
func TestUsageAtCompletion(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(b *bench, first *Waiter)
		want string
	}{
		"unknown": {func(b *bench, w *Waiter) { b.Complete(b.clock, (*Lease)(w), fairqueue.UnknownCost) }, "yxyxyx"},
		"known":   {func(b *bench, w *Waiter) { b.Complete(b.clock, (*Lease)(w), 4) }, "yyyyxy"},
		"before": {func(b *bench, w *Waiter) {
			b.TrueUp(b.clock, (*Lease)(w), 4, 4)
			b.Complete(b.clock, (*Lease)(w), fairqueue.UnknownCost)
		}, "yyyyxy"},
		"corrected": {func(b *bench, w *Waiter) {
			b.TrueUp(b.clock, (*Lease)(w), 9, 9)
			b.Complete(b.clock, (*Lease)(w), 4)
		}, "yyyyxy"},
		"after the end": {func(b *bench, w *Waiter) {
			b.Complete(b.clock, (*Lease)(w), fairqueue.UnknownCost)
			b.TrueUp(b.clock, (*Lease)(w), 4, 4)
			b.Complete(b.clock, (*Lease)(w), 4)
		}, "yxyxyx"},
	} {
		t.Run(name, func(t *testing.T) {
			b, first, goes := usages(t)
			b.event(func() { c.end(b, first) })
			if who := goes(6); who != c.want {
				t.Errorf("%s go, want %s", who, c.want)
			}
		})
	}
}

// A flow whose requests turn out to reach its cap in tokens no longer blocks others: its waiters could not go with any
// room.
func TestAtItsCapByARaise(t *testing.T) {
	for _, caps := range []func(*Config){
		func(c *Config) { c.MaxTokensInFlightPerFlow = 10 }, func(c *Config) { c.MaxTokensInFlightPerFlowPerBackend = 10 },
	} {
		x := newShared(t, 1, 4, caps, func(c *Config) { perBackend(c, 1, 4) })
		arrives := func(flow string) *Waiter {
			w := new(Waiter)
			x.Arrive(x.clock, w, Arrival{Flow: flow, Tokens: 1, Placement: x.placement()})
			return w
		}
		grows := arrives("a")
		arrives("c")
		arrives("c")
		ends := arrives("c")
		if w := arrives("a"); w.Stage() != StageWaiting {
			t.Fatalf("at the upper bound an arrival is at stage %d", w.Stage())
		}
		x.Complete(x.clock, ends.Granted(), fairqueue.UnknownCost)
		x.Raise(x.clock, grows.Granted(), 10, 10)
		if w := arrives("b"); w.Stage() != StageSent {
			t.Errorf("within the band an arrival is at stage %d, and nobody who waits could go", w.Stage())
		}
	}
}
