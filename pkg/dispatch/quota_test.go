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

// uses makes a request with these tokens arrive, of a tenant and its flow of the same name.
func (b *bench) uses(tier int, tenant string, tokens int64, want Stage) *Waiter {
	b.t.Helper()
	w := new(Waiter)
	b.event(func() {
		b.Arrive(b.clock, w, Arrival{Flow: tenant, Tier: tier, Tenant: tenant, Uses: tokens, Placement: reach("")})
	})
	b.want(w, want)
	return w
}

// left checks the rest of ada's quota, by an arrival that asks for too much.
func (b *bench) left(want int64) {
	b.t.Helper()
	w := b.uses(0, "ada", 101, StageEnded)
	if s, ok := w.Quota(); !ok || s.Remaining != want || w.Outcome() != OutcomeQuotaExceeded {
		b.t.Fatalf("%d tokens are left (%v), want %d", s.Remaining, w.Outcome(), want)
	}
}

// The standing of a tenant is what is left of its quota, and until when; without a quota there is none.
func TestQuota(t *testing.T) {
	b := newBench(t, []int{1}, metersAda)
	b.uses(0, "ada", 60, StageSent)
	b.uses(0, "ada", 40, StageWaiting)
	b.clock = b.clock.Add(15 * time.Second)
	w := b.uses(0, "ada", 1, StageEnded)
	if s, ok := w.Quota(); !ok || s != (QuotaStanding{Limit: 100, Remaining: 0, Reset: 45 * time.Second}) || w.WasQueued() {
		t.Errorf("its standing: %+v, %v", s, ok)
	}
	if _, ok := b.uses(0, "bob", 1_000_000, StageWaiting).Quota(); ok {
		t.Error("bob is told of a quota")
	}
}

// The tokens are returned for a request whose decision panics, and for a drained one. (testdata/quota-refunds.txt has
// the other ends.)
func TestQuotaOfRequestsThatAreNotServed(t *testing.T) {
	b := newBench(t, []int{1}, metersAda)
	b.fleet.sick = true
	b.uses(0, "ada", 50, StageEnded)
	b.fleet.sick = false
	b.uses(0, "ada", 1, StageSent)
	b.left(99)
	drained := b.uses(0, "ada", 50, StageWaiting)
	b.event(func() { b.Drain(b.clock) })
	b.want(drained, StageEnded)
	if s, _ := drained.Quota(); s.Remaining != 99 {
		t.Errorf("%d tokens are left when a request of 50 is drained", s.Remaining)
	}
}

// At its end a request counts its actual use. If that is unknown, its estimate stays. A second end has no effect.
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
