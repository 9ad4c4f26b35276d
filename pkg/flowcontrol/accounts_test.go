package flowcontrol

import (
	"maps"
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/stock"
)

// Ten slots, of which 2 are reserved for system and 2 (0.15 of ten, rounded up) for interactive. System holds 3, interactive
// 1, default 3 and bulk 2; three more of bulk wait, in a queue of 4, since the last slot is interactive's.
func TestAccountsOfTiers(t *testing.T) {
	change := func(c *Config) {
		smg(10)(c)
		c.Tiers = []dispatch.TierConfig{{ReservedFloor: 2}, {ReservedPerSlot: 15 * stock.One / 100}, {}, {}}
		c.Queue.Tiers[bulk].QueueSize = 4
	}
	inBubble(t, ready(1), change, func(b *bench) {
		var held []*arrival
		for _, tier := range []int{system, system, system, interactive, standard, standard, standard, bulk, bulk} {
			a := b.arrives(b.t.Context(), of(tier))
			b.want(a, "dispatched")
			held = append(held, a)
		}
		for range 3 {
			b.want(b.arrives(b.t.Context(), of(bulk)), "waits")
		}
		for name, want := range map[string]map[string]float64{
			"weir_tier_reserved":    {"system": 2, "interactive": 2, "default": 0, "bulk": 0},
			"weir_tier_queue_limit": {"system": 64, "interactive": 256, "default": 512, "bulk": 4},
			// (3 − 2)/10; 1 is within its reservation; 3/(10 − 4); the larger of 3 of 4 places and 2/(10 − 4)
			"weir_tier_pressure": {"system": 0.1, "interactive": 0, "default": 0.5, "bulk": 0.75},
		} {
			if got := b.scraped(name, "tier"); !maps.Equal(got, want) {
				b.t.Errorf("%s is %v, want %v", name, got, want)
			}
		}
		if got := b.shown("weir_stock_utilisation"); got != 0.9 {
			b.t.Errorf("the stock's utilisation is %v, want 9 of 10", got)
		}
		b.SetBackends(nil, nil, nil)
		if got := b.shown("weir_stock_utilisation"); got != 9 {
			b.t.Errorf("without a backend the stock's utilisation is %v, want 9 of at least 1", got)
		}
		for _, a := range held {
			complete(a.lease)
		}
		if got := b.shown("weir_stock_utilisation"); got != 0 {
			b.t.Errorf("the utilisation of no stock is %v", got)
		}
	})
}

// shown returns a scrape's value of a metric without labels.
func (b *bench) shown(name string) float64 {
	b.t.Helper()
	all := b.scrape(name)
	if len(all) != 1 {
		b.t.Fatalf("%s: %d series, want one", name, len(all))
	}
	return all[0].GetGauge().GetValue() + all[0].GetCounter().GetValue()
}

// A waiter that finds its endpoint full is a failed attempt; after a completion there it is tried again, and goes.
// Arrivals that go at once are not attempts.
func TestDequeueAttempts(t *testing.T) {
	pair := ready(2)
	pair.upper = 1
	inBubble(t, pair, smg(1), func(b *bench) {
		at := func(lane subset) *Request { return &Request{Flow: "f", Tier: bulk, Placement: lane} }
		holder := b.arrives(b.t.Context(), at("0"))
		b.want(holder, "dispatched")
		var second *arrival
		for _, step := range []struct {
			do                  func()
			attempts, successes float64
		}{
			{func() {}, 0, 0},
			{func() { second = b.arrives(b.t.Context(), at("0")); b.want(second, "waits") }, 1, 0},
			{func() { complete(holder.lease); holder = second }, 2, 1},
		} {
			step.do()
			attempts, successes := b.shown("weir_popper_dequeue_attempts_total"), b.shown("weir_popper_dequeue_successes_total")
			if attempts != step.attempts || successes != step.successes {
				b.t.Errorf("%v attempts and %v successes, want %v and %v", attempts, successes, step.attempts, step.successes)
			}
		}
		complete(holder.lease)
	})
}

// If many requests expire together, each has its answer at the instant of its TTL, in several events of the timer.
func TestManyExpireTogether(t *testing.T) {
	const many = 3000
	change := func(c *Config) {
		smg(1)(c)
		c.Queue.TotalCapacity, c.Queue.FlowCapacity, c.Queue.Tiers[bulk].QueueSize = 2*many, 2*many, 2*many
	}
	inBubble(t, ready(1), change, func(b *bench) {
		holder := b.arrives(b.t.Context(), of(bulk))
		begun := time.Now()
		all := make([]*arrival, many)
		for i := range all {
			all[i] = b.arrives(b.t.Context(), of(bulk))
		}
		time.Sleep(300*time.Second - time.Nanosecond)
		b.want(all[0], "waits")
		time.Sleep(time.Nanosecond)
		for _, a := range all {
			if b.want(a, "ttl-expired"); a.at.Sub(begun) != 300*time.Second {
				b.t.Fatalf("expired after %v", a.at.Sub(begun))
			}
		}
		complete(holder.lease)
	})
}
