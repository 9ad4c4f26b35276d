package flowcontrol

import "testing"

// The golden numbers of SMG at capacity 100.
func TestPressure(t *testing.T) {
	for _, test := range []struct {
		inflight, depth, limit int
		want                   float64
	}{{10, 8, 10, 0.8}, {50, 1, 10, 0.5}, {200, 100, 10, 1}, {10, 8, 0, 0.1}} {
		if got := pressure(test.depth, test.limit, test.inflight, 0, 100, 0); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
	if got := pressure(0, 10, 30, 10, 100, 60); got != 0.5 {
		t.Errorf("with reservations: %v", got)
	}
}

// A request that names its tier joins it, whatever its rank has become by then; an unknown name is the lowest.
func TestTierByName(t *testing.T) {
	inBubble(t, ready(1), smg(1), func(b *bench) {
		holder := b.arrives(b.t.Context(), of(standard))
		for _, test := range []struct {
			name string
			tier int
		}{{"interactive", interactive}, {"bulk", bulk}, {"no such tier", bulk}} {
			r := &Request{Flow: "f", Tier: system, TierName: test.name, Placement: pool}
			a := b.arrives(b.t.Context(), r)
			if test.tier == interactive {
				b.want(a, "dispatched") // by preemption
				complete(a.lease)
				complete(holder.lease)
				holder = b.arrives(b.t.Context(), of(system))
				continue
			}
			b.want(a, "waits")
		}
		if n := b.machine.Tiers(nil)[bulk].Queued; n != 2 {
			b.t.Errorf("%d wait in the lowest tier", n)
		}
		complete(holder.lease)
	})
}
