package flowcontrol

import (
	"slices"
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/stock"
)

// Enabled false releases everybody, in the queue's order: higher tiers first, then as the flows share. Bounds, caps,
// reservations, lanes without room and the spacing keep nobody; all of it is counted and settled like any other lease.
func TestDisablingReleasesEverybody(t *testing.T) {
	change := func(c *Config) {
		smg(1)(c)
		c.Tiers[system].ReservedFloor = 1
		c.MaxInFlightPerFlow, c.ReleaseSpacing = 1, time.Second
	}
	fleet := ready(2)
	fleet.upper = 1
	inBubble(t, fleet, change, func(b *bench) {
		holder := b.arrives(b.t.Context(), &Request{Flow: "a", Tier: bulk, Placement: subset("1")})
		if err := holder.lease.OnFirstByte(); err != nil {
			b.t.Fatal(err)
		}
		const cost = 10
		asks := []*Request{
			{Flow: "a", Tier: bulk, Cost: cost, Placement: subset("1")}, // no room in its lane, and at its cap
			{Flow: "a", Tier: bulk, Cost: cost, Placement: pool},
			{Flow: "b", Tier: bulk, Cost: 1, Placement: subset("0,1")},
			{Flow: "c", Tier: standard, Cost: cost, Placement: subset("1,1")},
		}
		var waiters []*arrival
		for _, r := range asks {
			a := b.arrives(b.t.Context(), r)
			b.want(a, "waits")
			waiters = append(waiters, a)
		}
		b.backends.ready[0] = false
		none := b.arrives(b.t.Context(), &Request{Flow: "n", Tier: bulk, Placement: subset("0")})
		b.want(none, "waits")
		start := time.Now()
		b.backends.noting = true
		b.mustReload(func(c *Config) { c.Enabled = false })
		b.backends.noting = false
		order := b.backends.placed
		for _, a := range waiters {
			b.want(a, "dispatched")
			if !a.at.Equal(start) {
				b.t.Errorf("released after %v", a.at.Sub(start))
			}
		}
		b.want(none, "no-endpoint")
		if want := []string{"1,1", "0,1", "1", ""}; !slices.Equal(order, want) {
			b.t.Errorf("released in the order %v, want %v", order, want)
		}
		if s := b.State(); s.Stock != 5 || s.Queued != 0 || s.Successes != 4 || s.TimerStands || s.Tokens != stock.Tokens(1+3*cost+1) {
			b.t.Errorf("%+v", s)
		}
		late := b.arrives(b.t.Context(), of(bulk))
		b.want(late, "dispatched")
		b.mustReload(func(c *Config) { c.Enabled = true })
		again := b.arrives(b.t.Context(), of(bulk))
		b.want(again, "waits")
		for _, a := range append(waiters, holder, late) {
			complete(a.lease)
		}
		b.backends.ready[0] = true
		b.update()
		b.want(again, "dispatched")
		complete(again.lease)
	})
}
