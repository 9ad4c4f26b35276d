package flowcontrol

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// The time in which nobody waited is no drain interval: a burst after an idle hour is told the rate at which the queue
// drains, not an hour a place.
func TestIdlenessIsNotDraining(t *testing.T) {
	inBubble(t, ready(1), func(c *Config) { c.Queue.TotalCapacity, c.Queue.FlowCapacity = 3, 3 }, func(b *bench) {
		cycle := func() { // three wait, and are released 10 ms apart
			leases := b.holds(3)
			var waiters []*arrival
			for range 3 {
				waiters = append(waiters, b.arrives(b.t.Context(), one("a")))
			}
			for _, l := range leases {
				time.Sleep(10 * time.Millisecond)
				complete(l)
			}
			for _, w := range waiters {
				complete(w.lease)
			}
		}
		cycle()
		time.Sleep(time.Hour)
		cycle()
		leases := b.holds(3)
		var waiters []*arrival
		for range 3 {
			waiters = append(waiters, b.arrives(b.t.Context(), one("a")))
		}
		reason, first := b.told(one("b"))
		_, second := b.told(one("c"))
		if got := second - first; reason != "queue-full" || got < 5*time.Millisecond || got > 50*time.Millisecond {
			b.t.Errorf("%s: places %v apart after an idle hour", reason, got)
		}
		for _, l := range leases {
			complete(l)
		}
		for _, w := range waiters {
			b.want(w, "dispatched")
			complete(w.lease)
		}
	})
}

// Caps count by flow, and the discipline none knows none: the combination is refused, not half kept.
func TestCapsNeedFlows(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Queue.Discipline = fairqueue.OneFlow
	cfg.MaxInFlightPerFlow = 2
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "MaxInFlightPerFlow: 2: must be 0 with Queue.Discipline none") {
		t.Errorf("%v", err)
	}
}

// A new tier that gets the identifier of one that is gone does not inherit its counters.
func TestCountersOfATierThatIsGone(t *testing.T) {
	inBubble(t, ready(1), smg(1), func(b *bench) {
		low := b.arrives(b.t.Context(), of(bulk))
		high := b.arrives(b.t.Context(), of(system))
		b.wantPreempted(low)
		complete(low.lease)
		complete(high.lease)
		drop := func(c *Config) { c.Queue.Tiers, c.Tiers = c.Queue.Tiers[:bulk], c.Tiers[:bulk] }
		b.mustReload(drop)
		b.mustReload(drop)
		b.mustReload(func(c *Config) {
			c.Queue.Tiers = append(c.Queue.Tiers, fairqueue.TierConfig{Name: "new", QueueSize: -1})
			c.Tiers = append(c.Tiers, TierConfig{})
		})
		for pair, n := range b.machine.Preemptions() {
			b.t.Errorf("%v: %d", pair, n)
		}
	})
}
