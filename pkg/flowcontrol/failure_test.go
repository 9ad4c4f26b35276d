package flowcontrol

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A placer that panics once ends nobody's wait and leaves the lock free.
func TestPanicInPlacementLosesNothing(t *testing.T) {
	inBubble(t, ready(1), nil, func(b *bench) {
		leases := b.holds(3)
		waiter := b.arrives(b.t.Context(), one("a"))
		b.backends.panics = 1
		for _, l := range leases {
			complete(l)
		}
		time.Sleep(time.Second)
		b.want(waiter, "dispatched")
		complete(waiter.lease)
	})
}

// A panic in the placement of an arrival ends that arrival, and nobody else: the lock is free, the accounts are right.
func TestPanicInAdmissionEndsOneRequest(t *testing.T) {
	inBubble(t, ready(1), nil, func(b *bench) {
		b.backends.panics = 1
		b.want(b.arrives(b.t.Context(), one("a")), "internal")
		b.backends.panics = 1
		if _, err := b.PassOn(one("a")); OutcomeOf(err) != OutcomeInternal {
			b.t.Errorf("%v", err)
		}
		if s := b.State(); s.LiveFlows != 0 || s.Stock != 0 {
			b.t.Errorf("%+v", s)
		}
		complete(b.holds(1)[0])
	})
}

// Envoy went on to a fallback: the stock moves to the endpoint that serves.
func TestTheLeaseMovesToTheEndpointThatServed(t *testing.T) {
	inBubble(t, ready(2), smg(1), func(b *bench) {
		low := b.arrives(b.t.Context(), of(bulk))
		was := low.lease.Endpoint()
		low.lease.OnServed(1-was, 200)
		low.lease.OnServed(7, 200) // not known: stays
		if low.lease.Endpoint() != 1-was || b.backends.reserved[was] != 0 || b.backends.reserved[1-was] != 1 {
			b.t.Errorf("at %v, reserved %v", low.lease.Endpoint(), b.backends.reserved)
		}
		b.checkInvariants()
		there := subset([]string{"0", "1"}[1-was])
		high := b.arrives(b.t.Context(), &Request{Flow: "h", Tier: system, Placement: there})
		b.want(high, "dispatched") // by preemption of the one that moved there, or by room
		complete(low.lease)
		complete(high.lease)
		low.lease.OnServed(was, 200) // too late
		b.checkInvariants()
	})
}

// None ready: what comes waits for its TTL, or goes when a backend comes.
func TestHoldWhenEmpty(t *testing.T) {
	inBubble(t, ready(1), nil, func(b *bench) {
		b.backends.ready[0] = false
		b.update()
		early := b.arrives(b.t.Context(), one("a"))
		time.Sleep(20 * time.Second)
		late := b.arrives(b.t.Context(), one("a"))
		time.Sleep(10 * time.Second)
		b.want(early, "ttl-expired")
		b.want(late, "waits")
		b.backends.ready[0] = true
		b.update()
		b.want(late, "dispatched")
		complete(late.lease)
	})
	inBubble(t, ready(0), func(c *Config) { c.HoldWhenEmpty = false }, func(b *bench) {
		b.want(b.arrives(b.t.Context(), one("a")), "no-endpoint")
	})
	fleet := ready(2)
	fleet.ready[1] = false
	inBubble(t, fleet, func(c *Config) { c.HoldWhenEmpty = false }, func(b *bench) {
		leases := b.holds(3) // the pool is full, and not empty
		b.want(b.arrives(b.t.Context(), &Request{Flow: "a", Placement: subset("1")}), "no-endpoint")
		waiter := b.arrives(b.t.Context(), one("a"))
		b.want(waiter, "waits")
		for _, l := range leases {
			complete(l)
		}
		complete(waiter.lease)
	})
}

// holdWhenEmpty false holds for those that wait already: when the last endpoint that they may use is not ready any more
// they hear of it at once, and those with another one wait on.
func TestNobodyIsHeldWhenTheLastOneGoes(t *testing.T) {
	change := func(hold bool) func(*Config) {
		return func(c *Config) { c.HoldWhenEmpty, c.MaxInFlightPerFlow = hold, 5 }
	}
	inBubble(t, ready(2), change(false), func(b *bench) {
		leases := b.holds(5)
		capped := b.arrives(b.t.Context(), &Request{Flow: "held", Placement: subset("1")})
		first := b.arrives(b.t.Context(), &Request{Flow: "a", Placement: subset("1")})
		second := b.arrives(b.t.Context(), &Request{Flow: "a", Placement: subset("1")})
		anywhere := b.arrives(b.t.Context(), one("a"))
		b.backends.ready[1] = false
		b.update()
		for _, a := range []*arrival{capped, first, second} {
			b.want(a, "no-endpoint")
		}
		b.want(anywhere, "waits")
		b.backends.ready[0] = false
		b.update()
		b.want(anywhere, "no-endpoint")
		for _, l := range leases {
			complete(l)
		}
	})
	inBubble(t, ready(2), change(true), func(b *bench) {
		leases := b.holds(5)
		waiter := b.arrives(b.t.Context(), &Request{Flow: "held", Placement: subset("1")})
		b.backends.ready[1] = false
		b.update()
		b.want(waiter, "waits")
		b.mustReload(func(c *Config) { c.HoldWhenEmpty = false })
		b.want(waiter, "no-endpoint")
		for _, l := range leases {
			complete(l)
		}
	})
}

