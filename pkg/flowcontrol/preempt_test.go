package flowcontrol

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
)

// The tiers of SMG's priority scheduler by rank.
const (
	system = iota
	interactive
	standard // SMG calls it default
	bulk
)

// smg is one backend of so many slots with SMG's four tiers and no reservations.
func smg(slots int) func(*Config) {
	return func(c *Config) {
		c.EnqueueAll = true
		c.Stock.SlotsPerBackend = slots
		c.Queue.CapacityMode, c.Queue.TotalCapacity, c.Queue.FlowCapacity = fairqueue.Shared, 1856, 1024
		c.Queue.PromotionBudget = 1_000_000
		tier := func(name string, size int, timeout, starved time.Duration) fairqueue.TierConfig {
			return fairqueue.TierConfig{Name: name, QueueSize: size, QueueTimeout: timeout, StarvationThreshold: starved}
		}
		c.Queue.Tiers = []fairqueue.TierConfig{
			tier("system", 64, 30*time.Second, 5*time.Second),
			tier("interactive", 256, 30*time.Second, 5*time.Second),
			tier("default", 512, 60*time.Second, 30*time.Second),
			tier("bulk", 1024, 300*time.Second, 120*time.Second),
		}
		c.Tiers = []TierConfig{{CanPreempt: true}, {CanPreempt: true}, {}, {}}
	}
}

// of is a request of a tier, its flow named for it.
func of(tier int) *Request { return &Request{Flow: fmt.Sprint("t", tier), Tier: tier, Placement: pool} }

// wantPreempted checks that the lease is lost to a preemption, and that its stream gets to know.
func (b *bench) wantPreempted(a *arrival) {
	b.t.Helper()
	select {
	case <-a.lease.Preempted():
	default:
		b.t.Fatal("not preempted")
	}
	var r *Rejection
	if err := a.lease.OnFirstByte(); !errors.As(err, &r) || r.Outcome != OutcomePreempted || r.RetryAfter < 1 || r.RetryAfter > time.Second {
		b.t.Fatalf("OnFirstByte: %v", err)
	}
}

func (b *bench) wantSafe(a *arrival) {
	b.t.Helper()
	select {
	case <-a.lease.Preempted():
		b.t.Fatal("preempted")
	default:
	}
}

func TestLowestTierIsPreemptedFirst(t *testing.T) {
	inBubble(t, ready(1), smg(2), func(b *bench) {
		middle, low := b.arrives(b.t.Context(), of(standard)), b.arrives(b.t.Context(), of(bulk))
		high := b.arrives(b.t.Context(), of(interactive))
		b.want(high, "dispatched")
		b.wantPreempted(low)
		b.wantSafe(middle)
		if s := b.State(); s.Stock != 2 {
			b.t.Errorf("the slot passes in one transition: %+v", s)
		}
		for _, a := range []*arrival{middle, low, high} {
			complete(a.lease)
		}
		if s := b.State(); s.Stock != 0 {
			b.t.Errorf("%+v", s)
		}
	})
}

// A first byte protects, at once and for ever; then the next lowest is chosen.
func TestFirstByteProtects(t *testing.T) {
	inBubble(t, ready(1), smg(2), func(b *bench) {
		middle, low := b.arrives(b.t.Context(), of(standard)), b.arrives(b.t.Context(), of(bulk))
		if err := low.lease.OnFirstByte(); err != nil {
			b.t.Fatal(err)
		}
		high := b.arrives(b.t.Context(), of(interactive))
		b.want(high, "dispatched")
		b.wantSafe(low)
		b.wantPreempted(middle)
		another := b.arrives(b.t.Context(), of(interactive))
		b.want(another, "waits") // nobody is left but a stream and its own tier
		time.Sleep(30 * time.Second)
		b.want(another, "ttl-expired")
		for _, a := range []*arrival{middle, low, high} {
			complete(a.lease)
		}
	})
}

func TestATierThatMayNotPreemptWaits(t *testing.T) {
	inBubble(t, ready(1), smg(1), func(b *bench) {
		low := b.arrives(b.t.Context(), of(bulk))
		middle := b.arrives(b.t.Context(), of(standard))
		b.want(middle, "waits")
		b.wantSafe(low)
		complete(low.lease)
		b.want(middle, "dispatched")
		complete(middle.lease)
	})
}

