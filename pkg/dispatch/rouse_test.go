package dispatch

import (
	"fmt"
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/stock"
)

// One free slot at a backend rouses only a few of the tenants that are at their cap elsewhere and wait for it: 20
// tenants cause as many queries as 2,000, and the slot goes to the first. Here every tenant has an endless request at
// one backend, and waits with another for the second backend's only slot.
func TestOnePlaceRousesFew(t *testing.T) {
	asked := map[int]int{}
	for _, n := range []int{20, 2000} {
		x := newShared(t, 2, 1_000_000, func(c *Config) {
			c.MaxInFlightPerFlowPerBackend = 1
			c.Stock.Tokens = stock.TokensConfig{Watermark: stock.Tokens(10 * n), Lower: stock.Tokens(10 * n), Upper: stock.Tokens(10 * n)}
		})
		arrives := func(flow string, tokens stock.Tokens, at ...int) *Waiter {
			w := new(Waiter)
			x.Arrive(x.clock, w, Arrival{Flow: flow, Tokens: tokens, Placement: x.placement(at...)})
			return w
		}
		giant := arrives("giant", stock.Tokens(10*n), 1)
		for i := range n {
			if w := arrives(fmt.Sprint(i), 1, 0); w.Stage() != StageSent {
				t.Fatalf("stage %d", w.Stage())
			}
		}
		var waiting []*Waiter
		for i := range n {
			waiting = append(waiting, arrives(fmt.Sprint(i), stock.Tokens(10*n)))
		}
		c := countsCalls(x)
		going := giant
		for i, w := range waiting[:10] {
			c.calls = 0
			x.Complete(x.clock, going.Lease(), fairqueue.UnknownCost)
			if w.Stage() != StageGranted || w.Lease().Endpoint() != 1 {
				t.Fatalf("of %d, number %d: stage %d", n, i, w.Stage())
			}
			x.Told(w)
			going = w
			asked[n] = max(asked[n], c.calls)
		}
		for _, w := range waiting[10:] {
			if w.Stage() != StageWaiting {
				t.Fatalf("stage %d", w.Stage())
			}
		}
	}
	if asked[20] != asked[2000] || asked[20] > 40 {
		t.Errorf("questions for one place: %v", asked)
	}
}

// Among many classes, too, one request is roused for a slot, by the classes' turns: a slot costs no more than with one
// class, and classes with equal quanta each get a slot before any gets a second.
func TestOnePlaceRousesOneClass(t *testing.T) {
	const many, each = fairqueue.MaxClasses, 2
	x := newShared(t, 2, 1_000_000, bounded(1000), func(c *Config) {
		c.MaxInFlightPerFlowPerBackend = 1
		for i := range many {
			c.Queue.Classes = append(c.Queue.Classes, fairqueue.ClassConfig{Name: fmt.Sprint(i), Quantum: 1})
		}
	})
	classOf := map[*Waiter]int{}
	arrives := func(class, flow int, tokens stock.Tokens, at ...int) *Waiter {
		w := new(Waiter)
		classOf[w] = class
		x.Arrive(x.clock, w, Arrival{
			Flow: fmt.Sprint(class, "-", flow), Path: &fairqueue.Path{Class: fmt.Sprint(class)}, Cost: 1, Tokens: tokens,
			Placement: x.placement(at...),
		})
		return w
	}
	going := arrives(0, each, 1000, 1)
	for class := range many {
		for flow := range each {
			if w := arrives(class, flow, 1, 0); w.Stage() != StageSent {
				t.Fatalf("stage %d", w.Stage())
			}
		}
	}
	for class := range many {
		for flow := range each {
			if w := arrives(class, flow, 1000); w.Stage() != StageWaiting {
				t.Fatalf("stage %d", w.Stage())
			}
		}
	}
	c := countsCalls(x)
	served := map[int]int{}
	for n := range many {
		c.calls = 0
		x.Complete(x.clock, going.Lease(), fairqueue.UnknownCost)
		if len(x.Verdicts()) != 1 || c.calls > 40 {
			t.Fatalf("place %d: %d went, after %d questions", n, len(x.Verdicts()), c.calls)
		}
		going = x.Verdicts()[0]
		x.Told(going)
		served[classOf[going]]++
	}
	if len(served) != many {
		t.Errorf("%d places went to %d classes", many, len(served))
	}
}

