package flowcontrol

import (
	"testing"
	"testing/synctest"
	"time"
)

// spaced has four slots and 10 ms between two releases.
func spaced(c *Config) {
	c.Stock.LowerBoundPerBackend, c.Stock.WatermarkPerBackend, c.Stock.UpperBoundPerBackend = 4, 4, 4
	c.ReleaseSpacing = 10 * time.Millisecond
}

// Slots that come free together are given away one by one; an arrival that finds nobody waiting is not held up.
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

// Who waits only for the spacing still expires in time, and goes at once when a reload ends the spacing.
func TestSpacingHoldsNobodyForLong(t *testing.T) {
	change := func(c *Config) {
		spaced(c)
		c.ReleaseSpacing = time.Second
		c.Queue.QueueTTL = 300 * time.Millisecond
	}
	inBubble(t, ready(1), change, func(b *bench) {
		leases := b.holds(4)
		start := time.Now()
		first, second := b.arrives(b.t.Context(), one("a")), b.arrives(b.t.Context(), one("a"))
		complete(leases[0])
		complete(leases[1])
		b.want(first, "dispatched")
		b.want(second, "waits")
		time.Sleep(time.Second)
		b.want(second, "ttl-expired")
		if got := second.at.Sub(start); got != 300*time.Millisecond {
			t.Errorf("expired after %v", got)
		}
		third, fourth, fifth := b.arrives(b.t.Context(), one("a")), b.arrives(b.t.Context(), one("a")), b.arrives(b.t.Context(), one("a"))
		b.want(third, "dispatched") // nobody waited: it bypasses
		b.want(fourth, "waits")     // the slots are full
		complete(leases[2])
		complete(leases[3])
		b.want(fourth, "dispatched")
		b.want(fifth, "waits")
		b.mustReload(func(c *Config) { c.ReleaseSpacing = 0 })
		b.want(fifth, "dispatched")
		for _, a := range []*arrival{first, third, fourth, fifth} {
			complete(a.lease)
		}
	})
}