func TestAPreemptorThatIsGoneLeavesTheVictimUntouched(t *testing.T) {
	inBubble(t, ready(1), smg(1), func(b *bench) {
		low := b.arrives(b.t.Context(), of(bulk))
		gone, leave := context.WithCancel(b.t.Context())
		leave()
		b.want(b.arrives(gone, of(system)), "client-cancelled")
		b.wantSafe(low)
		complete(low.lease)
	})
}

// smg 9.8: the least waste goes by the time of admission alone. Here by default too, the newest of a tier first; with
// least-cost the smallest in tokens, then the newest.
func TestDefectLeastWasteCountsNoTokens(t *testing.T) {
	for _, test := range []struct {
		order dispatch.VictimOrder
		want  int
	}{{dispatch.NewestFirst, 2}, {dispatch.LeastCostFirst, 1}} {
		inBubble(t, ready(1), func(c *Config) { smg(3)(c); c.VictimOrder = test.order }, func(b *bench) {
			var low []*arrival
			for _, cost := range []fairqueue.Cost{5, 1, 9} {
				r := of(bulk)
				r.Cost = cost
				low = append(low, b.arrives(b.t.Context(), r))
			}
			high := b.arrives(b.t.Context(), of(system))
			b.want(high, "dispatched")
			b.wantPreempted(low[test.want])
			for _, a := range append(low, high) {
				complete(a.lease)
			}
		})
	}
}

// smg 9.1: the freed slot goes to a third request that happened to wait. Here it is the preemptor's, always.
func TestDefectPreemptedSlotGoesToAThird(t *testing.T) {
	inBubble(t, ready(1), smg(1), func(b *bench) {
		low := b.arrives(b.t.Context(), of(bulk))
		waits := b.arrives(b.t.Context(), of(standard))
		high := b.arrives(b.t.Context(), of(interactive))
		b.want(high, "dispatched")
		b.want(waits, "waits")
		complete(low.lease) // the victim's stream ends: nothing more is freed
		b.want(waits, "waits")
		complete(high.lease)
		b.want(waits, "dispatched")
		complete(waits.lease)
	})
}

// smg 9.5: only an arrival preempts. Here a waiter does too when it becomes the head.
func TestDefectOnlyArrivalsPreempt(t *testing.T) {
	inBubble(t, ready(2), smg(1), func(b *bench) {
		low := &Request{Flow: "low", Tier: bulk, Placement: subset("0")}
		first := b.arrives(b.t.Context(), low)
		high := b.arrives(b.t.Context(), &Request{Flow: "h", Tier: system, Placement: subset("1")})
		waiter := b.arrives(b.t.Context(), &Request{Flow: "w", Tier: interactive, Placement: subset("1")})
		b.want(waiter, "waits") // the only lease it could use is of a higher tier
		b.wantSafe(first)
		complete(high.lease)
		b.want(waiter, "dispatched")
		complete(first.lease)
		complete(waiter.lease)
	})
	inBubble(t, ready(2), smg(2), func(b *bench) {
		b.backends.ready[1] = false
		b.SetBackends(numbered(1), nil, nil)
		stream := b.arrives(b.t.Context(), of(bulk))
		other := b.arrives(b.t.Context(), of(system))
		if err := stream.lease.OnFirstByte(); err != nil {
			b.t.Fatal(err)
		}
		waiter := b.arrives(b.t.Context(), of(interactive))
		b.want(waiter, "waits")
		// Two backends more: bulk comes in, and one goes again: over capacity nobody is preempted, at it the head is.
		low := b.arrives(b.t.Context(), of(bulk))
		b.want(low, "waits")
		b.backends.ready[1] = true
		b.SetBackends(numbered(2), nil, nil)
		b.want(waiter, "dispatched")
		b.want(low, "dispatched")
		second := b.arrives(b.t.Context(), of(interactive))
		b.want(second, "dispatched")
		b.wantPreempted(low)
		for _, a := range []*arrival{stream, other, waiter, low, second} {
			complete(a.lease)
		}
	})
}

