package flowcontrol

import (
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// SMG's tiers, two endpoints of one slot. A bulk request may use only the endpoint that a long stream holds, and is
// beyond its threshold. Nothing could be done for it, so the system requests for the other endpoint go before the fresh
// bulk ones there, as they do without it.
func TestWaiterOfAFullLaneLendsItsAgeToNobody(t *testing.T) {
	for _, budget := range []int64{1_000_000, 100_000} {
		for _, pinned := range []bool{false, true} {
			b := ready(2)
			b.upper = 1
			inBubble(t, b, func(c *Config) {
				smg(1)(c)
				c.Queue.PromotionBudget, c.Queue.Tiers[system].QueueSize = budget, 100
			}, func(b *bench) {
				at := func(tier int, lane subset) *arrival {
					r := of(tier)
					r.Placement = lane
					return b.arrives(b.t.Context(), r)
				}
				long, other := at(system, "0"), at(system, "1")
				if err := long.lease.OnFirstByte(); err != nil {
					b.t.Fatal(err)
				}
				var old *arrival
				if pinned {
					old = at(bulk, "0")
				}
				time.Sleep(150 * time.Second) // bulk's threshold is 120 s
				var urgent, fresh []*arrival
				for range 100 {
					urgent = append(urgent, at(system, "1"))
					fresh = append(fresh, at(bulk, "1"))
				}
				for next := other; served(urgent)+served(fresh) < 100; {
					complete(next.lease)
					next = holder(append(urgent, fresh...))
				}
				if n := served(urgent); n != 100 {
					b.t.Errorf("budget %d, pinned %t: %d of the first 100 are system, want all", budget, pinned, n)
				}
				complete(long.lease) // now there is room for the old one, and it goes at once
				if pinned {
					b.want(old, "dispatched")
					complete(old.lease)
				}
				for next := holder(append(urgent, fresh...)); next != nil; next = holder(append(urgent, fresh...)) {
					complete(next.lease)
				}
			})
		}
	}
}

// holder is the one of them that has a lease.
func holder(all []*arrival) *arrival {
	for _, a := range all {
		if a.outcome() == "dispatched" && a.lease.Lease() != nil {
			return a
		}
	}
	return nil
}

// An arrival of a higher tier passes a starved waiter whose lane is full, also where the lane has filled up since anything
// was tried there: it queues behind nobody, and inside the band, where nobody would release it.
func TestFullLaneDoesNotStandInTheWayOfABypass(t *testing.T) {
	b := ready(2)
	b.lower, b.upper = 1, 2
	inBubble(t, b, func(c *Config) { smg(0)(c); perBackend(c, 1, 2) }, func(b *bench) {
		request := func(tier int, lane subset) *Request {
			r := of(tier)
			r.Placement = lane
			return r
		}
		first, second := b.arrives(b.t.Context(), request(system, "0")), b.arrives(b.t.Context(), request(system, "0"))
		old := b.arrives(b.t.Context(), request(bulk, "0"))
		complete(second.lease)
		b.want(old, "waits") // one is in flight there: between the bounds
		passed, err := b.PassOn(request(bulk, "0"))
		if err != nil {
			b.t.Fatal(err)
		}
		time.Sleep(2*time.Minute - time.Nanosecond)
		b.mu.Lock() // so that the arrival comes before the timer's popper
		time.Sleep(time.Nanosecond)
		now := time.Now()
		passing := steps{b.RequestQueueController, b.t}.under(now, request(system, "1"))
		b.end(now, passing)
		for _, l := range []*Lease{first.lease, passed, (*Lease)(passing)} {
			complete(l)
		}
		b.want(old, "dispatched")
		complete(old.lease)
	})
}

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
