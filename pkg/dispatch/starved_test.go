package dispatch

import (
	"testing"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/stock"
)

// arrivals lets a request come that may use some endpoints, or all.
type arrivals func(tier int, flow string, cost fairqueue.Cost, at ...int) *Waiter

// starvedAtItsCap is a pool with room between the bounds, all of it at endpoint 0. There the tenant of the one waiter that
// is starved is at its cap, and endpoint 1 has come to its bound in tokens while it waited.
func starvedAtItsCap(t *testing.T) (x *shared, comes arrivals, old, grown *Waiter) {
	x = newShared(t, 2, 1, bounded(100), func(c *Config) {
		threeTiers(c, 1_000_000)
		perBackend(c, 1, 2)
		c.Tiers = []TierConfig{{}, {}, {}}
		c.MaxInFlightPerFlowPerBackend = 1
	})
	comes = func(tier int, flow string, cost fairqueue.Cost, at ...int) *Waiter {
		w := new(Waiter)
		x.Arrive(x.clock, w, Arrival{Flow: flow, Tier: tier, Cost: cost, Tokens: 1, Placement: x.placement(at...)})
		return w
	}
	comes(0, "capped", 1, 0)
	ends := comes(0, "a", 1, 0)
	grown = comes(0, "b", 1, 1)
	comes(0, "c", 1)
	old = comes(1, "capped", 10)
	if ends.Stage() != StageSent || grown.Stage() != StageSent || old.Stage() != StageWaiting {
		t.Fatalf("stages %d, %d, %d", ends.Stage(), grown.Stage(), old.Stage())
	}
	x.Raise(x.clock, grown.Lease(), 1, stock.Tokens(100))
	x.Complete(x.clock, ends.Lease(), fairqueue.UnknownCost)
	return x, comes, old, grown
}

// A waiter that is old lends its age to nobody while all the room is where its tenant is at its cap: another of its tier is
// promoted when it is old itself, and the first goes when there is room elsewhere.
func TestWaiterAtItsCapLendsNoAge(t *testing.T) {
	x, comes, old, grown := starvedAtItsCap(t)
	x.clock = x.clock.Add(tick / 2)
	young := comes(1, "young", 1)
	x.clock = x.clock.Add(tick / 2)
	x.Advance(x.clock)
	if young.Stage() != StageWaiting {
		t.Errorf("stage %d: it is promoted by the age of one who could not go", young.Stage())
	}
	x.clock = x.clock.Add(tick / 2)
	x.Advance(x.clock)
	if young.Stage() != StageGranted || !young.Lease().Promoted() || young.Lease().Endpoint() != 0 {
		t.Errorf("stage %d: it is starved, and endpoint 0 has room", young.Stage())
	}
	x.Complete(x.clock, grown.Lease(), fairqueue.UnknownCost)
	if old.Stage() != StageGranted || !old.Lease().Promoted() || old.Lease().Endpoint() != 1 {
		t.Errorf("stage %d: it is starved, and endpoint 1 has room", old.Stage())
	}
}

// Such a waiter keeps no arrival of a higher tier from going at once.
func TestWaiterAtItsCapKeepsNobodyFromGoing(t *testing.T) {
	x, comes, _, _ := starvedAtItsCap(t)
	x.clock = x.clock.Add(tick)
	if urgent := comes(0, "urgent", 1); urgent.Stage() != StageSent {
		t.Errorf("stage %d: the starved one could not go there", urgent.Stage())
	}
}

// An overdue waiter that the event has not ended yet lends its age to nobody.
func TestOverdueWaiterLendsNoAge(t *testing.T) {
	b := newBench(t, []int{1}, func(c *Config) {
		c.Queue.QueueTTL = 10 * tick
		c.Queue.PromotionBudget = 1_000_000
		perBackend(c, 1, 2)
		c.Tiers = []TierConfig{{}, {}, {}}
	})
	b.unsized()
	b.mostExpired = 1
	b.arrives(0, "a", "", StageSent)
	ends := b.arrives(0, "a", "", StageSent)
	comes := func(flow string, cost fairqueue.Cost) *Waiter {
		w := new(Waiter)
		b.event(func() { b.Arrive(b.clock, w, Arrival{Flow: flow, Tier: 2, Cost: cost, Placement: reach("")}) })
		return w
	}
	due := []*Waiter{comes("x", 10), comes("y", 10)}
	b.clock = b.clock.Add(10*tick - tick/2)
	young := comes("young", 1)
	b.clock = b.clock.Add(tick / 2)
	b.complete(ends)
	for _, w := range due {
		if w.Outcome() != OutcomeTTLExpired {
			t.Errorf("stage %d, %v, want expired", w.Stage(), w.Outcome())
		}
	}
	b.want(young, StageWaiting)
	b.clock = b.clock.Add(tick / 2)
	b.event(func() { b.Advance(b.clock) })
	b.want(young, StageGranted)
}
