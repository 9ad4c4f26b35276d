package integration

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/modelsim"
)

// strictTiers returns a configuration with SMG's four tiers, highest first: the first floods, the others are starved
// after the threshold. One model server has the given slots, and the class header names the tier.
func strictTiers(slots int, threshold time.Duration, canPreempt bool) string {
	text := fmt.Sprintf(`
fairRequestQueue: { capacityMode: shared, topTier: fair, promotionBudget: 0.1, queueTTL: 10m }
requestQueueController: { enqueueAll: true, watermarkPerBackend: %d, lowerBoundPerBackend: %[1]d, upperBoundPerBackend: %[1]d }
criticality: { header: x-class }
flows: { key: ["header:x-tenant"] }
replaceTiers: true
tiers:
- { name: system, minPriority: 1, canPreempt: %v }
`, slots, canPreempt)
	for _, name := range []string{"interactive", "default", "bulk"} {
		text += fmt.Sprintf("- { name: %s, starvationThreshold: %s }\n", name, threshold)
	}
	return text
}

// inTier returns a request in a tier. Its tenant, which the model server records, has the tier's name.
func inTier(tier string) ask { return ofTier(tier, tier) }

// flood keeps workers requests in progress, each sent after the last answer, until stop is called. All have to be
// served.
func (s *scene) flood(workers int, a ask) (stop func()) {
	var all sync.WaitGroup
	var over atomic.Bool
	for range workers {
		all.Go(func() {
			for !over.Load() {
				wantServed(s.t, "the flood", s.send(a))
			}
		})
	}
	return func() { over.Store(true); all.Wait() }
}

// starvedByAFlood lets the given number of dispatches through while `system` floods four slots and the three tiers
// below have old waiters. It returns the tiers in the order of the dispatches, the starved requests, and a function
// that ends the scene.
func starvedByAFlood(t *testing.T, canPreempt bool, dispatches, waiters int) (s *scene, order []string, starved []*pending, end func()) {
	t.Helper()
	const slots, workers = 4, 48
	v := newValve()
	s = start(t, setup{
		models: []modelsim.Config{v.on(recorded(slots))}, config: strictTiers(slots, time.Second, canPreempt), edit: unhurried,
	})
	for range slots { // the slots are taken before any request waits
		starved = append(starved, s.begin(inTier("system")))
	}
	s.epp.waitFor(slots, "weir_stock_level")
	for _, tier := range []string{"interactive", "default", "bulk"} {
		for range waiters {
			starved = append(starved, s.begin(inTier(tier)))
		}
		s.epp.waitFor(float64(waiters), "weir_tier_queue_length", "tier", tier)
	}
	stop := s.flood(workers, inTier("system"))
	s.epp.waitFor(workers, "weir_tier_queue_length", "tier", "system")
	time.Sleep(1100 * time.Millisecond) // all waiters are beyond their threshold now: this tests their age

	for at := 0; at < dispatches; at += 20 { // at a time, so that the flood's queue is never empty even with slow clients
		v.pass(20)
		expect.Eventually(t, "the last dispatch is at the model server, and the flood waits", func() error {
			n, waiting := len(s.models[0].Records()), s.epp.value("weir_tier_queue_length", "tier", "system")
			if n != slots+at+20 || waiting < workers-slots {
				return fmt.Errorf("%d of %d, and %v of the flood wait", n-slots, at+20, waiting)
			}
			return nil
		})
	}
	return s, tenants(s.models[0])[slots:], starved, func() {
		var flood sync.WaitGroup
		flood.Go(stop)
		v.open()
		flood.Wait()
		s.epp.settled()
	}
}

// promoted returns the tiers that were dispatched past the flood, whose queue is never empty.
func promoted(order []string) []string {
	return slices.DeleteFunc(slices.Clone(order), func(tier string) bool { return tier == "system" })
}

