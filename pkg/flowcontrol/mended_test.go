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
		if got := b.pace.interval; got < 5*time.Millisecond || got > 50*time.Millisecond {
			b.t.Errorf("drain interval %v after an idle hour", got)
		}
	})
}

// A panic once the lease is taken leaves no lease, no reservation, no waiter and no account behind: of an arrival, of
// one that is passed on, of a preemptor, and of a waiter, for whom it is the second that counts.
func TestPanicAfterTheLeaseLeavesNothing(t *testing.T) {
	inBubble(t, ready(1), smg(1), func(b *bench) {
		taken := 0
		fault := func(where string) error {
			if where == "lease" {
				if taken++; b.ledger.Stock() == 0 || b.backends.total() == 0 {
					b.t.Error("there is no lease yet")
				}
				panic("after the lease")
			}
			return nil
		}
		nothing := func(what string) {
			b.t.Helper()
			if s := b.State(); s.Stock != 0 || s.Queued != 0 || s.LiveFlows != 0 || b.backends.total() != 0 || taken == 0 {
				b.t.Errorf("%s: %+v, %d reserved, %d taken", what, s, b.backends.total(), taken)
			}
			b.fault, taken = nil, 0
		}
		b.fault = fault
		b.want(b.arrives(b.t.Context(), of(bulk)), "internal")
		nothing("an arrival")

		b.fault = fault
		if _, err := b.PassOn(of(bulk)); OutcomeOf(err) != OutcomeInternal {
			b.t.Errorf("%v", err)
		}
		nothing("one that is passed on")

		holder := b.arrives(b.t.Context(), of(bulk))
		b.fault = fault
		b.want(b.arrives(b.t.Context(), of(system)), "internal")
		complete(holder.lease)
		nothing("a preemptor")

		holder = b.arrives(b.t.Context(), of(bulk))
		waiter := b.arrives(b.t.Context(), of(bulk))
		b.fault = fault
		complete(holder.lease)
		b.want(waiter, "internal")
		if taken != 2 {
			b.t.Errorf("ended by panic %d", taken)
		}
		nothing("a waiter")
	})
}

// Caps count by flow, and the discipline none knows none: the combination is refused, not half kept.
func TestCapsNeedFlows(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Queue.Discipline = fairqueue.OneFlow
	cfg.MaxInFlightPerFlow = 2
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "maxInFlightPerFlow: 2") {
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
		for pair, n := range b.preemptions() {
			b.t.Errorf("%v: %d", pair, n)
		}
	})
}