// smg 9.5: over capacity (backends went away) a preemption frees nothing for the preemptor, and a victim dies for
// nothing. Here nobody is preempted then.
func TestDefectPointlessPreemptionOverCapacity(t *testing.T) {
	inBubble(t, ready(1), smg(2), func(b *bench) {
		b.SetBackends(numbered(2), nil, nil)
		var low []*arrival
		for range 4 {
			low = append(low, b.arrives(b.t.Context(), of(bulk)))
		}
		b.SetBackends(numbered(1), nil, nil) // 4 leases, capacity 2
		high := b.arrives(b.t.Context(), of(system))
		b.want(high, "waits")
		for _, a := range low {
			b.wantSafe(a)
		}
		complete(low[0].lease) // 3
		b.want(high, "waits")
		complete(low[1].lease) // 2: one victim is enough now
		b.want(high, "dispatched")
		b.wantPreempted(low[3])
		complete(low[2].lease)
		complete(low[3].lease)
		complete(high.lease)
	})
}

// A victim at an endpoint that the preemptor may not use is no victim; with its flow at its cap neither.
func TestPointlessVictimsAreLeftAlone(t *testing.T) {
	inBubble(t, ready(2), smg(1), func(b *bench) {
		low := b.arrives(b.t.Context(), &Request{Flow: "low", Tier: bulk, Placement: subset("0")})
		other := b.arrives(b.t.Context(), &Request{Flow: "low", Tier: bulk, Placement: subset("1")})
		high := b.arrives(b.t.Context(), &Request{Flow: "high", Tier: system, Placement: subset("0")})
		b.want(high, "dispatched")
		b.wantPreempted(low)
		b.wantSafe(other)
		for _, a := range []*arrival{low, other, high} {
			complete(a.lease)
		}
	})
	inBubble(t, ready(1), func(c *Config) { smg(2)(c); c.MaxInFlightPerFlow = 1 }, func(b *bench) {
		first := b.arrives(b.t.Context(), of(system))
		low := b.arrives(b.t.Context(), of(bulk))
		second := b.arrives(b.t.Context(), of(system))
		b.want(second, "waits")
		b.wantSafe(low)
		complete(first.lease)
		b.want(second, "dispatched")
		complete(low.lease)
		complete(second.lease)
	})
}

// A victim whose destination was not yet sent goes back to its place without a 503: here it is granted and preempted
// under one lock, before its goroutine could run.
func TestAnUnsentVictimGoesBackToItsPlace(t *testing.T) {
	inBubble(t, ready(1), smg(1), func(b *bench) {
		holder := b.arrives(b.t.Context(), of(standard))
		low := b.arrives(b.t.Context(), of(bulk))
		behind := b.arrives(b.t.Context(), of(bulk))
		now := time.Now()
		b.mu.Lock()
		b.machine.Complete(now, holder.lease.Granted(), fairqueue.UnknownCost) // grants low
		high := steps{b.RequestQueueController, b.t}.under(now, of(system))    // preempts low
		b.end(now, high)
		b.want(low, "waits")
		b.want(behind, "waits")
		high.complete()
		b.want(low, "dispatched") // still before the one that came after it
		b.want(behind, "waits")
		complete(low.lease)
		b.want(behind, "dispatched")
		complete(behind.lease)
	})
}

// A lease granted by promotion is never preempted.
func TestPromotedLeasesAreNotPreempted(t *testing.T) {
	change := func(c *Config) {
		smg(1)(c)
		c.Tiers[interactive].ReservedFloor = 1
		c.Queue.Tiers[bulk].StarvationThreshold = time.Second
	}
	inBubble(t, ready(1), change, func(b *bench) {
		start := time.Now()
		low := b.arrives(b.t.Context(), of(bulk)) // the only slot is reserved
		b.want(low, "waits")
		time.Sleep(time.Second)
		b.want(low, "dispatched")
		if low.at.Sub(start) != time.Second {
			b.t.Errorf("promoted after %v", low.at.Sub(start))
		}
		high := b.arrives(b.t.Context(), of(system))
		b.want(high, "waits")
		complete(low.lease)
		b.want(high, "dispatched")
		complete(high.lease)
	})
}

// At most one victim for an admission.
func TestOneVictimForAnAdmission(t *testing.T) {
	inBubble(t, ready(1), smg(3), func(b *bench) {
		var low []*arrival
		for range 3 {
			low = append(low, b.arrives(b.t.Context(), of(bulk)))
		}
		high := b.arrives(b.t.Context(), of(system))
		b.want(high, "dispatched")
		b.wantPreempted(low[2])
		b.wantSafe(low[0])
		b.wantSafe(low[1])
		for _, a := range append(low, high) {
			complete(a.lease)
		}
	})
}
