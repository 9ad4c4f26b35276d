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

// smg is one backend with SMG's four tiers and no reservations.
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
		c.Tiers = []dispatch.TierConfig{{CanPreempt: true}, {CanPreempt: true}, {}, {}}
	}
}

// of returns a request of a tier, in a flow of the same name.
func of(tier int) *Request { return &Request{Flow: fmt.Sprint("t", tier), Tier: tier, Placement: pool} }

// wantPreempted checks that the lease is lost to a preemption, and that its stream is told.
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

// A first byte protects at once and forever; then the next lowest is chosen.
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

// A waiter preempts once that frees a slot for it: not while the pool is over its capacity.
func TestAWaiterPreempts(t *testing.T) {
	inBubble(t, ready(1), smg(2), func(b *bench) {
		b.SetBackends(numbered(2), nil, nil)
		var low []*arrival
		for range 4 {
			low = append(low, b.arrives(b.t.Context(), of(bulk)))
		}
		b.SetBackends(numbered(1), nil, nil) // 4 leases, capacity 2
		high := b.arrives(b.t.Context(), of(system))
		complete(low[0].lease)
		b.want(high, "waits")
		complete(low[1].lease)
		b.want(high, "dispatched")
		b.wantPreempted(low[3])
		for _, a := range append(low[2:], high) {
			complete(a.lease)
		}
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
