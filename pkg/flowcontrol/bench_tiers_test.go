package flowcontrol

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/stock"
)

// fourTiers are four tiers that starve, with a slot reserved for the highest.
func fourTiers(c *Config) {
	c.Queue.CapacityMode, c.Queue.Tiers, c.Tiers = fairqueue.Shared, nil, nil
	for i := range 4 {
		c.Queue.Tiers = append(c.Queue.Tiers, fairqueue.TierConfig{
			Name: fmt.Sprint("tier-", i), QueueSize: -1, StarvationThreshold: time.Millisecond,
		})
		c.Tiers = append(c.Tiers, TierConfig{CanPreempt: i < 2})
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

// steps drives a controller without other goroutines than the caller's.
type steps struct {
	*RequestQueueController
	b *testing.B
}

// offers is an arrival that must end up in the stage.
func (s steps) offers(r *Request, want stage) *Lease {
	l := s.newLease(context.Background(), r)
	if at, _ := s.offer(time.Now(), l, r.Tier, false); at != want {
		s.b.Fatalf("stage %d, want %d: %v", at, want, l.err)
	}
	return l
}

// BenchmarkDisplacement is a lifecycle at a full queue: one operation is a request that displaces another one, is
// granted when the holder completes, and a second one that takes the place which is free then.
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
	var low [waiters]*Lease
	high := Request{Flow: "high", Placement: pool}
	holder := s.offers(&high, stageSent)
	for i := range flows {
		flows[i] = Request{Flow: fmt.Sprint("low-", i), Tier: 3, Placement: pool}
		low[i] = s.offers(&flows[i], stageWaiting)
	}
	b.ReportAllocs()
	at := 0
	for b.Loop() {
		next := s.offers(&high, stageWaiting)
		if low[at].stage != stageEnded { // each has one: the flow that came first was displaced least recently
			b.Fatal("another one was displaced")
		}
		if _, err := s.verdict(context.Background(), low[at], time.Time{}); err == nil {
			b.Fatal("not displaced")
		}
		holder.OnRequestComplete(Completion{Status: 200})
		if _, err := s.verdict(context.Background(), next, time.Time{}); err != nil {
			b.Fatal(err)
		}
		holder = next
		low[at] = s.offers(&flows[at], stageWaiting)
		at = (at + 1) % waiters
	}
}

// BenchmarkVictim is the choice of a victim among 10,000 leases, and the whole preemption: the arrival that takes
// over, its completion, and an arrival that takes the victim's place.
func BenchmarkVictim(b *testing.B) {
	const leases = 10_000
	for _, endpoints := range []int{1, 16} {
		placer := ready(endpoints)
		cfg := DefaultConfig()
		smg(leases / endpoints)(&cfg)
		c, err := build(cfg, placer, nothing)
		if err != nil {
			b.Fatal(err)
		}
		c.metrics = newMetrics(c)
		c.SetBackends(make([]stock.Backend, endpoints), nil)
		s := steps{c, b}
		high, low := of(system), of(bulk)
		for range leases {
			s.offers(low, stageSent)
		}
		b.Run(fmt.Sprintf("choice/endpoints=%d", endpoints), func(b *testing.B) {
			l := c.newLease(context.Background(), high)
			l.flow = &flowAccount{}
			b.ReportAllocs()
			for b.Loop() {
				if c.victimFor(l, c.note(l)) == nil {
					b.Fatal("no victim")
				}
			}
		})
		b.Run(fmt.Sprintf("takeover/endpoints=%d", endpoints), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.offers(high, stageSent).OnRequestComplete(Completion{Status: 200})
				s.offers(low, stageSent)
			}
		})
	}
}
