package flowcontrol

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/stock"
)

// reload changes the running configuration.
func (b *bench) reload(change func(*Config)) error {
	cfg := b.config
	cfg.Queue.Tiers = append([]fairqueue.TierConfig(nil), cfg.Queue.Tiers...)
	cfg.Tiers = append([]TierConfig(nil), cfg.Tiers...)
	change(&cfg)
	err := b.Reconfigure(cfg, nil)
	synctest.Wait()
	return err
}

func (b *bench) mustReload(change func(*Config)) {
	b.t.Helper()
	if err := b.reload(change); err != nil {
		b.t.Fatal(err)
	}
}

// A smaller queue evicts nobody, a wider band releases at once, deadlines stay.
func TestReloadKeepsWaitersAndAppliesBounds(t *testing.T) {
	inBubble(t, ready(1), nil, func(b *bench) {
		leases := b.holds(3)
		start := time.Now()
		var waiters []*arrival
		for range 4 {
			waiters = append(waiters, b.arrives(b.t.Context(), one("a")))
		}
		b.mustReload(func(c *Config) {
			c.Queue.TotalCapacity, c.Queue.FlowCapacity, c.Queue.QueueTTL = 2, 2, time.Second
		})
		b.want(waiters[3], "waits")
		b.want(b.arrives(b.t.Context(), one("a")), "flow-full")
		b.mustReload(func(c *Config) {
			c.Stock.WatermarkPerBackend, c.Stock.LowerBoundPerBackend, c.Stock.UpperBoundPerBackend = 5, 5, 5
		})
		b.want(waiters[0], "dispatched")
		b.want(waiters[1], "dispatched")
		b.want(waiters[2], "waits")
		time.Sleep(30 * time.Second)
		b.want(waiters[2], "ttl-expired")
		if wait := waiters[2].at.Sub(start); wait != 30*time.Second {
			b.t.Errorf("the deadline moved: %v", wait)
		}
		complete(waiters[0].lease)
		complete(waiters[1].lease)
		for _, l := range leases {
			complete(l)
		}
	})
}

func TestInvalidReloadChangesNothing(t *testing.T) {
	inBubble(t, ready(1), smg(1), func(b *bench) {
		holder := b.arrives(b.t.Context(), of(bulk))
		waits := b.arrives(b.t.Context(), of(bulk))
		before := fmt.Sprintf("%+v", b.State())
		err := b.reload(func(c *Config) {
			c.Queue.TotalCapacity, c.Queue.FlowCapacity = 0, -1
			c.NumPoppers, c.ReleaseSpacing = 0, 1001*time.Millisecond
		})
		for _, field := range []string{"TotalCapacity: 0", "FlowCapacity: -1", "NumPoppers: 0", "ReleaseSpacing: 1.001s"} {
			if err == nil || !strings.Contains(err.Error(), field) {
				b.t.Errorf("%v does not name %s", err, field)
			}
		}
		for _, change := range []func(*Config){
			func(c *Config) { c.Queue.TierMode = fairqueue.Weighted },
			func(c *Config) { c.Queue.CapacityMode = fairqueue.Reserved },
			func(c *Config) { c.Queue.Discipline = fairqueue.OneFlow },
		} {
			if err := b.reload(change); err == nil || !strings.Contains(err.Error(), "cannot change at run time") {
				b.t.Errorf("%v", err)
			}
		}
		if after := fmt.Sprintf("%+v", b.State()); after != before {
			b.t.Errorf("changed:\n%s\n%s", before, after)
		}
		complete(holder.lease)
		b.want(waits, "dispatched")
		complete(waits.lease)
	})
}

// The number of poppers follows; Run ends them all.
func TestPoppersFollowTheConfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := New(DefaultConfig(), ready(1), logr.Discard())
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { _ = c.Run(ctx); close(done) }()
		for _, n := range []int{1, 100, 3} {
			cfg := DefaultConfig()
			cfg.NumPoppers = n
			if err := c.Reconfigure(cfg, func() {}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		stop()
		<-done
	})
}

// With an unbounded stock nobody waits, whatever is reserved and however low the tier; a tier that may preempt has no
// reason to. Retry-After is told as long as there is anything to say.
func TestUnboundedStock(t *testing.T) {
	change := func(c *Config) {
		smg(0)(c)
		c.Stock.Unbounded = true
		c.Tiers[system].ReservedFloor, c.Tiers[interactive].ReservedPerSlot = 3, stock.One/2
	}
	inBubble(t, ready(2), change, func(b *bench) {
		var held []*arrival
		for i := range 500 {
			a := b.arrives(b.t.Context(), &Request{Flow: "f", Tier: i % 4, Cost: 1, Placement: pool})
			b.want(a, "dispatched")
			held = append(held, a)
		}
		s := b.State()
		if s.Queued != 0 || s.Stock != 500 || !s.Unbounded || !math.IsInf(s.UpperBound, 1) || s.Attempts != 0 {
			t.Errorf("%+v", s)
		}
		// Without a backend requests wait, and all go with the first one.
		b.backends.ready[0], b.backends.ready[1] = false, false
		b.update()
		for range 20 {
			a := b.arrives(b.t.Context(), one("late"))
			b.want(a, "waits")
			held = append(held, a)
		}
		b.backends.ready[1] = true
		b.update()
		for _, a := range held {
			b.want(a, "dispatched")
			complete(a.lease)
		}
	})
}
