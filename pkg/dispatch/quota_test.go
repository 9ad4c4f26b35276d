package dispatch

import (
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/quota"
)

// metersAda gives the tenant ada 100 tokens a minute.
func metersAda(c *Config) {
	c.EnqueueAll = true
	c.Quotas.Tenants = map[string]quota.Limit{"ada": {Tokens: 100, Window: time.Minute}}
}

// uses lets a request of a tenant come, whose flow has its name, with so many tokens.
func (b *bench) uses(tier int, tenant string, tokens int64, want Stage) *Waiter {
	b.t.Helper()
	w := new(Waiter)
	b.event(func() {
		b.Arrive(b.clock, w, Arrival{Flow: tenant, Tier: tier, Tenant: tenant, Uses: tokens, Placement: reach("")})
	})
	b.want(w, want)
	return w
}

// left checks what is left of ada's quota, by an arrival that asks for too much.
func (b *bench) left(want int64) {
	b.t.Helper()
	w := b.uses(0, "ada", 101, StageEnded)
	if s, ok := w.Quota(); !ok || s.Remaining != want || w.Outcome() != OutcomeQuotaExceeded {
		b.t.Fatalf("%d tokens are left (%v), want %d", s.Remaining, w.Outcome(), want)
	}
}

// A tenant without room in its quota ends at its arrival, told when there will be room. It takes no place in the queue, and
// nobody else notices.
func TestQuota(t *testing.T) {
	b := newBench(t, []int{1}, metersAda)
	first := b.uses(0, "ada", 60, StageSent)
	waits := b.uses(0, "ada", 40, StageWaiting)
	b.clock = b.clock.Add(15 * time.Second)
	w := b.uses(0, "ada", 1, StageEnded)
	if w.Outcome() != OutcomeQuotaExceeded || w.RetryAfter() != 45*time.Second || w.WasQueued() || b.State().Queued != 1 {
		t.Errorf("%v, come back in %v, %d wait", w.Outcome(), w.RetryAfter(), b.State().Queued)
	}
	if s, ok := w.Quota(); !ok || s != (QuotaStanding{Limit: 100, Remaining: 0, Reset: 45 * time.Second}) {
		t.Errorf("its standing: %+v, %v", s, ok)
	}
	bob := b.uses(0, "bob", 1_000_000, StageWaiting) // has no quota
	if _, ok := bob.Quota(); ok {
		t.Error("bob is told of a quota")
	}
	b.complete(first)
	b.want(waits, StageGranted)
	b.complete(waits)
	b.complete(bob)
	b.clock = b.clock.Add(45 * time.Second)
	b.complete(b.uses(0, "ada", 100, StageSent))
	b.nothing("at the end")
}

// A full queue does not make room for a request that its quota refuses: nobody is displaced.
func TestWhoIsOverItsQuotaDisplacesNobody(t *testing.T) {
	b := newBench(t, []int{1}, func(c *Config) {
		metersAda(c)
		c.Queue.TotalCapacity, c.Queue.FlowCapacity = 5, 5
	})
	b.uses(0, "bob", 1, StageSent)
	for range 5 {
		b.uses(0, "bob", 1, StageWaiting)
	}
	tier := b.uses(0, "ada", 99, StageWaiting).Tier() // displaces one of bob's
	b.uses(0, "ada", 2, StageEnded)
	if n := b.counts.displaced[tier]; n != 1 {
		t.Errorf("%d displaced", n)
	}
}

// The tokens are taken back of each request that is not served: rejected, displaced, expired, cancelled, preempted, drained,
// or failed.
func TestQuotaOfRequestsThatAreNotServed(t *testing.T) {
	for name, ends := range map[string]func(b *bench, holder *Waiter) *Waiter{
		"expired": func(b *bench, _ *Waiter) *Waiter {
			w := b.uses(0, "ada", 50, StageWaiting)
			b.clock = b.clock.Add(31 * time.Second)
			b.event(func() { b.Advance(b.clock) })
			return w
		},
		"cancelled": func(b *bench, _ *Waiter) *Waiter {
			w := b.uses(0, "ada", 50, StageWaiting)
			b.event(func() { b.Cancel(b.clock, w, OutcomeClientCancelled) })
			return w
		},
		"drained": func(b *bench, _ *Waiter) *Waiter {
			w := b.uses(0, "ada", 50, StageWaiting)
			b.event(func() { b.Drain(b.clock) })
			b.draining = false
			return w
		},
		"preempted": func(b *bench, holder *Waiter) *Waiter {
			b.complete(holder)
			w := b.uses(2, "ada", 50, StageSent)
			b.arrives(0, "bob", "", StageSent)
			return w
		},
		"full": func(b *bench, _ *Waiter) *Waiter {
			cfg := b.Config()
			cfg.Queue.TotalCapacity, cfg.Queue.FlowCapacity = 1, 1
			b.event(func() { _ = b.Configure(b.clock, cfg) })
			b.arrives(0, "bob", "", StageWaiting)
			w := b.uses(0, "ada", 50, StageEnded)
			cfg.Queue.TotalCapacity = 2
			b.event(func() { _ = b.Configure(b.clock, cfg) })
			return w
		},
		"failed": func(b *bench, holder *Waiter) *Waiter {
			b.complete(holder)
			b.fleet.sick = true
			defer func() { b.fleet.sick = false }()
			return b.uses(0, "ada", 50, StageEnded)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, []int{1}, func(c *Config) { metersAda(c); c.Tiers[0].CanPreempt = true })
			holder := b.arrives(0, "bob", "", StageSent)
			w := ends(b, holder)
			b.want(w, StageEnded)
			if w.Outcome() == OutcomeDispatched || w.Outcome() == OutcomeQuotaExceeded {
				t.Fatalf("it ended as %v", w.Outcome())
			}
			w = new(Waiter)
			b.event(func() { b.Arrive(b.clock, w, Arrival{Flow: "ada", Tenant: "ada", Uses: 1, Placement: reach("")}) })
			b.left(99)
		})
	}
}

