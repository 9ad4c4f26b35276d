package flowcontrol

import (
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// A lane may have filled up since anything was tried there: it is looked at when an age decides. A costly old bulk
// request is pinned to an endpoint that a higher tier has just taken again; a cheap fresh one is not promoted for it.
func TestAgeIsLentOnlyWhereThereIsRoomNow(t *testing.T) {
	b := ready(2)
	b.upper = 1
	inBubble(t, b, func(c *Config) { smg(1)(c); c.Queue.PromotionBudget = 100_000 }, func(b *bench) {
		at := func(tier int, flow string, cost fairqueue.Cost, lane subset) *arrival {
			a := b.arrives(b.t.Context(), &Request{Flow: flow, Tier: tier, Cost: cost, Placement: lane})
			if a.outcome() == "dispatched" {
				_ = a.lease.OnFirstByte()
			}
			return a
		}
		for range 20 { // earns two promotions
			complete(at(system, "s", 1, "1").lease)
		}
		first, second := at(system, "s", 1, "0"), at(system, "s", 1, "1")
		old, older := at(bulk, "costly", 100, "0"), at(bulk, "cheap", 1, "1")
		time.Sleep(150 * time.Second)
		third, fourth := at(system, "s", 1, "1"), at(system, "s", 1, "0")
		complete(second.lease)
		b.want(older, "dispatched") // the one promotion that may be in flight
		complete(first.lease)
		b.want(fourth, "dispatched")
		fresh := at(bulk, "cheap", 1, "1")
		complete(older.lease)
		b.want(third, "dispatched")
		for _, a := range []*arrival{fourth, third, old, fresh} {
			b.want(a, "dispatched")
			complete(a.lease)
		}
	})
}