// Losing backends shrinks the bounds at once and settles nothing; stock 0 always releases.
func TestBackendsComeAndGo(t *testing.T) {
	inBubble(t, ready(3), nil, func(b *bench) {
		leases := b.holds(7) // 6 < 6.6
		b.backends.ready[1], b.backends.ready[2] = false, false
		b.update()
		if s := b.State(); s.Stock != 7 || s.UpperBound != 2.2 || s.LowerBound != 1.8 {
			b.t.Errorf("%+v", s)
		}
		waiter := b.arrives(b.t.Context(), one("a"))
		for _, i := range []int{1, 2, 4, 5, 0} { // of those at the backends that are gone none makes room; then 2 of 1.8 are left
			complete(leases[i])
			b.want(waiter, "waits")
		}
		complete(leases[3]) // stock 1
		b.want(waiter, "dispatched")
		complete(leases[6])
		complete(waiter.lease)
	})
}

// A lane without room does not block others; when a lease at one of its endpoints ends, it goes on.
func TestLanesDoNotBlockEachOther(t *testing.T) {
	b := ready(2)
	b.upper = 2
	inBubble(t, b, func(c *Config) { c.Stock.WatermarkPerBackend = 2 }, func(b *bench) {
		at0 := func() *Request { return &Request{Flow: "a", Placement: subset("0")} }
		at1 := func() *Request { return &Request{Flow: "a", Placement: subset("1")} }
		first, second := b.arrives(b.t.Context(), at0()), b.arrives(b.t.Context(), at0())
		b.want(second, "dispatched")
		blocked := b.arrives(b.t.Context(), at0())
		b.want(blocked, "waits")
		other := b.arrives(b.t.Context(), at1()) // same flow, behind it, another lane
		b.want(other, "dispatched")
		complete(other.lease)
		b.want(blocked, "waits")
		complete(first.lease)
		b.want(blocked, "dispatched")
		complete(second.lease)
		complete(blocked.lease)
	})
}

// A waiter whose lane has no ready endpoint stands in nobody's way.
func TestDeadLaneDoesNotStopABypass(t *testing.T) {
	inBubble(t, ready(2), nil, func(b *bench) {
		b.backends.ready[1] = false
		b.update()
		dead := b.arrives(b.t.Context(), &Request{Flow: "a", Placement: subset("1")})
		b.want(dead, "waits")
		lease := b.holds(1)[0]
		if _, queued := lease.Queued(); queued {
			b.t.Error("the arrival waited behind a request that cannot go")
		}
		b.backends.ready[1] = true
		b.update()
		b.want(dead, "dispatched")
		complete(lease)
		complete(dead.lease)
	})
}

// Disabled: everything passes, the stock is still counted.
func TestDisabledStillCounts(t *testing.T) {
	inBubble(t, ready(1), func(c *Config) { c.Enabled = false }, func(b *bench) {
		leases := b.holds(50)
		if s := b.State(); s.Stock != 50 {
			b.t.Errorf("%+v", s)
		}
		for _, l := range leases {
			complete(l)
		}
		b.backends.ready[0] = false
		b.update()
		b.want(b.arrives(b.t.Context(), one("a")), "no-endpoint")
	})
}

func TestDrainRejectsWhatIsLeft(t *testing.T) {
	inBubble(t, ready(1), nil, func(b *bench) {
		leases := b.holds(3)
		waiter := b.arrives(b.t.Context(), one("a"))
		b.Drain()
		b.want(waiter, "draining")
		b.want(b.arrives(b.t.Context(), one("a")), "draining")
		if _, err := b.PassOn(one("a")); OutcomeOf(err) != OutcomeDraining {
			b.t.Error(err)
		}
		var r *Rejection
		if !errors.As(waiter.err, &r) || r.RetryAfter < time.Millisecond || r.RetryAfter > time.Second {
			b.t.Errorf("%+v", r)
		}
		for _, l := range leases {
			complete(l)
		}
	})
}

// OnQueued is called once, before the wait, and never for a bypass or a rejection.
func TestOnQueuedTellsTheLongestWait(t *testing.T) {
	inBubble(t, ready(1), func(c *Config) { c.Queue.TotalCapacity, c.Queue.FlowCapacity = 1, 1 }, func(b *bench) {
		calls := 0
		r := one("a")
		r.OnQueued = func(longest time.Duration) {
			calls++
			if longest != 30*time.Second {
				b.t.Errorf("longest wait %v", longest)
			}
		}
		lease, err := b.TryEnqueue(b.t.Context(), r)
		if err != nil || calls != 0 {
			b.t.Fatalf("%v, %d calls", err, calls)
		}
		leases := append(b.holds(2), lease)
		waiter := b.arrives(b.t.Context(), r)
		if calls != 1 {
			b.t.Errorf("%d calls", calls)
		}
		b.want(b.arrives(b.t.Context(), r), "flow-full")
		if calls != 1 {
			b.t.Errorf("%d calls", calls)
		}
		for _, l := range leases {
			complete(l)
		}
		complete(waiter.lease)
	})
}

// While nobody waits there is no timer, and without Run nothing but time is missing.
func TestIdleHasNoTimer(t *testing.T) {
	inBubble(t, ready(1), nil, func(b *bench) {
		leases := b.holds(3)
		if b.State().TimerStands {
			b.t.Error("a timer stands though nobody waits")
		}
		ctx, leave := context.WithCancel(b.t.Context())
		waiter := b.arrives(ctx, one("a"))
		if !b.State().TimerStands {
			b.t.Error("no timer stands though somebody waits")
		}
		leave()
		b.want(waiter, "client-cancelled")
		synctest.Wait()
		if b.State().TimerStands {
			b.t.Error("a timer stands though nobody waits any more")
		}
		for _, l := range leases {
			complete(l)
		}
	})
}
