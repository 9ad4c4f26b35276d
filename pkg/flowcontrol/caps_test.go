package flowcontrol

import (
	"testing"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// A flow at its cap waits without blocking others, neither in the queue nor from a bypass.
func TestAFlowAtItsCapBlocksNobody(t *testing.T) {
	change := func(c *Config) { c.Stock.SlotsPerBackend = 4; c.MaxInFlightPerFlow = 2 }
	inBubble(t, ready(1), change, func(b *bench) {
		var heavy []*arrival
		for range 4 {
			heavy = append(heavy, b.arrives(b.t.Context(), one("heavy")))
		}
		b.want(heavy[1], "dispatched")
		b.want(heavy[2], "waits")
		light := b.arrives(b.t.Context(), one("light"))
		b.want(light, "dispatched")
		if _, queued := light.lease.Queued(); queued {
			b.t.Error("the light flow waited behind a flow at its cap")
		}
		complete(heavy[0].lease)
		b.want(heavy[2], "dispatched")
		b.want(heavy[3], "waits")
		complete(heavy[1].lease)
		b.want(heavy[3], "dispatched")
		complete(heavy[2].lease)
		complete(heavy[3].lease)
		complete(light.lease)
	})
}

// The cap at each endpoint sends the flow's next request elsewhere, and parks it when it is at its cap everywhere.
func TestCapAtEachEndpoint(t *testing.T) {
	change := func(c *Config) { c.Stock.SlotsPerBackend = 4; c.MaxInFlightPerFlowPerBackend = 1 }
	inBubble(t, ready(2), change, func(b *bench) {
		first, second := b.arrives(b.t.Context(), one("a")), b.arrives(b.t.Context(), one("a"))
		if first.lease.Endpoint() == second.lease.Endpoint() {
			b.t.Error("both at one endpoint")
		}
		third := b.arrives(b.t.Context(), one("a"))
		b.want(third, "waits")
		other := b.arrives(b.t.Context(), one("b"))
		b.want(other, "dispatched")
		complete(other.lease) // somebody else's room does not help
		b.want(third, "waits")
		freed := second.lease.Endpoint()
		complete(second.lease)
		b.want(third, "dispatched")
		if third.lease.Endpoint() != freed {
			b.t.Error("placed where the flow is at its cap")
		}
		complete(first.lease)
		complete(third.lease)
	})
}

// A cap in cost holds like one in requests: a flow below it takes one more request of any cost, one at it waits without
// blocking others, and it goes on when a request costs less than was thought.
func TestCapInCost(t *testing.T) {
	for name, change := range map[string]func(c *Config){
		"in total":         func(c *Config) { c.MaxTokensInFlightPerFlow = 100 },
		"at each endpoint": func(c *Config) { c.MaxTokensInFlightPerFlowPerBackend = 100 },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, ready(1), func(c *Config) { c.Stock.SlotsPerBackend = 8; change(c) }, func(b *bench) {
				costs := func(flow string, cost fairqueue.Cost) *arrival {
					return b.arrives(b.t.Context(), &Request{Flow: flow, Cost: cost, Placement: pool})
				}
				huge := costs("huge", 1_000_000)
				b.want(huge, "dispatched") // nothing of it is in flight
				b.want(costs("huge", 1), "waits")
				first, second := costs("heavy", 60), costs("heavy", 60)
				b.want(second, "dispatched") // 60 is below 100
				third := costs("heavy", 60)
				b.want(third, "waits") // 120 is not
				light := costs("light", 99)
				b.want(light, "dispatched")

				first.lease.OnCost(61, 61)
				complete(second.lease) // 61 are left
				b.want(third, "dispatched")
				fourth := costs("heavy", 1)
				b.want(fourth, "waits") // 121 is not below 100
				complete(first.lease)
				b.want(fourth, "dispatched")
				b.want(costs("heavy", 39), "dispatched")
				b.want(costs("heavy", 1), "waits") // 100 is not below 100
				light.lease.OnCost(100, 100)
				b.want(costs("light", 1), "waits")
			})
		})
	}
}
