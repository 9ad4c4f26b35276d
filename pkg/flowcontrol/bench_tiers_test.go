package flowcontrol

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
)

// fourTiers are four tiers that starve, with a slot reserved for the highest.
func fourTiers(c *Config) {
	c.Queue.CapacityMode, c.Queue.Tiers, c.Tiers = fairqueue.Shared, nil, nil
	for i := range 4 {
		c.Queue.Tiers = append(c.Queue.Tiers, fairqueue.TierConfig{
			Name: fmt.Sprint("tier-", i), QueueSize: -1, StarvationThreshold: time.Millisecond,
		})
		c.Tiers = append(c.Tiers, dispatch.TierConfig{CanPreempt: i < 2})
	}
	c.Tiers[0].ReservedFloor = 1
}

// BenchmarkLifecycleTiers is BenchmarkLifecycle with four tiers, a reservation and starvation on two slots; requests that
// find room could also be preempted.
func BenchmarkLifecycleTiers(b *testing.B) {
	change := func(c *Config) {
		fourTiers(c)
		c.Stock.WatermarkPerBackend, c.Stock.LowerBoundPerBackend, c.Stock.UpperBoundPerBackend = 2, 2, 2
	}
	b.Run("free", func(b *testing.B) { unhindered(b, benchController(b, change), 2) })
	for _, flows := range []int{4, 5000} {
		b.Run(fmt.Sprintf("waiters=5000/flows=%d", flows), func(b *testing.B) {
			newDesk(b, func(c *Config) {
				change(c)
				for i := range c.Tiers {
					c.Tiers[i].CanPreempt = false // a preempted holder would be one less
				}
			}).serve(flows, 4, 5000)
		})
	}
}

// BenchmarkDisplacement is a lifecycle at a full queue: in one operation a request displaces another one and is granted
// when the holder completes, and a second request takes the place that becomes free.
func BenchmarkDisplacement(b *testing.B) {
	const waiters = 5000
	s := steps{benchController(b, func(c *Config) {
		fourTiers(c)
		c.Queue.TotalCapacity, c.Queue.FlowCapacity = waiters, waiters
		for i := range c.Queue.Tiers {
			c.Queue.Tiers[i].StarvationThreshold = 0
			c.Tiers[i].CanPreempt = false
		}
	}), b}
	var flows [waiters]Request
	var low [waiters]*waiter
	high := Request{Flow: "high", Placement: pool}
	holder := s.offers(&high, dispatch.StageSent)
	for i := range flows {
		flows[i] = Request{Flow: fmt.Sprint("low-", i), Tier: 3, Placement: pool}
		low[i] = s.offers(&flows[i], dispatch.StageWaiting)
	}
	b.ReportAllocs()
	at := 0
	for b.Loop() {
		next := s.offers(&high, dispatch.StageWaiting)
		if low[at].Stage() != dispatch.StageEnded { // each has one: the flow that came first was displaced least recently
			b.Fatal("another one was displaced")
		}
		if _, err := s.verdict(low[at]); err == nil {
			b.Fatal("not displaced")
		}
		holder.complete()
		if _, err := s.verdict(next); err != nil {
			b.Fatal(err)
		}
		holder = next
		low[at] = s.offers(&flows[at], dispatch.StageWaiting)
		at = (at + 1) % waiters
	}
}

// BenchmarkVictim is a preemption among 10,000 preemptible leases: the preempting arrival, its completion, and an
// arrival that takes the victim's place.
func BenchmarkVictim(b *testing.B) {
	const leases = 10_000
	for _, endpoints := range []int{1, 16} {
		placer := ready(endpoints)
		cfg := DefaultConfig()
		smg(leases / endpoints)(&cfg)
		c, err := New(cfg, placer, logr.Discard())
		if err != nil {
			b.Fatal(err)
		}
		c.SetBackends(numbered(endpoints), nil, nil)
		s := steps{c, b}
		high, low := of(system), of(bulk)
		for range leases {
			s.offers(low, dispatch.StageSent)
		}
		b.Run(fmt.Sprintf("takeover/endpoints=%d", endpoints), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.offers(high, dispatch.StageSent).complete()
				s.offers(low, dispatch.StageSent)
			}
		})
	}
}
