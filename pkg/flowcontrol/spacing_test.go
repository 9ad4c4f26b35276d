package flowcontrol

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// spaced has four slots and 10 ms between two releases.
func spaced(c *Config) {
	c.Stock.LowerBoundPerBackend, c.Stock.WatermarkPerBackend, c.Stock.UpperBoundPerBackend = 4, 4, 4
	c.ReleaseSpacing = 10 * time.Millisecond
}

// Slots that become free together are granted one by one; an arrival without waiting requests is not delayed.
func TestReleasesAreSpaced(t *testing.T) {
	inBubble(t, ready(1), spaced, func(b *bench) {
		leases := b.holds(4) // all at the same moment
		start := time.Now()
		var waiters []*arrival
		for range 4 {
			waiters = append(waiters, b.arrives(b.t.Context(), one("a")))
		}
		for _, l := range leases {
			complete(l)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		for i, a := range waiters {
			b.want(a, "dispatched")
			if got, want := a.at.Sub(start), time.Duration(i)*10*time.Millisecond; got != want {
				t.Errorf("release %d after %v, want %v", i, got, want)
			}
		}
		for _, a := range waiters {
			complete(a.lease)
		}
	})
}

// A withdrawn release spaces no other: the next request goes to the free slot at once.
func TestSpacingOnlyAfterAReleaseThatCameToSomething(t *testing.T) {
	inBubble(t, ready(1), spaced, func(b *bench) {
		leases := b.holds(4)
		ctx, leave := context.WithCancel(b.t.Context())
		gone, next := b.arrives(ctx, one("a")), b.arrives(b.t.Context(), one("a"))
		start := time.Now()
		b.mu.Lock() // it leaves in the moment in which it is granted
		b.machine.Complete(start, leases[0].Granted(), fairqueue.UnknownCost)
		leave()
		b.end(start, nil)
		b.want(gone, "client-cancelled")
		b.want(next, "dispatched")
		if got := next.at.Sub(start); got != 0 {
			t.Errorf("the next one was released after %v", got)
		}
		for _, l := range append(leases[1:], next.lease) {
			complete(l)
		}
	})
}

// The reported wait is exact: until the grant, or until the rejection; bypasses did not wait.
func TestWaitsAreToldExactly(t *testing.T) {
	change := func(c *Config) {
		c.Stock.LowerBoundPerBackend, c.Stock.WatermarkPerBackend, c.Stock.UpperBoundPerBackend = 1, 1, 1
		c.Queue.QueueTTL = 2 * time.Second
	}
	inBubble(t, ready(1), change, func(b *bench) {
		holder := b.holds(1)[0]
		granted := b.arrives(b.t.Context(), one("a"))
		time.Sleep(time.Second)
		expires := b.arrives(b.t.Context(), one("b"))
		complete(holder)
		b.want(granted, "dispatched")
		if wait, queued := granted.lease.Queued(); wait != time.Second || !queued {
			t.Errorf("queued %t for %v, want 1s", queued, wait)
		}
		time.Sleep(10 * time.Second)
		b.want(expires, "ttl-expired")
		complete(granted.lease)
		complete(b.holds(1)[0])
		for name, want := range map[string]string{
			"weir_queue_latency_seconds": "map[false:2/1 true:1/1]", "weir_tier_queue_wait_seconds": "map[default:3/2]",
		} {
			if got := fmt.Sprint(b.observed(name)); got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
	})
}

// observed returns a histogram's sum and count by its last label.
func (b *bench) observed(name string) map[string]string {
	b.t.Helper()
	got := map[string]string{}
	for _, m := range b.scrape(name) {
		if h := m.GetHistogram(); h.GetSampleCount() > 0 {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			got[labels["success"]+labels["tier"]] = fmt.Sprintf("%v/%d", h.GetSampleSum(), h.GetSampleCount())
		}
	}
	return got
}
