package flowcontrol

import (
	"context"
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
)

// Faults of SMG's priority scheduler, as far as the controller decides them; docs/smg.md lists all of them. The
// number is the row there. More of them are in preempt_test.go, and on the wire in test/integration.

// smg 9.3: an old bulk backlog takes every slot ahead of system, since a promotion costs nothing. With a budget of a
// tenth it takes a tenth; the profile's 1 is SMG's behaviour, for comparison.
func TestDefectOldBacklogTakesEverySlot(t *testing.T) {
	for budget, want := range map[int64]int{100_000: 2, 1_000_000: 10} {
		change := func(c *Config) { smg(1)(c); c.Queue.PromotionBudget = budget }
		inBubble(t, ready(1), change, func(b *bench) {
			holder := b.arrives(b.t.Context(), of(system))
			var backlog, urgent []*arrival
			for range 20 {
				backlog = append(backlog, b.arrives(b.t.Context(), of(bulk)))
			}
			time.Sleep(2 * time.Minute) // bulk's threshold
			for range 20 {
				urgent = append(urgent, b.arrives(b.t.Context(), of(system)))
			}
			old := 0
			for next := holder; next != nil; {
				complete(next.lease)
				next = nil
				for _, a := range append(backlog, urgent...) {
					if b.want(a, a.outcome()); a.outcome() == "dispatched" && a.lease.Stage() != dispatch.StageEnded {
						next = a
					}
				}
				if served(backlog)+served(urgent) == 10 {
					old = served(backlog)
				}
			}
			if old != want {
				b.t.Errorf("budget %d: %d of the first 10 were old bulk requests, want %d", budget, old, want)
			}
		})
	}
}

// served counts those that were dispatched.
func served(all []*arrival) (n int) {
	for _, a := range all {
		if a.outcome() == "dispatched" {
			n++
		}
	}
	return n
}

// smg 9.6: a cancelled waiter keeps its place in a full queue, and the next one gets a false 429.
func TestDefectCancelledWaiterKeepsItsPlace(t *testing.T) {
	inBubble(t, ready(1), func(c *Config) { smg(1)(c); c.Queue.Tiers[bulk].QueueSize = 2 }, func(b *bench) {
		holder := b.arrives(b.t.Context(), of(system))
		gone, leave := context.WithCancel(b.t.Context())
		leaver, stayer := b.arrives(gone, of(bulk)), b.arrives(b.t.Context(), of(bulk))
		b.want(b.arrives(b.t.Context(), of(bulk)), "queue-full")
		leave()
		b.want(leaver, "client-cancelled")
		next := b.arrives(b.t.Context(), of(bulk))
		b.want(next, "waits")
		for _, a := range []*arrival{holder, stayer, next} {
			b.want(a, "dispatched")
			complete(a.lease)
		}
	})
}

// smg 9.7: with all backends unready the capacity rises to a configured fallback. Here it is 0: nobody goes, neither
// by promotion nor by preemption, and the leases of what is gone stay until they end.
func TestDefectUnreadyBackendsRaiseTheCapacity(t *testing.T) {
	inBubble(t, ready(2), smg(2), func(b *bench) {
		var held []*arrival
		for range 4 {
			held = append(held, b.arrives(b.t.Context(), of(bulk)))
		}
		b.backends.ready[0], b.backends.ready[1] = false, false
		b.update()
		if s := b.State(); s.Capacity != 0 || s.Stock != 4 {
			b.t.Errorf("%+v: want capacity 0, stock 4", s)
		}
		high, low := b.arrives(b.t.Context(), of(system)), b.arrives(b.t.Context(), of(bulk))
		time.Sleep(20 * time.Second) // beyond system's and interactive's thresholds
		for _, a := range held {
			b.wantSafe(a)
			complete(a.lease)
		}
		b.want(high, "waits")
		b.want(low, "waits")
		b.backends.ready[0] = true
		b.update()
		b.want(high, "dispatched")
		b.want(low, "dispatched")
		complete(high.lease)
		complete(low.lease)
	})
}
