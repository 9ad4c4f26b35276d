package flowcontrol

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A waiter whose placement panics whenever it is asked about ends as internal, and costs the others nothing: not even
// time. Whatever it is that has the placer asked.
func TestAPoisonedWaiterEndsAlone(t *testing.T) {
	ways := map[string]func(*bench, []*arrival){
		"a completion": func(_ *bench, held []*arrival) { complete(held[0].lease) },
		"the endpoints": func(b *bench, _ []*arrival) {
			b.backends.ready[2] = true
			b.update()
		},
		"a reload":     func(b *bench, _ []*arrival) { b.mustReload(func(c *Config) { c.Stock.SlotsPerBackend = 2 }) },
		"an emergency": func(b *bench, _ []*arrival) { b.mustReload(func(c *Config) { c.Enabled = false }) },
		"an arrival that is refused": func(b *bench, held []*arrival) {
			b.want(b.arrives(b.t.Context(), &Request{Flow: "poison", Tier: standard, Placement: subset(b.backends.poison)}), "internal")
			complete(held[0].lease)
		},
		"served elsewhere": func(_ *bench, held []*arrival) {
			held[0].lease.OnServed(1)
			complete(held[0].lease)
		},
	}
	for name, happens := range ways {
		t.Run(name, func(t *testing.T) {
			fleet := ready(3)
			fleet.ready[2] = false
			fleet.poison = "0,1,2"
			inBubble(t, fleet, smg(1), func(b *bench) {
				held := []*arrival{b.arrives(b.t.Context(), of(bulk)), b.arrives(b.t.Context(), of(bulk))}
				poison := b.arrives(b.t.Context(), &Request{Flow: "poison", Tier: standard, Placement: subset(fleet.poison)})
				other := b.arrives(b.t.Context(), of(bulk))
				b.want(poison, "waits")
				start := time.Now()
				fleet.sick = true
				happens(b, held)
				b.want(poison, "internal")
				b.want(other, "dispatched")
				if wait := time.Since(start); wait != 0 || !other.at.Equal(start) {
					b.t.Errorf("the other waited %v", other.at.Sub(start))
				}
				var r *Rejection
				if !errors.As(poison.err, &r) || r.RetryAfter < time.Second || r.RetryAfter > 2*time.Second {
					b.t.Errorf("%v: %+v", poison.err, r)
				}
				synctest.Wait()
				if n := b.State().Panics; n < 2 || n > 4 {
					b.t.Errorf("%d panics", n)
				}
				for _, a := range append(held, other) {
					complete(a.lease)
				}
				b.Drain()
				synctest.Wait()
			})
			if fleet.total() != 0 {
				t.Errorf("reserved %v", fleet.reserved)
			}
		})
	}
}

// Preemption asks in the preemptor's name: the victim is left alone, and the next one preempts it.
func TestAPoisonedPreemptorTakesNobody(t *testing.T) {
	for _, quiet := range []string{"CanTakeOver", ""} { // then it is PlaceAt that panics
		fleet := ready(2)
		fleet.poison, fleet.quiet, fleet.ready[1] = "0,1", quiet, false
		inBubble(t, fleet, smg(1), func(b *bench) {
			holder := b.arrives(b.t.Context(), of(standard))
			first := b.arrives(b.t.Context(), of(standard)) // so that the poison waits
			poison := b.arrives(b.t.Context(), &Request{Flow: "poison", Tier: interactive, Placement: subset("0,1")})
			b.want(poison, "dispatched")
			complete(poison.lease)
			b.want(first, "dispatched")
			fleet.sick = true
			b.want(b.arrives(b.t.Context(), &Request{Flow: "poison", Tier: interactive, Placement: subset("0,1")}), "internal")
			b.wantSafe(first)
			b.want(b.arrives(b.t.Context(), of(interactive)), "dispatched")
			b.wantPreempted(first)
			complete(holder.lease)
			complete(first.lease)
		})
	}
}

// Where everybody's placement panics the lock is not held for all of them: the rest is tried again, and ends as well.
func TestPanicsForEverybodyAreBounded(t *testing.T) {
	fleet := ready(1)
	inBubble(t, fleet, nil, func(b *bench) {
		leases := b.holds(3)
		var waiters []*arrival
		for range 3 * mostPanics {
			waiters = append(waiters, b.arrives(b.t.Context(), one("a")))
		}
		fleet.sick = true
		complete(leases[0])
		complete(leases[1]) // below the lower bound
		if n := b.State().Panics; n == 0 || n > mostPanics {
			b.t.Errorf("%d panics at once", n)
		}
		time.Sleep(time.Second)
		for _, w := range waiters {
			b.want(w, "internal")
		}
		complete(leases[2])
	})
}
