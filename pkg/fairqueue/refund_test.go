package fairqueue

import (
	"math/rand/v2"
	"testing"
)

// Two flows are always backlogged, and every other release of one of them is requeued, some time after further releases
// of the flow. The flow still gets its share by weight, within the largest costs and the open releases, even if its
// weight changes in between.
func TestRefundIsWhatWasCharged(t *testing.T) {
	for _, open := range []int{1, 2, 7} { // releases of which it is not yet known what they come to
		for _, changes := range []bool{false, true} {
			random := rand.New(rand.NewPCG(uint64(open), 9))
			cfg := DefaultConfig()
			cfg.TotalCapacity, cfg.FlowCapacity = 1000, 500
			q := queue(t, cfg)
			const largest = 20
			var kept [2]float64 // cost over weight
			var popped []*Request
			n := 0
			weight := 1.0
			var audit audit
			for i := range 20_000 {
				for k, name := range []string{"aborted", "whole"} {
					for waiting(q, name) < 3+open*k {
						mustPush(t, q, &Request{Flow: name, Cost: Cost(1 + random.IntN(largest))})
					}
				}
				if changes && i%1000 == 999 {
					weight = 4 - weight // 1 and 3
					cfg.Weights = map[string]Weight{"aborted": Weight(weight) * WeightOne}
					reconfigure(t, q, cfg)
				}
				r := popNext(q)
				if r.Flow == "whole" {
					kept[1] += float64(r.Cost)
					continue
				}
				r.Owner = weight
				if popped = append(popped, r); len(popped) < open {
					continue
				}
				first := popped[0]
				popped = popped[1:]
				if n++; n%2 == 0 {
					q.Requeue(first)
					q.Remove(first)
				} else {
					kept[0] += float64(first.Cost) / first.Owner.(float64)
				}
				if i%100 == 0 {
					audit.excused = true
					audit.check(t, q)
				}
			}
			if d := kept[0] - kept[1]; d > largest*float64(open+3) || -d > largest*float64(open+3) {
				t.Errorf("%d open, changing weights %t: %.0f kept beside %.0f", open, changes, kept[0], kept[1])
			}
		}
	}
}

// TestRequeueGivesTheTierItsServiceBack: "70/20/10, half of the first tier's grants aborted: 1000 : 400 : 200 where
// 1400 : 400 : 200 is right".
func TestRequeueGivesTheTierItsServiceBack(t *testing.T) {
	q := queue(t, weightedTiers())
	var kept [3]int
	n := 0
	for kept[1] < 400 {
		for tier := range 3 {
			for q.tiers[tier].queued < 2 {
				mustPush(t, q, &Request{Flow: "f", Tier: tier, Cost: 1})
			}
		}
		r := popNext(q)
		if r.Tier == 0 {
			if n++; n%2 == 0 {
				q.Requeue(r)
				q.Remove(r)
				continue
			}
		}
		kept[r.Tier]++
		mustHold(t, q)
	}
	if kept[0] < 1397 || kept[0] > 1403 || kept[2] < 198 || kept[2] > 202 {
		t.Errorf("kept %v, want 1400, 400, 200", kept)
	}
}

// No tier banks or owes more than the largest cost.
func TestDeficitIsCapped(t *testing.T) {
	for _, far := range []int64{deficitCap - 1, 1 - deficitCap} {
		q := queue(t, weightedTiers())
		for tier := range 3 {
			mustPush(t, q, &Request{Flow: "f", Tier: tier, Cost: MaxCost})
			mustPush(t, q, &Request{Flow: "f", Tier: tier, Cost: MaxCost})
			q.tiers[tier].deficit = far
		}
		popNext(q)
		mustHold(t, q)
		if first := q.tiers[0].deficit; far < 0 && first != -deficitCap || far > 0 && q.tiers[1].deficit != deficitCap {
			t.Errorf("from %d: deficits %d, %d", far, first, q.tiers[1].deficit)
		}
	}
}
