package dispatch

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// The first victim in any lane, large or small, is that of a search of all leases.
func TestFirstVictim(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, order := range []VictimOrder{NewestFirst, LeastCostFirst} {
		v := &victims{order: order}
		var held []*Lease
		for range 5000 {
			if len(held) > 0 && r.IntN(100) < 48 {
				i := r.IntN(len(held))
				v.remove(held[i])
				held = slices.Delete(held, i, i+1)
			} else {
				l := &Lease{leased: leased{held: stock.NewLease(3, stock.Tokens(r.Int64N(5)), false)}}
				l.reservation = scheduling.Reserved(Endpoint(r.IntN(150)))
				v.addNewest(l)
				held = append(held, l)
			}
			if r.IntN(500) == 0 {
				v.reorder([]VictimOrder{NewestFirst, LeastCostFirst}[r.IntN(2)])
			}
			lane, ready := &laneNote{lane: fairqueue.Lane("x")}, r.IntN(101)
			for e := range Endpoint(150) {
				if r.IntN(100) < ready {
					lane.endpoints = append(lane.endpoints, e)
				}
			}
			var full EndpointSet
			for e := range Endpoint(150) {
				if r.IntN(3) == 0 {
					full.Add(e)
				}
			}
			most := 1 + r.IntN(7)
			var want *Lease
			for _, l := range held {
				if int(l.held.Tokens()) < int(l.Endpoint())%most {
					continue
				}
				if slices.Contains(lane.endpoints, l.Endpoint()) && !full.Has(l.Endpoint()) && (want == nil || v.before(l, want)) {
					want = l
				}
			}
			got := v.first(3, lane, &wantedVictim{
				at:     func(e Endpoint) bool { return slices.Contains(lane.endpoints, e) && !full.Has(e) },
				enough: func(e Endpoint, frees stock.Tokens) bool { return int(frees) >= int(e)%most },
			})
			if got != want {
				t.Fatalf("%+v, want %+v", got, want)
			}
		}
	}
}

// A request preempted in flight has no charge, since its client gets nothing. With vtc its flow continues in turns with
// the other one. With wfq it has waited for its estimated cost, and makes up for that.
func TestAVictimIsNotCharged(t *testing.T) {
	for d, least := range map[fairqueue.Discipline]int{fairqueue.WFQ: 9, fairqueue.VTC: 5} {
		b := newBench(t, []int{1}, func(c *Config) { perBackend(c, 1, 1); c.Queue.Discipline = d })
		arrives := func(tier int, flow string, cost fairqueue.Cost) *Waiter {
			w := new(Waiter)
			b.event(func() { b.Arrive(b.clock, w, Arrival{Flow: flow, Tier: tier, Cost: cost, Placement: reach("")}) })
			return w
		}
		b.complete(arrives(2, "a", 1))
		b.complete(arrives(2, "other", 1))
		holder := arrives(2, "first", 1)
		waiting := []*Waiter{arrives(2, "a", 100)}
		victim := waiting[0]
		for range 30 {
			waiting = append(waiting, arrives(2, "a", 10), arrives(2, "other", 10))
		}
		goes := func() *Waiter { // the holder ends, and the next one is sent
			b.complete(holder)
			i := slices.IndexFunc(waiting, func(w *Waiter) bool { return w.Stage() == StageGranted })
			holder = waiting[i]
			waiting = slices.Delete(waiting, i, i+1)
			b.Told(holder)
			return holder
		}
		for goes() != victim {
		}
		high := arrives(0, "high", 1)
		b.want(victim, StageEnded)
		if holder = high; victim.Outcome() != OutcomePreempted {
			t.Fatalf("discipline %d: it ended as %v", d, victim.Outcome())
		}
		mine := 0
		for range 10 {
			if goes().Flow() == "a" {
				mine++
			}
		}
		if mine < least {
			t.Errorf("discipline %d: %d of the next 10 are of the victim's flow, want at least %d", d, mine, least)
		}
	}
}

// preempting has two tiers of which the higher preempts, and 100 tokens at each endpoint.
func preempting(c *Config) {
	twoTiers(c)
	perBackend(c, 9, 9)
	bounded(100)(c)
}

// A search for a victim continues past one that frees too few tokens: at its endpoint, where the newest is small beside
// a giant, and at the others, where the first in order does not help.
func TestASmallVictimHidesNobody(t *testing.T) {
	x := newShared(t, 2, 9, preempting)
	giant := x.comes(1, 500, 0)
	x.TrueUp(x.clock, giant.Lease(), 1, 90)
	small := []*Waiter{x.comes(1, 9, 0)}
	x.Raise(x.clock, giant.Lease(), 1, 500)
	streaming := x.comes(1, 400, 1)
	x.FirstByte(streaming.Lease())
	high := x.comes(0, 1)
	if high.Stage() != StageSent || high.Lease().Endpoint() != 0 || giant.Outcome() != OutcomePreempted || small[0].Stage() != StageSent {
		t.Fatalf("stages %d, %d, %d", high.Stage(), giant.Stage(), small[0].Stage())
	}

	x = newShared(t, 2, 9, preempting)
	other := x.comes(1, 150, 1) // older than all at the other endpoint
	full := x.comes(1, 90, 0)
	for range 70 {
		small = append(small, x.comes(1, 0, 0))
	}
	x.FirstByte(full.Lease())
	x.Raise(x.clock, full.Lease(), 1, 1000)
	if high = x.comes(0, 1); high.Stage() != StageSent || high.Lease().Endpoint() != 1 || other.Outcome() != OutcomePreempted {
		t.Fatalf("stages %d, %d", high.Stage(), other.Stage())
	}
}

