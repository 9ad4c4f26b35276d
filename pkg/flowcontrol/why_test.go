package flowcontrol

import (
	"testing"
	"time"
)

// Each flow is shown with its own reason to wait, whatever others wait for.
func TestWhatAFlowWaitsFor(t *testing.T) {
	b := ready(3)
	b.upper, b.ready[2] = 1, false
	inBubble(t, b, func(c *Config) {
		perBackend(c, 2, 2)
		c.MaxInFlightPerFlow, c.ReleaseSpacing = 1, time.Second
	}, func(b *bench) {
		arrives := func(flow string, lane subset) *arrival {
			a := b.arrives(b.t.Context(), &Request{Flow: flow, Placement: lane})
			time.Sleep(2 * time.Second)
			return a
		}
		why := func(want map[string]string) {
			b.t.Helper()
			got := map[string]string{}
			for _, f := range b.Flows(10) {
				got[f.Flow] = f.Why
			}
			for flow, w := range want {
				if got[flow] != w {
					b.t.Errorf("%s waits for %q, want %q", flow, got[flow], w)
				}
			}
		}
		first := arrives("first", "0")
		arrives("capped", "1")
		arrives("capped", pool)
		arrives("pinned", "0") // which has no room
		arrives("gone", "2")   // which is not ready
		why(map[string]string{"capped": "cap", "pinned": "endpoint", "gone": "endpoint"})
		second, third := arrives("second", pool), arrives("third", pool)
		arrives("fourth", pool)
		arrives("fifth", pool)
		why(map[string]string{"capped": "cap", "fourth": "stock", "fifth": "stock", "gone": "endpoint"})
		complete(first.lease) // one goes, the next one not before a second has passed
		complete(second.lease)
		complete(third.lease)
		why(map[string]string{"capped": "cap", "fifth": "spacing", "gone": "endpoint"})
	})
}

// A request that waits on idle backends because all their slots are reserved for a higher tier shows this reason, so
// operators do not look for a stock that has to fall.
func TestWaitingForAReservation(t *testing.T) {
	inBubble(t, ready(1), func(c *Config) {
		smg(2)(c)
		c.Tiers[system].ReservedFloor = 2
	}, func(b *bench) {
		waits := b.arrives(b.t.Context(), of(bulk))
		if flows := b.Flows(1); len(flows) != 1 || flows[0].Why != "reservation" {
			b.t.Errorf("got %+v, want one that waits for a reservation", flows)
		}
		first, second := b.arrives(b.t.Context(), of(system)), b.arrives(b.t.Context(), of(system))
		if flows := b.Flows(1); len(flows) != 1 || flows[0].Why != "stock" {
			b.t.Errorf("got %+v, want one that waits for the stock to fall: it is full", flows)
		}
		complete(first.lease)
		complete(second.lease)
		time.Sleep(2 * time.Minute) // bulk's threshold
		b.want(waits, "dispatched")
		complete(waits.lease)
	})
}
