package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/expect"
)

// A bulk request that may use only a server held by a long stream grows old there. That does not make other bulk
// requests urgent: at the other server the system tier goes first, however old the pinned one is. The other bulk
// requests have to stay younger than the threshold. If the machine is too slow for one threshold, the test tries a
// longer one.
func TestPinnedWaiterPromotesNobodyElse(t *testing.T) {
	t.Parallel()
	for _, budget := range []string{"1", "0.1"} {
		t.Run("budget "+budget, func(t *testing.T) {
			t.Parallel()
			for threshold := 3 * time.Second; !pinnedWaiterPromotesNobody(t, budget, threshold); threshold *= 3 {
				if threshold > time.Minute {
					t.Fatalf("40 requests took more than %v", threshold)
				}
			}
		})
	}
}

// pinnedWaiterPromotesNobody plays the scene once. It reports false, without a result, if the new bulk requests became
// as old as the threshold.
func pinnedWaiterPromotesNobody(t *testing.T, budget string, threshold time.Duration) bool {
	const grants = 20
	held, other := newValve(), newValve()
	s := start(t, setup{
		models: append(held.one(), other.one()...),
		edit: envoyrun.Edits(unhurried, func(b envoyrun.Bootstrap) error {
			metadataFromHeader(b, "x-test-subset", "envoy.lb.subset_hint", "x-gateway-destination-endpoint-subset")
			return nil
		}),
		config: fmt.Sprintf(`
fairRequestQueue: { capacityMode: shared, topTier: fair, promotionBudget: %s, queueTTL: 10m }
requestQueueController: { enqueueAll: true, watermarkPerBackend: 1, lowerBoundPerBackend: 1, upperBoundPerBackend: 1 }
criticality: { header: x-class }
flows: { key: ["header:x-tenant"] }
replaceTiers: true
tiers:
- { name: system, minPriority: 1 }
- { name: bulk, starvationThreshold: %s }
`, budget, threshold),
	})
	at := func(model int, tier string) ask {
		a := inTier(tier)
		a.header = append(a.header, "x-test-subset", inMetadata(t, s.models[model].Address()))
		return a
	}
	long, running := s.begin(at(0, "system")), s.begin(at(1, "system"))
	s.epp.waitFor(2, "weir_stock_level")
	pinned := s.begin(at(0, "bulk"))
	s.epp.waitFor(1, "weir_tier_queue_length", "tier", "bulk")
	time.Sleep(threshold + 200*time.Millisecond) // this tests the pinned request's age

	begun := time.Now()
	all := []*pending{long, running, pinned}
	for _, tier := range []string{"bulk", "system"} {
		for range grants {
			all = append(all, s.begin(at(1, tier)))
		}
	}
	s.epp.waitFor(1+grants, "weir_tier_queue_length", "tier", "bulk")
	s.epp.waitFor(grants, "weir_tier_queue_length", "tier", "system")
	other.pass(1 + grants)
	expect.Eventually(t, "the last of the grants is at the model server", func() error {
		if n := len(s.models[1].Records()); n < 1+grants {
			return fmt.Errorf("%d of %d", n-1, grants)
		}
		return nil
	})
	young := time.Since(begun) < threshold
	for i, tier := range tenants(s.models[1])[1 : 1+grants] {
		if young && tier != "system" {
			t.Errorf("grant %d went to %s, want system", i, tier)
		}
	}

	held.open()
	other.open()
	for _, p := range all {
		wantServed(t, "a request", p.wait())
	}
	if order := tenants(s.models[0]); len(order) != 2 || order[1] != "bulk" {
		t.Errorf("the server of the long stream got %v, want the pinned request after it", order)
	}
	s.epp.settled()
	return young
}