// If a waiter's tenant is at its cap at the only victim's endpoint, the next waiters of its lane can still preempt.
func TestACapBesideAVictimBlocksNobody(t *testing.T) {
	for _, inFront := range []int{1, 30} {
		x := newShared(t, 2, 1+inFront, func(c *Config) { twoTiers(c); perBackend(c, 1+inFront, 1+inFront); c.MaxInFlightPerFlowPerBackend = 1 })
		arrives := func(tier int, flow string, at ...int) *Waiter { return x.enters(tier, flow, 0, at...) }
		for i := range inFront { // at their cap where the victim is
			w := arrives(0, fmt.Sprint(i), 0)
			x.FirstByte(w.Lease())
		}
		for i := range 1 + inFront {
			w := arrives(0, fmt.Sprint("streaming-", i), 1)
			x.FirstByte(w.Lease())
		}
		low := arrives(1, "low", 0)
		var waiting []*Waiter
		for i := range inFront {
			waiting = append(waiting, arrives(0, fmt.Sprint(i)))
		}
		next := arrives(0, "next")
		if low.Outcome() != OutcomePreempted || next.Lease() == nil || next.Lease().Endpoint() != 0 {
			t.Errorf("stages %d, %d", low.Stage(), next.Stage())
		}
		for _, w := range waiting {
			if w.Stage() != StageWaiting {
				t.Errorf("stage %d", w.Stage())
			}
		}
	}
}

// Arrivals at their cap beside a victim leave nothing behind, however many preempt elsewhere at once.
func TestCapsBesideVictimsLeaveNothing(t *testing.T) {
	x := newShared(t, 2, 2, func(c *Config) { twoTiers(c); perBackend(c, 2, 2); c.MaxInFlightPerFlowPerBackend = 1 })
	arrives := func(tier int, flow string, at ...int) *Waiter { return x.enters(tier, flow, 0, at...) }
	x.FirstByte(arrives(0, "a", 0).Lease())
	x.FirstByte(arrives(1, "streaming", 1).Lease())
	preempted := 0
	for i := range 100 {
		low, newest := arrives(1, fmt.Sprint("low-", i), 1), arrives(1, fmt.Sprint("newest-", i), 0)
		w := arrives(0, "a")
		if w.Lease() == nil {
			t.Fatalf("round %d: stage %d", i, w.Stage())
		}
		if low.Outcome() == OutcomePreempted {
			preempted++
		}
		x.Complete(x.clock, w.Lease(), fairqueue.UnknownCost)
		x.Complete(x.clock, newest.Lease(), fairqueue.UnknownCost)
	}
	if preempted < 90 || len(x.barred) > 2 {
		t.Errorf("%d of 100 preempted, %d endpoints noted of 2", preempted, len(x.barred))
	}
}

// A waiter whose tenant is at its cap at an endpoint with room looks for a victim at the others.
func TestAWaiterAtItsCapLooksElsewhere(t *testing.T) {
	for _, queued := range []bool{false, true} {
		x := newShared(t, 2, 9, preempting, func(c *Config) { c.MaxInFlightPerFlowPerBackend = 1 })
		arrives := x.enters
		arrives(0, "a", 1, 0)
		if queued { // what is there cannot be preempted when the waiter comes
			streaming := arrives(1, "s", 120, 1)
			x.FirstByte(streaming.Lease())
			high := arrives(0, "a", 1)
			low := arrives(1, "low", 90, 1)
			if high.Stage() != StageWaiting || low.Stage() != StageWaiting {
				t.Fatalf("stages %d, %d", high.Stage(), low.Stage())
			}
			x.TrueUp(x.clock, streaming.Lease(), 1, 50)
			if high.Lease() == nil || high.Lease().Endpoint() != 1 {
				t.Errorf("stage %d", high.Stage())
			}
			continue
		}
		low := arrives(1, "low", 120, 1)
		if high := arrives(0, "a", 1); high.Stage() != StageSent || high.Lease().Endpoint() != 1 || low.Outcome() != OutcomePreempted {
			t.Errorf("stages %d, %d", high.Stage(), low.Stage())
		}
	}
}

// enters makes a request arrive that may use the endpoints at these indices. The clients of preemptors stay.
func (x *shared) enters(tier int, flow string, tokens stock.Tokens, at ...int) *Waiter {
	w := new(Waiter)
	x.Arrive(x.clock, w, Arrival{Flow: flow, Tier: tier, Tokens: tokens, Placement: x.placement(at...)})
	for x.Preemptor() != nil {
		x.Preempt(x.clock)
	}
	return w
}
