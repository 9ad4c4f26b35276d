package flowcontrol

import (
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// Requests that waited although they could go: findings of the exploration (TestExplore), each as a test.

// An arrival that preempts somebody whose destination was not yet sent leaves a waiter behind: its time is counted.
func TestAVictimThatWaitsAgainHasItsTimer(t *testing.T) {
	inBubble(t, ready(1), smg(1), func(b *bench) {
		holder := b.arrives(b.t.Context(), of(standard))
		low := b.arrives(b.t.Context(), of(bulk))
		now := time.Now()
		b.mu.Lock()
		b.machine.Complete(now, holder.lease.Granted(), fairqueue.UnknownCost) // grants low: nobody waits
		b.arm(now)
		high := steps{b.RequestQueueController, b.t}.under(now, of(system)) // preempts low
		b.end(now, high)
		b.checkInvariants()
		time.Sleep(300 * time.Second)
		b.want(low, "ttl-expired")
		high.complete()
	})
}

// A head that nobody can make room for does not keep those behind it, in other lanes, from preempting.
func TestAHeadWithoutAVictimStopsNobodyElse(t *testing.T) {
	inBubble(t, ready(2), smg(1), func(b *bench) {
		at := func(lane subset, tier int) *Request {
			return &Request{Flow: string("f" + lane), Tier: tier, Placement: lane}
		}
		stream := b.arrives(b.t.Context(), at("0", system))
		low := b.arrives(b.t.Context(), at("1", bulk))
		head := b.arrives(b.t.Context(), at("0", system))
		b.want(head, "waits")
		behind := b.arrives(b.t.Context(), at("1", system))
		b.want(behind, "dispatched")
		b.wantPreempted(low)
		for _, a := range []*arrival{stream, low, behind, head} {
			b.want(a, "dispatched")
			complete(a.lease)
		}
	})
}

// When a flow at its cap loses a lease to an arrival, its waiters are looked at again, and their starvation is timed.
func TestAFlowThatLosesALeaseIsBelowItsCap(t *testing.T) {
	change := func(c *Config) { smg(2)(c); c.MaxInFlightPerFlow, c.ExpiryCleanupInterval = 1, time.Hour }
	inBubble(t, ready(1), change, func(b *bench) {
		holder := b.arrives(b.t.Context(), of(system))
		first, second := b.arrives(b.t.Context(), of(interactive)), b.arrives(b.t.Context(), of(interactive))
		b.want(second, "waits")
		high := b.arrives(b.t.Context(), &Request{Flow: "other", Tier: system, Placement: pool})
		b.want(high, "dispatched")
		b.wantPreempted(first)
		b.mu.Lock()
		late := time.Until(b.armed)
		b.mu.Unlock()
		if late > 5*time.Second {
			b.t.Errorf("nobody will look when the waiter is starved, but in %v", late)
		}
		complete(holder.lease)
		b.want(second, "dispatched")
		for _, a := range []*arrival{first, second, high} {
			complete(a.lease)
		}
	})
}

// banded is an endpoint that takes one from the queue and two in all.
func banded(c *Config) {
	smg(0)(c)
	c.Stock.LowerBoundPerBackend, c.Stock.WatermarkPerBackend, c.Stock.UpperBoundPerBackend = 1, 2, 2
	for i := range c.Queue.Tiers {
		c.Queue.Tiers[i].StarvationThreshold = time.Second
	}
}

// Inside the band nobody is peeked at: a waiter whose flow is at its cap at every endpoint must be known for what it is,
// or it would keep others from a bypass.
func TestAFlowAtItsCapAtEveryEndpointStopsNoBypass(t *testing.T) {
	change := func(c *Config) { banded(c); c.MaxInFlightPerFlowPerBackend = 1 }
	inBubble(t, ready(1), change, func(b *bench) {
		first, second := b.arrives(b.t.Context(), one("a")), b.arrives(b.t.Context(), one("a"))
		b.want(second, "waits")
		other := b.arrives(b.t.Context(), one("b"))
		b.want(other, "dispatched")
		// One endpoint more is room below its cap.
		b.backends.ready, b.backends.reserved = append(b.backends.ready, true), append(b.backends.reserved, 0)
		b.update()
		complete(other.lease)
		b.want(second, "dispatched")
		complete(first.lease)
		complete(second.lease)
	})
}

// A starved head goes up to its lane's upper bound, though its lane was closed at the lower one before.
func TestAStarvedHeadGoesInTheBandOfItsLane(t *testing.T) {
	b := ready(2)
	b.lower, b.upper = 1, 2
	inBubble(t, b, banded, func(b *bench) {
		at0 := func(tier int) *Request { return &Request{Flow: "f", Tier: tier, Placement: subset("0")} }
		first, second := b.arrives(b.t.Context(), at0(system)), b.arrives(b.t.Context(), at0(system))
		waits := b.arrives(b.t.Context(), at0(bulk))
		b.want(waits, "waits")
		complete(first.lease) // the lane's stock 1 is not below its lower bound 1
		b.want(waits, "waits")
		time.Sleep(time.Second)
		b.want(waits, "dispatched")
		complete(second.lease)
		complete(waits.lease)
	})
}

// A lease that moves to the endpoint that served keeps its age: the newest is preempted first.
func TestALeaseThatMovesKeepsItsAge(t *testing.T) {
	inBubble(t, ready(2), smg(1), func(b *bench) {
		older := b.arrives(b.t.Context(), of(bulk))
		b.backends.reserved[1]++ // let the next one be picked beside it
		newer := b.arrives(b.t.Context(), of(bulk))
		b.backends.reserved[1]--
		older.lease.OnServed(1-older.lease.Endpoint(), 200)
		high := b.arrives(b.t.Context(), of(system))
		b.want(high, "dispatched")
		b.wantPreempted(newer)
		b.wantSafe(older)
		for _, a := range []*arrival{older, newer, high} {
			complete(a.lease)
		}
	})
}