// At its end a request counts with what it has used. If that is not known, its estimate stays. Another end counts nothing.
func TestQuotaIsTruedUp(t *testing.T) {
	b := newBench(t, []int{9}, func(c *Config) { metersAda(c); perBackend(c, 9, 9) })
	b.fleet.scene = &scene{lower: 9, upper: 9}
	end := func(w *Waiter, tokens ...int64) {
		for _, n := range tokens {
			b.event(func() { b.Used(b.clock, (*Lease)(w), n) })
		}
		b.complete(w)
		b.event(func() { b.Used(b.clock, (*Lease)(w), 77) })
	}
	end(b.uses(0, "ada", 30, StageSent), 10)
	b.left(90)
	end(b.uses(0, "ada", 30, StageSent), 40, 5) // the second has no effect
	b.left(50)
	end(b.uses(0, "ada", 30, StageSent))
	b.left(20)
	end(b.uses(0, "ada", 20, StageSent), 0) // not served
	b.left(20)
}

// A quota counts without queueing too, and nothing that is passed on.
func TestQuotaWithoutQueueing(t *testing.T) {
	b := newBench(t, []int{1}, func(c *Config) { metersAda(c); c.Enabled = false })
	b.uses(0, "ada", 60, StageSent)
	b.uses(0, "ada", 60, StageEnded)
	w := new(Waiter)
	b.event(func() { b.PassOn(b.clock, w, Arrival{Flow: "ada", Tenant: "ada", Uses: 60, Placement: reach("")}) })
	b.want(w, StageSent)
	b.left(40)
}

// A request without a number of tokens counts with its cost.
func TestQuotaOfStatedCosts(t *testing.T) {
	b := newBench(t, []int{9}, metersAda)
	w := new(Waiter)
	b.event(func() { b.Arrive(b.clock, w, Arrival{Flow: "ada", Tenant: "ada", Cost: 70, Placement: reach("")}) })
	b.left(30)
}

// A reload keeps what was used, also when the quota changes, and without a quota nothing is refused.
func TestQuotaOverAReload(t *testing.T) {
	b := newBench(t, []int{9}, func(c *Config) { metersAda(c); perBackend(c, 9, 9) })
	b.fleet.scene = &scene{lower: 9, upper: 9}
	b.uses(0, "ada", 80, StageSent)
	set := func(tenants map[string]quota.Limit) {
		cfg := b.Config()
		cfg.Quotas.Tenants = tenants
		if err := b.Configure(b.clock, cfg); err != nil {
			t.Fatal(err)
		}
	}
	set(map[string]quota.Limit{"ada": {Tokens: 90, Window: time.Minute}})
	b.uses(0, "ada", 11, StageEnded)
	set(nil)
	b.uses(0, "ada", 1000, StageSent)
	set(map[string]quota.Limit{"ada": {Tokens: 90, Window: time.Minute}})
	b.uses(0, "ada", 10, StageSent)
	b.uses(0, "ada", 1, StageEnded)
}

// The problems of a quota are those of the configuration.
func TestQuotaConfig(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Quotas = quota.Config{Tenants: map[string]quota.Limit{
		"a": {Tokens: -1, Window: time.Millisecond}, "b": {Tokens: quota.MaxTokens, Window: quota.MaxWindow}, "c": {},
	}}
	const want = "Quotas.MostAccounts: 0: must be at least 1\nQuotas.Tenants[\"a\"].Tokens: -1: must be from 0 to 1000000000000\n" +
		"Quotas.Tenants[\"a\"].Window: 1ms: must be from 1s to 744h"
	if err := cfg.Validate(); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
