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

// A completion that says what the request has cost corrects the charge in the same step: whoever goes next is chosen by
// it. Usage that comes late does the same from then on, once, and so does nothing that was known before.
func TestUsageAtCompletionAndLate(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(b *bench, first *Waiter)
		want string
	}{
		"unknown": {func(b *bench, w *Waiter) { b.Complete(b.clock, (*Lease)(w), fairqueue.UnknownCost) }, "yxyxyx"},
		"known":   {func(b *bench, w *Waiter) { b.Complete(b.clock, (*Lease)(w), 4) }, "yyyyxy"},
		"late": {func(b *bench, w *Waiter) {
			b.Complete(b.clock, (*Lease)(w), fairqueue.UnknownCost)
			b.UsageLate(b.clock, w, 4)
		}, "yyyyxy"},
		"late twice": {func(b *bench, w *Waiter) {
			b.Complete(b.clock, (*Lease)(w), fairqueue.UnknownCost)
			b.UsageLate(b.clock, w, 4)
			b.UsageLate(b.clock, w, 1)
		}, "yyyyxy"},
		"known, then late": {func(b *bench, w *Waiter) {
			b.Complete(b.clock, (*Lease)(w), 4)
			b.UsageLate(b.clock, w, 1)
		}, "yyyyxy"},
		"before, then late": {func(b *bench, w *Waiter) {
			b.TrueUp(b.clock, (*Lease)(w), 9, 9)
			b.Complete(b.clock, (*Lease)(w), fairqueue.UnknownCost)
			b.UsageLate(b.clock, w, 4)
		}, "yyyyxy"},
		"not complete yet": {func(b *bench, w *Waiter) {
			b.UsageLate(b.clock, w, 4)
			b.Complete(b.clock, (*Lease)(w), fairqueue.UnknownCost)
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

// Usage is taken for the last MostLate requests that lacked it, whoever they are; those that had it do not count. One that
// was preempted, or never went, has none.
func TestUsageIsTakenForTheLast(t *testing.T) {
	b := newBench(t, []int{1}, nil)
	lives := func(cost fairqueue.Cost) *Waiter {
		w := b.arrives(2, "f", "", StageSent)
		b.event(func() { b.Complete(b.clock, (*Lease)(w), cost) })
		return w
	}
	old, known := lives(fairqueue.UnknownCost), lives(7)
	for range MostLate - 1 {
		lives(fairqueue.UnknownCost)
		lives(7)
	}
	if !b.TakesUsage(old) || b.TakesUsage(known) {
		t.Errorf("usage is taken of one whose cost is unknown: %t, known: %t", b.TakesUsage(old), b.TakesUsage(known))
	}
	lives(fairqueue.UnknownCost)
	if b.TakesUsage(old) {
		t.Errorf("usage is taken of one that %d have followed", MostLate)
	}
	victim := b.arrives(2, "f", "", StageSent)
	high := b.arrives(0, "f", "", StageSent)
	waiter := b.arrives(2, "f", "", StageWaiting)
	if victim.Outcome() != OutcomePreempted || b.TakesUsage(victim) || b.TakesUsage(high) || b.TakesUsage(waiter) {
		t.Error("usage is taken of one that is not complete")
	}
	b.event(func() { b.Cancel(b.clock, waiter, OutcomeClientCancelled) })
	b.complete(high)
	b.nothing("at the end")
}

// A flow whose requests turn out to take as many tokens as it may hold stands in nobody's way any more: its waiters could not
// go, whatever room there is.
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
