package flowcontrol

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A waiter whose placement always panics ends as internal, and costs the others nothing, not even time, whatever causes
// the query.
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
			held[0].lease.OnServed(1, 200)
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

// Preemption queries the placer for the preemptor: the victim keeps its lease, and the next preemptor takes it.
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

// If all placements panic, the lock is not held for all of them: the rest are tried again, and end as well.
func TestPanicsForEverybodyAreBounded(t *testing.T) {
	fleet := ready(1)
	inBubble(t, fleet, nil, func(b *bench) {
		leases := b.holds(3)
		var waiters []*arrival
		for range 3 * 16 {
			waiters = append(waiters, b.arrives(b.t.Context(), one("a")))
		}
		fleet.sick = true
		complete(leases[0])
		complete(leases[1]) // below the lower bound
		if n := b.State().Panics; n == 0 || n > 16 {
			b.t.Errorf("%d panics at once", n)
		}
		time.Sleep(time.Second)
		for _, w := range waiters {
			b.want(w, "internal")
		}
		complete(leases[2])
	})
}

// A panic that belongs to no request ends none: neither the stream whose lease ends, nor a reload or a change of the
// endpoints. It is counted, and later work goes on.
func TestPanicsOfNobody(t *testing.T) {
	out := func() { panic("out of order") }
	for name, happens := range map[string]func(*bench, []*Lease){
		"a reservation is given back": func(b *bench, held []*Lease) {
			b.backends.releases = 1
			complete(held[0])
			complete(held[1])
		},
		"the endpoints change": func(b *bench, _ []*Lease) {
			b.backends.ready[1] = true
			b.SetBackends(numbered(2), nil, out)
		},
		"a reload": func(b *bench, _ []*Lease) {
			cfg := b.config
			perBackend(&cfg, 5, 5)
			if err := b.Reconfigure(cfg, out); err != nil {
				b.t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, ready(2), func(c *Config) { perBackend(c, 1, 1) }, func(b *bench) {
				b.backends.ready[1] = false
				b.SetBackends(numbered(1), nil, nil)
				held := b.holds(1)
				b.mustReload(func(c *Config) { perBackend(c, 2, 2) })
				held = append(held, b.holds(1)...)
				waiter := b.arrives(b.t.Context(), one("a"))
				b.want(waiter, "waits")
				happens(b, held)
				b.want(waiter, "dispatched")
				if n := b.State().Panics; n != 1 {
					b.t.Errorf("%d panics", n)
				}
				complete(waiter.lease)
				for _, l := range held {
					complete(l)
				}
			})
		})
	}
}

// A panic for one waiter at a change of the endpoints does not hide from others that their last endpoint is gone.
func TestPoisonHidesNoLossOfEndpoints(t *testing.T) {
	fleet := ready(2)
	fleet.poison = "0"
	inBubble(t, fleet, func(c *Config) { c.HoldWhenEmpty = false }, func(b *bench) {
		leases := b.holds(5)
		poison := b.arrives(b.t.Context(), &Request{Flow: "poison", Placement: subset("0")})
		other := b.arrives(b.t.Context(), &Request{Flow: "a", Placement: subset("1")})
		b.want(other, "waits")
		fleet.sick, fleet.ready[1] = true, false
		b.update()
		b.want(other, "no-endpoint")
		fleet.sick = false
		for _, l := range leases {
			complete(l)
		}
		b.want(poison, "dispatched")
		complete(poison.lease)
	})
}

// Two panics that are not consecutive do not end a request: between them its placement was queried, and it could not
// go.
func TestPanicsFarApartEndNobody(t *testing.T) {
	fleet := ready(2)
	fleet.upper = 1
	inBubble(t, fleet, func(c *Config) { perBackend(c, 2, 2) }, func(b *bench) {
		first := b.arrives(b.t.Context(), &Request{Flow: "a", Placement: subset("0")})
		waiter := b.arrives(b.t.Context(), &Request{Flow: "a", Placement: subset("0")})
		for range 5 {
			b.want(waiter, "waits")
			time.Sleep(time.Second)
			synctest.Wait() // a popper may have woken at this instant, and asks
			fleet.panics = 1
			b.update() // asks about it
			time.Sleep(time.Second)
			b.update() // and now it answers
		}
		if n := b.State().Panics; n != 5 {
			b.t.Errorf("%d panics", n)
		}
		complete(first.lease)
		b.want(waiter, "dispatched")
		complete(waiter.lease)
	})
}
