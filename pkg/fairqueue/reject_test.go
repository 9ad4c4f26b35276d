package fairqueue

import (
	"errors"
	"strconv"
	"testing"
)

// With Reject a full queue displaces no request: not for a higher tier, nor for a flow without waiters. Until it is
// full there is room for any number of flows, since none reserves its capacity. Any flow may take a place that becomes
// free.
func TestAFullQueueRejectsWhoeverArrives(t *testing.T) {
	for _, tiers := range []TierMode{Strict, Weighted} {
		cfg := fourTiers(0)
		cfg.CapacityMode, cfg.TierMode, cfg.TotalCapacity, cfg.FlowCapacity, cfg.GuaranteedTop = Reject, tiers, 8, 8, true
		for i := range cfg.Tiers {
			cfg.Tiers[i].QueueSize = 2
		}
		cfg.Tiers[0].QueueSize = NoLimit
		q := queue(t, cfg)
		full := func(r *Request) {
			t.Helper()
			if displaced, err := q.Push(start, r); displaced != nil || !errors.Is(err, ErrTooManyFlows) {
				t.Errorf("tier mode %d: flow %s of tier %d: displaced %v, %v", tiers, r.Flow, r.Tier, displaced, err)
			}
		}
		for i := range 8 {
			mustPush(t, q, &Request{Flow: strconv.Itoa(i), Tier: 3 - i/2, Cost: 1})
		}
		full(&Request{Flow: "nobody's yet", Tier: 0, Cost: 1})
		full(&Request{Flow: "0", Tier: 3, Cost: 1})
		if n := len(popAll(q)); n != 8 {
			t.Errorf("tier mode %d: %d of 8 waiters are left", tiers, n)
		}
		mustPush(t, q, &Request{Flow: "a", Tier: 3, Cost: 1})
		mustPush(t, q, &Request{Flow: "a", Tier: 3, Cost: 1})
		full(&Request{Flow: "b", Tier: 3, Cost: 1}) // its tier is full
		mustPush(t, q, &Request{Flow: "b", Tier: 2, Cost: 1})
	}
}

func popAll(q *FairRequestQueue) (all []*Request) {
	for r := popNext(q); r != nil; r = popNext(q) {
		all = append(all, r)
	}
	return all
}