// A flood in the highest tier leaves exactly a tenth of the dispatches to the tiers it starves. They take turns: the
// lowest first, since none has had a turn yet.
func TestStarvedTiersShareThePromotionBudget(t *testing.T) {
	t.Parallel()
	s, order, _, end := starvedByAFlood(t, false, 1000, 40)
	defer end()
	turns := promoted(order)
	if n := len(turns); n < 98 || n > 102 {
		t.Errorf("%d promotions in 1,000 dispatches, want 100 ± 2", n)
	}
	for i, tier := range turns {
		if want := []string{"bulk", "default", "interactive"}[i%3]; tier != want {
			t.Fatalf("promotion %d is of %s, want %s: %v", i, tier, want, turns)
		}
	}
	for _, tier := range []string{"interactive", "default", "bulk"} {
		want := 0
		for _, turn := range turns {
			if turn == tier {
				want++
			}
		}
		if n := s.epp.value("weir_starvation_promotions_total", "tier", tier); n != float64(want) {
			t.Errorf("%v promotions of %s are counted, the model server got %d", n, tier, want)
		}
	}
}

// The same with a flood that may preempt: a promoted request keeps its slot to the end. A request that came in order
// before the flood does not, which shows that preemption is active.
func TestPromotedRequestsAreNotPreempted(t *testing.T) {
	t.Parallel()
	s, order, starved, end := starvedByAFlood(t, true, 200, 10)
	if n := len(promoted(order)); n < 18 || n > 22 {
		t.Errorf("%d promotions in 200 dispatches, want 20 ± 2", n)
	}
	if n := s.epp.value("weir_preempted_total"); n != 0 {
		t.Errorf("%v preempted: none of those in flight could be a victim", n)
	}
	end()
	for _, p := range starved {
		wantServed(t, "a starved request", p.wait())
	}

	victim := s.models[0]
	victim.Inject(1, modelsim.Quirk{HeaderDelay: time.Hour})
	low := s.begin(inTier("bulk")) // in order: the queue is empty
	s.epp.waitFor(1, "weir_tier_inflight", "tier", "bulk")
	victim.Inject(4, modelsim.Quirk{HeaderDelay: time.Hour})
	var high []*pending
	for range 4 {
		high = append(high, s.begin(inTier("system")))
	}
	if got := low.wait(); got.status != http.StatusServiceUnavailable || got.reason() != "preempted" {
		t.Errorf("a request that was not promoted got %d %q %v, want 503 preempted", got.status, got.reason(), got.err)
	}
	for _, p := range high {
		p.cancel()
	}
	s.epp.settled()
}

// Promotion is bounded in slots too, not only in dispatches: bulk requests that run a hundred times as long as the
// flood's never hold more than the budget's share, or one.
func TestLongPromotedLeasesKeepToTheirShare(t *testing.T) {
	t.Parallel()
	for slots, most := range map[int]int{4: 1, 20: 2} {
		t.Run(fmt.Sprintf("%d slots", slots), func(t *testing.T) {
			t.Parallel()
			cfg := modelsim.Fixed(slots, 4*time.Millisecond)
			cfg.Records, cfg.TagHeader = 1, "x-tenant"
			cfg.Quirk = modelsim.Quirk{
				Match:       func(r *http.Request) bool { return r.Header.Get("x-tenant") == "bulk" },
				HeaderDelay: 400 * time.Millisecond,
			}
			s := start(t, setup{models: []modelsim.Config{cfg}, config: strictTiers(slots, 20*time.Millisecond, false), edit: unhurried})
			stop := s.flood(slots+40, inTier("system"))
			s.epp.waitFor(float64(slots), "weir_stock_level")
			var bulk []*pending
			for range 4 * most {
				bulk = append(bulk, s.begin(inTier("bulk")))
			}
			held := 0.0
			for ended := 0; ended < len(bulk); {
				held = max(held, s.epp.value("weir_tier_inflight", "tier", "bulk"))
				for ended < len(bulk) && bulk[ended].over() {
					ended++
				}
				if s.epp.value("weir_tier_queue_length", "tier", "system") == 0 {
					t.Fatal("the flood's queue is empty: bulk may go in order")
				}
			}
			if held != float64(most) {
				t.Errorf("bulk held up to %v of %d slots, want %d", held, slots, most)
			}
			for _, p := range bulk {
				wantServed(t, "a bulk request", p.wait())
			}
			if n := s.epp.value("weir_starvation_promotions_total", "tier", "bulk"); n != float64(len(bulk)) {
				t.Errorf("%v of %d were promoted", n, len(bulk))
			}
			stop()
			s.epp.settled()
		})
	}
}

// over reports whether the request has ended.
func (p *pending) over() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}
