package dispatch

import (
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// If many requests expire together, each event ends a bounded number, and the next event is due at once, until all have
// ended at the instant when they were due. None of them is dispatched meanwhile, but other requests are.
func TestExpiryTogetherIsSplitIntoEvents(t *testing.T) {
	const many, ttl = 20_000, 30 * time.Second
	for name, discipline := range map[string]fairqueue.Discipline{"wfq": fairqueue.WFQ, "vtc": fairqueue.VTC, "fairshare": fairqueue.FairShare, "none": fairqueue.OneFlow} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, []int{1}, func(c *Config) {
				c.Queue.Discipline, c.Queue.QueueTTL = discipline, ttl
				c.Queue.CapacityMode, c.Queue.TotalCapacity, c.Queue.FlowCapacity = fairqueue.Shared, 2*many, 2*many
				for i := range c.Queue.Tiers {
					c.Queue.Tiers[i].QueueSize, c.Queue.Tiers[i].StarvationThreshold = fairqueue.NoLimit, 0
				}
			})
			holder := b.arrives(1, "a", "", StageSent)
			due := make([]*Waiter, many)
			for i := range due {
				due[i] = b.arrives(1, []string{"a", "b", "c"}[i%3], "", StageWaiting)
			}
			b.clock = b.clock.Add(ttl / 2)
			alive := []*Waiter{b.arrives(1, "a", "", StageWaiting), b.arrives(1, "d", "", StageWaiting)}
			b.clock = b.clock.Add(ttl / 2)
			ended, events := 0, 0
			for b.queue.Len() > 1 || holder != nil {
				if in, asks := b.Next(b.clock); !asks || in > 0 {
					if ended < many {
						t.Fatalf("%d of %d have ended, and the next event is in %v", ended, many, in)
					}
					break
				}
				b.event(func() { b.Advance(b.clock) })
				if events++; events == 3 {
					b.complete(holder) // there is room, while most still wait
					holder = nil
				}
				n := 0
				for _, w := range b.Verdicts() {
					if w.Outcome() == OutcomeTTLExpired {
						n++
					}
				}
				if n > 2*mostExpired {
					t.Fatalf("one event has ended %d", n)
				}
				ended = 0
				for _, w := range due {
					if w.stage == StageEnded {
						ended++
					} else if w.stage != StageWaiting {
						t.Fatalf("one whose time is over is in stage %d", w.stage)
					}
				}
			}
			if ended != many || events > many/mostExpired+2 {
				t.Errorf("%d of %d have ended, in %d events", ended, many, events)
			}
			for _, w := range due {
				if w.Outcome() != OutcomeTTLExpired || w.Waited() != ttl {
					t.Fatalf("one has ended as %v after %v, want after %v", w.Outcome(), w.Waited(), ttl)
				}
			}
			if granted := alive[0].stage == StageGranted || alive[1].stage == StageGranted; !granted {
				t.Error("nobody went into the free place")
			}
		})
	}
}

// An expired waiter preempts no request, even if others must end first. It is also not granted in its turn when the
// queue is switched off.
func TestOverdueWaitersTakeNothing(t *testing.T) {
	for _, off := range []bool{false, true} {
		b := newBench(t, []int{1}, func(c *Config) { c.Queue.QueueTTL = 10 * time.Second })
		b.mostExpired = 1
		victim := b.arrives(2, "v", "", StageSent)
		var due []*Waiter
		for range 4 {
			due = append(due, b.arrives(2, "w", "", StageWaiting))
		}
		b.clock = b.clock.Add(10 * time.Second)
		if off {
			cfg := b.config
			cfg.Enabled = false
			b.configures(cfg)
		} else {
			b.complete(victim)
		}
		for range 4 {
			if in, asks := b.Next(b.clock); asks && in <= 0 {
				b.event(func() { b.Advance(b.clock) })
			}
		}
		for _, w := range due {
			if w.stage != StageEnded || w.Outcome() != OutcomeTTLExpired {
				t.Errorf("off %t: stage %d, %v", off, w.stage, w.Outcome())
			}
		}
	}
}

// While waiters are overdue, no request preempts: not even the overdue one at the head, whose tier may preempt from now
// on.
func TestOverdueWaitersPreemptNobody(t *testing.T) {
	b := newBench(t, []int{1}, func(c *Config) {
		c.Queue.QueueTTL = 10 * time.Second
		c.Tiers = []TierConfig{{}, {CanPreempt: true}, {}}
	})
	b.mostExpired = 1
	victim := b.arrives(2, "v", "", StageSent)
	var due []*Waiter
	for range 4 {
		due = append(due, b.arrives(0, "w", "", StageWaiting))
	}
	b.clock = b.clock.Add(5 * time.Second)
	alive := b.arrives(0, "w", "", StageWaiting)
	b.clock = b.clock.Add(5 * time.Second)
	cfg := b.config
	cfg.Tiers = []TierConfig{{CanPreempt: true}, {CanPreempt: true}, {}}
	b.configures(cfg)
	b.want(victim, StageSent)
	for in, asks := b.Next(b.clock); asks && in <= 0; in, asks = b.Next(b.clock) {
		b.event(func() { b.Advance(b.clock) })
	}
	for _, w := range due {
		if w.stage != StageEnded || w.Outcome() != OutcomeTTLExpired {
			t.Errorf("stage %d, %v, want expired", w.stage, w.Outcome())
		}
	}
	b.want(alive, StageGranted) // by preemption, once nobody is overdue
	if victim.Outcome() != OutcomePreempted {
		t.Errorf("the victim ends as %v", victim.Outcome())
	}
}

// An overdue waiter that the event has not ended yet lends its age to no other.
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
