package fairqueue

import (
	"math"
	"math/rand/v2"
	"testing"
)

func weightedTiers() Config {
	cfg := DefaultConfig()
	cfg.TierMode, cfg.CapacityMode, cfg.TotalCapacity, cfg.FlowCapacity = Weighted, Shared, 1_000_000, 1_000_000
	cfg.Tiers = []TierConfig{
		{Name: "critical", Weight: 70 * WeightOne, QueueSize: -1},
		{Name: "default", Weight: 20 * WeightOne, QueueSize: -1},
		{Name: "sheddable", Weight: 10 * WeightOne, QueueSize: -1},
	}
	return cfg
}

// TestSeventyTwentyTen: "70/20/10 weighted tiers under permanent backlog, unit cost: within 2 percentage points over
// 1,000 grants"; and with random costs in cost, within the largest one for each tier.
func TestSeventyTwentyTen(t *testing.T) {
	const largest = 40
	for _, costs := range []int{1, largest} {
		random := rand.New(rand.NewPCG(3, 3))
		q := queue(t, weightedTiers())
		var served [3]float64
		total := 0.0
		var audit audit
		for range 1000 {
			for tier := range 3 {
				for q.tiers[tier].queued < 2 {
					mustPush(t, q, &Request{Flow: "f", Tier: tier, Cost: Cost(1 + random.IntN(costs))})
				}
			}
			r := popNext(q)
			served[r.Tier] += float64(r.Cost)
			total += float64(r.Cost)
			audit.check(t, q)
		}
		for tier, share := range []float64{0.7, 0.2, 0.1} {
			tolerance := 0.02 * total
			if costs > 1 {
				tolerance = 2 * largest
			}
			if got := served[tier]; math.Abs(got-share*total) > tolerance {
				t.Errorf("costs up to %d: tier %d was served %g of %g, want %g within %g", costs, tier, got, total, share*total, tolerance)
			}
		}
	}
}

// A tier that waits without stock available to it earns nothing, so it has no burst afterwards.
func TestUnavailableTierBanksNothing(t *testing.T) {
	q := queue(t, weightedTiers())
	for range 600 {
		for tier := range 3 {
			mustPush(t, q, &Request{Flow: "f", Tier: tier, Cost: 1})
		}
	}
	withoutCritical := Allowed{Tiers: AllTiers &^ 1}
	for range 300 {
		q.Pop(q.Peek(start, withoutCritical))
	}
	var served [3]int
	for range 100 {
		served[popNext(q).Tier]++
	}
	if served[0] < 68 || served[0] > 72 {
		t.Errorf("served %v of 100 after the tier became available, want about 70, 20, 10", served)
	}
}

// With weights that do not divide evenly every tier's part is rounded, but the deficits still sum to zero.
func TestDeficitsSumToZero(t *testing.T) {
	cfg := weightedTiers()
	for i := range cfg.Tiers {
		cfg.Tiers[i].Weight = WeightOne
	}
	q := queue(t, cfg)
	for range 700 {
		for tier := range 3 {
			mustPush(t, q, &Request{Flow: "f", Tier: tier, Cost: 7})
		}
	}
	for range 2000 {
		popNext(q)
		if sum := q.tiers[0].deficit + q.tiers[1].deficit + q.tiers[2].deficit; sum != 0 {
			t.Fatalf("the deficits sum to %d", sum)
		}
	}
}
