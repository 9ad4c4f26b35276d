package fairqueue

import "testing"

// A refund that the floor has stopped is not taken back by the next correction: in the end a flow is charged what its
// request has cost, whatever was believed meanwhile.
func TestVTCChargesTheLastCorrection(t *testing.T) {
	charges := func(believed ...Cost) VirtualTime {
		cfg := DefaultConfig()
		cfg.Discipline, cfg.CapacityMode, cfg.TotalCapacity, cfg.FlowCapacity = VTC, Shared, 100, 100
		q := queue(t, cfg)
		r := &Request{Flow: "f", Cost: 5}
		q.Bypassed(start, r)
		mustPush(t, q, &Request{Flow: "other", Cost: 4})
		mustPush(t, q, &Request{Flow: "f", Cost: 1}) // its floor is where it begins to wait
		for _, cost := range believed {
			q.TrueUp(start, r, cost)
		}
		return q.top.classes[0].flows.find("f").start
	}
	if once, twice := charges(9), charges(1, 9); once != twice || once <= charges(5) {
		t.Errorf("a cost of 5 is corrected to 9: %d, by way of 1: %d, not corrected: %d", once, twice, charges(5))
	}
}
