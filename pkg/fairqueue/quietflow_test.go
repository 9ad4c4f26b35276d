package fairqueue

import (
	"math/rand/v2"
	"testing"
)

// TestQuietFlowInAFullQueue: "with a full shared queue: 1,000 quiet-tenant requests of the same tier as the flood, never
// more waiting than its fair share of the queue: none rejected, none displaced". Two floods of different weights keep
// the queue full; the fair share is totalCapacity × weight over the weights of the backlogged flows. It is a share of
// places: the quiet flow's requests are far more costly than the others'.
func TestQuietFlowInAFullQueue(t *testing.T) {
	cfg := DefaultConfig()
	cfg.CapacityMode, cfg.TotalCapacity, cfg.FlowCapacity = Shared, 120, 120
	cfg.Weights = map[string]Weight{"quiet": 2 * WeightOne, "flood": 3 * WeightOne}
	q := queue(t, cfg)
	random := rand.New(rand.NewPCG(5, 5))
	const share = 120 * 2 / (2 + 3 + 1)
	var audit audit
	flood := func() {
		for _, name := range []string{"flood", "burst"} {
			displaced, _ := q.Push(start, &Request{Flow: name, Cost: Cost(1 + random.IntN(3))})
			if displaced != nil && displaced.Flow == "quiet" {
				t.Fatalf("a quiet request was displaced with %d waiting", waiting(q, "quiet"))
			}
		}
	}
	for q.Len() < cfg.TotalCapacity {
		flood()
	}
	for sent := 0; sent < 1000; {
		flood()
		for n := random.IntN(8); n > 0 && waiting(q, "quiet") < share; n-- {
			displaced, err := q.Push(start, &Request{Flow: "quiet", Cost: Cost(1 + random.IntN(500))})
			if err != nil || displaced != nil && displaced.Flow == "quiet" {
				t.Fatalf("quiet request %d with %d waiting: displaced %v, %v", sent, waiting(q, "quiet"), displaced, err)
			}
			sent++
		}
		for range random.IntN(12) {
			popNext(q)
		}
		audit.check(t, q)
	}
}

// "with a full shared queue of sheddable work of one tenant (flowCapacity = totalCapacity): a critical request of
// another enters and displaces".
func TestCriticalEntersAQueueFullOfSheddable(t *testing.T) {
	for _, guaranteed := range []bool{false, true} {
		cfg := DefaultConfig()
		cfg.CapacityMode, cfg.TotalCapacity, cfg.FlowCapacity, cfg.GuaranteedTop = Shared, 50, 50, guaranteed
		cfg.Tiers = []TierConfig{{Name: "critical", QueueSize: -1}, {Name: "sheddable", QueueSize: -1}}
		q := queue(t, cfg)
		for range 50 {
			mustPush(t, q, &Request{Flow: "noisy", Tier: 1, Cost: 1})
		}
		newest := q.tiers[1].classes[0].flows.find("noisy").newest()
		displaced, err := q.Push(start, &Request{Flow: "other", Tier: 0, Cost: 1})
		if err != nil || displaced != newest || displaced.Queued() {
			t.Errorf("guaranteed %t: displaced %v, %v, want the newest", guaranteed, displaced, err)
		}
	}
}
