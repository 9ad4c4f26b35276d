package flowcontrol

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A placer that panics once ends no request's wait and leaves the lock free.
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

// A panic in the placement of an arrival ends only that arrival: the lock is free, the accounts are right.
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
		was := low.lease.Granted().Endpoint()
		low.lease.OnServed(1-was, 200)
		low.lease.OnServed(7, 200) // not known: stays
		if low.lease.Granted().Endpoint() != 1-was || b.backends.reserved[was] != 0 || b.backends.reserved[1-was] != 1 {
			b.t.Errorf("at %v, reserved %v", low.lease.Granted().Endpoint(), b.backends.reserved)
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

// Without waiting requests there is no timer, and without Run only timed events are missing.
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
