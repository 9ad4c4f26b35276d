package flowcontrol

import (
	"sync"
	"testing"
	"time"
)

// A flood of the highest tier whose queue is never empty. Those below live on promotions, a tenth of the dispatches,
// and what they hold is bounded too.

// flooded is SMG's tiers with so many slots, thresholds of a second and a budget of a tenth.
func flooded(slots int, preempts bool) func(*Config) {
	return func(c *Config) {
		smg(slots)(c)
		c.Queue.PromotionBudget, c.Queue.QueueTTL = 100_000, 1000*time.Hour
		c.Queue.TotalCapacity, c.Queue.FlowCapacity = 100_000, 100_000
		for i := range c.Queue.Tiers {
			t := &c.Queue.Tiers[i]
			t.QueueSize, t.QueueTimeout, t.StarvationThreshold = -1, 0, time.Second
			c.Tiers[i].CanPreempt = preempts && i < standard
		}
	}
}

// flood is open loop: an arrival for each end of a lease, and a backlog to begin with.
type flood struct {
	*bench
	every   time.Duration // between two ends
	service func(tier int) time.Duration
	streams sync.WaitGroup

	mu         sync.Mutex
	dispatched []dispatched
	held, most [4]int // leases by tier, now and at most
	completed  int    // promoted ones
}

type dispatched struct {
	tier     int
	promoted bool
}

// arrives sends a request, which holds its lease for its service time unless it is preempted.
func (f *flood) arrives(tier int) {
	f.streams.Go(func() {
		l, err := f.TryEnqueue(f.t.Context(), of(tier))
		if err != nil {
			return
		}
		promoted := l.Granted().Promoted()
		f.mu.Lock()
		f.dispatched = append(f.dispatched, dispatched{tier, promoted})
		f.held[tier]++
		f.most[tier] = max(f.most[tier], f.held[tier])
		f.mu.Unlock()
		select {
		case <-time.After(f.service(tier)):
		case <-l.Preempted():
			promoted = false
		}
		f.mu.Lock()
		if promoted {
			f.completed++
		}
		f.held[tier]--
		f.mu.Unlock()
		l.OnRequestComplete(Completion{Status: 200})
	})
}

// run fills the slots one after the other, lets the others come and be starved, and then counts so many dispatches.
// Arrivals come between the ends of leases, so that which of two comes first is never a matter of luck.
func (f *flood) run(slots, dispatches int, tiers ...int) {
	for i := range slots {
		f.arrives(system)
		time.Sleep(f.every / time.Duration(1+i/(slots-1))) // the last time only half
	}
	for range 40 {
		f.arrives(system)
		for _, tier := range tiers {
			f.arrives(tier)
		}
	}
	for range 3 * time.Second / f.every { // the budget has banked some promotions until the first was starved
		f.arrives(system)
		time.Sleep(f.every)
	}
	f.mu.Lock()
	f.dispatched = nil
	f.mu.Unlock()
	for counted := 0; counted < dispatches; {
		f.arrives(system)
		time.Sleep(f.every)
		if f.State().Queued == 0 {
			f.t.Fatal("the flood's queue is empty")
		}
		f.mu.Lock()
		counted = len(f.dispatched)
		f.mu.Unlock()
	}
	f.Drain()
	f.streams.Wait()
}

// "Sustained system flood (open loop, its queue never empty, budget 0.1, thresholds 1 s, preemption off): capacity 4 and
// equal service times: in 1,000 dispatches 100 ± 2 promotions, shared by the starved tiers in turn; with preemption on,
// every promoted request completes."
func TestFloodLeavesATenthToTheStarved(t *testing.T) {
	for _, preempts := range []bool{false, true} {
		inBubble(t, ready(1), flooded(4, preempts), func(b *bench) {
			f := &flood{
				bench: b, every: 25 * time.Millisecond,
				service: func(int) time.Duration { return 100 * time.Millisecond },
			}
			f.run(4, 1000, interactive, standard, bulk)
			promoted, byTier, last := 0, [4]int{}, -1
			for _, d := range f.dispatched[:1000] {
				if !d.promoted {
					if d.tier != system {
						b.t.Fatalf("tier %d went in order, and the flood waits", d.tier)
					}
					continue
				}
				promoted++
				byTier[d.tier]++
				if d.tier == last {
					b.t.Fatalf("promotion %d is of tier %d again", promoted, d.tier)
				}
				last = d.tier
			}
			if promoted < 98 || promoted > 102 {
				b.t.Errorf("%d promotions in 1000 dispatches, want 100 ± 2", promoted)
			}
			for tier := interactive; tier <= bulk; tier++ {
				if byTier[tier] < 33 || byTier[tier] > 34 {
					b.t.Errorf("promotions by tier %v, want a third each", byTier)
				}
			}
			var all uint64
			for _, t := range b.machine.Tiers(nil) {
				all += t.Promotions
			}
			if uint64(f.completed) != all {
				b.t.Errorf("%d of %d promoted requests completed", f.completed, all)
			}
		})
	}
}

// "Bulk leases 100 times longer than the flood's never hold more than the budget's share of the slots."
func TestLongLeasesOfTheStarvedHoldTheBudgetsShare(t *testing.T) {
	for _, test := range []struct{ slots, share int }{{4, 1}, {40, 4}} {
		inBubble(t, ready(1), flooded(test.slots, false), func(b *bench) {
			f := &flood{bench: b, every: 100 * time.Millisecond / time.Duration(test.slots), service: func(tier int) time.Duration {
				if tier == bulk {
					return 10 * time.Second
				}
				return 100 * time.Millisecond
			}}
			f.run(test.slots, 2000, bulk)
			if f.most[bulk] != test.share {
				b.t.Errorf("bulk held %d of %d slots at most, want %d", f.most[bulk], test.slots, test.share)
			}
			if n := f.most[system]; n > test.slots {
				b.t.Errorf("the flood held %d of %d slots", n, test.slots)
			}
		})
	}
}