// A roused request that leaves before the band lets it go rouses the next, whether or not it waits elsewhere too. Here
// it waits for endpoint 1, which has room, until the band does.
func TestWhoLeavesRousesTheNext(t *testing.T) {
	for name, leave := range map[string]func(x *shared, roused *Waiter){
		"cancelled": func(x *shared, roused *Waiter) { x.Cancel(x.clock, roused, OutcomeClientCancelled) },
		"expired": func(x *shared, _ *Waiter) {
			x.clock = x.clock.Add(time.Minute)
			x.Advance(x.clock)
		},
	} {
		for _, elsewhere := range []bool{false, true} {
			x := newShared(t, 2, 3, bounded(100), func(c *Config) { perBackend(c, 2, 4); c.MaxInFlightPerFlowPerBackend = 1 })
			arrives := func(flow string, tokens stock.Tokens, deadline time.Duration, at ...int) *Waiter {
				w := new(Waiter)
				a := Arrival{Flow: flow, Tokens: tokens, Placement: x.placement(at...)}
				if deadline > 0 {
					a.Deadline = x.clock.Add(deadline)
				}
				x.Arrive(x.clock, w, a)
				return w
			}
			for _, flow := range []string{"a", "b"} {
				arrives(flow, 1, 0, 0)
			}
			ends := arrives("c", 1, 0, 0)
			later := []*Waiter{ends, arrives("d", 1, 0, 1), arrives("e", 1, 0, 1)}
			giant := arrives("f", 100, 0, 1)
			roused := arrives("a", 1, time.Second)
			next := arrives("b", 1, 0)
			if elsewhere {
				arrives("a", 1, 0, 0)
			}
			x.TrueUp(x.clock, giant.Lease(), 1, 50)
			if roused.Stage() != StageWaiting || next.Stage() != StageWaiting {
				t.Fatalf("%s: stages %d, %d: the pool is in its band", name, roused.Stage(), next.Stage())
			}
			leave(x, roused)
			for _, w := range later {
				if next.Stage() != StageWaiting {
					t.Fatalf("%s, elsewhere %t: stage %d in the band", name, elsewhere, next.Stage())
				}
				x.Complete(x.clock, w.Lease(), fairqueue.UnknownCost)
			}
			if next.Stage() != StageGranted || next.Lease().Endpoint() != 1 {
				t.Errorf("%s, elsewhere %t: stage %d", name, elsewhere, next.Stage())
			}
		}
	}
}

// A roused tenant that reaches its cap at the free slot in the same event rouses the next tenant. Here its request of a
// higher tier takes over the lease whose end frees the slot.
func TestWhoComesToItsCapRousesTheNext(t *testing.T) {
	x := newShared(t, 2, 9, preempting, func(c *Config) { c.MaxInFlightPerFlowPerBackend = 1 })
	arrives := x.enters
	for _, flow := range []string{"a", "b"} {
		x.FirstByte(arrives(1, flow, 1, 0).Lease())
	}
	giant := arrives(1, "giant", 150, 1)
	first, next := arrives(1, "a", 1), arrives(1, "b", 1)
	if first.Stage() != StageWaiting || next.Stage() != StageWaiting {
		t.Fatalf("stages %d, %d: endpoint 1 is full", first.Stage(), next.Stage())
	}
	urgent := arrives(0, "a", 1)
	if giant.Outcome() != OutcomePreempted || urgent.Lease().Endpoint() != 1 {
		t.Fatalf("giant: %v; the urgent one is in stage %d", giant.Outcome(), urgent.Stage())
	}
	if first.Stage() != StageWaiting {
		t.Errorf("stage %d: its tenant is at its cap at both endpoints", first.Stage())
	}
	if next.Stage() != StageGranted || next.Lease().Endpoint() != 1 {
		t.Errorf("stage %d: it waits beside an endpoint with room", next.Stage())
	}
}
