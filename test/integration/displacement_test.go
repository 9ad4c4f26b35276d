package integration

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/modelsim"
)

// sharedQueue returns a configuration with a queue that all flows share, in front of the given slots. The class header
// names the tier, x-tenant the flow. The noisy flow may fill the whole queue.
func sharedQueue(slots, places int, more string) string {
	return fmt.Sprintf(`
fairRequestQueue: { capacityMode: shared, totalCapacity: %[2]d, queueTTL: 10m, %[3]s }
requestQueueController: { enqueueAll: true, watermarkPerBackend: %[1]d, lowerBoundPerBackend: %[1]d, upperBoundPerBackend: %[1]d }
criticality: { header: x-class }
flows: { key: ["header:x-tenant"], capacities: { noisy: %[2]d } }
`, slots, places, more)
}

// ofTier returns a request of a tenant in a tier.
func ofTier(tenant, tier string) ask {
	return ask{header: []string{"x-tenant", tenant, "x-class", tier}}
}

// unhurried is an Edit that makes Envoy wait for Weir without a limit. By default it gives up after 5 s and, failing
// open, passes on requests that Weir may just have rejected. That would falsify the counts compared here.
func unhurried(b envoyrun.Bootstrap) error {
	b.Filter(envoyrun.ExtProcFilter)["message_timeout"] = "600s"
	return nil
}

// fill makes n requests wait, one after another, so that the last of them is the newest.
func (s *scene) fill(n int, a ask) []*pending {
	s.t.Helper()
	before := s.epp.value("weir_queue_length")
	var waiting []*pending
	for i := range n {
		waiting = append(waiting, s.begin(a))
		s.epp.waitFor(before+float64(i+1), "weir_queue_length")
	}
	return waiting
}

// wantDisplaced checks that these requests are rejected as displaced, each with its own Retry-After, while all others
// keep waiting.
func wantDisplaced(t *testing.T, displaced ...*pending) {
	t.Helper()
	for _, p := range displaced {
		wantRejection(t, p.wait(), rejection{status: 503, reason: "displaced"})
	}
}

// The queue is full of one tenant's sheddable requests. A critical request of another tenant gets in: the newest
// sheddable one is displaced at once, with a Retry-After. The others stay. The noisy tenant's own next request
// displaces none.
func TestCriticalDisplacesSheddable(t *testing.T) {
	t.Parallel()
	for _, top := range []string{"guaranteed", "fair"} {
		t.Run(top, func(t *testing.T) {
			const places = 20
			v := newValve()
			s := start(t, setup{models: v.one(), config: sharedQueue(1, places, "flowCapacity: 20, topTier: "+top)})
			s.begin(ofTier("noisy", "sheddable"))
			s.epp.waitFor(1, "weir_stock_level")
			waiting := s.fill(places, ofTier("noisy", "sheddable"))

			first := s.begin(ofTier("quiet", "critical"))
			wantDisplaced(t, waiting[places-1])
			second := s.begin(ofTier("quiet", "critical"))
			wantDisplaced(t, waiting[places-2])
			s.epp.waitFor(2, "weir_tier_queue_length", "tier", "critical")
			s.epp.waitFor(places-2, "weir_tier_queue_length", "tier", "sheddable")
			wantRejection(t, s.send(ofTier("noisy", "sheddable")), rejection{status: 503, reason: "queue-full"})
			for i, p := range waiting[:places-2] {
				if p.over() {
					t.Errorf("the waiter at place %d has ended: %+v", i, p.answer)
				}
			}
			s.logged("status", 503.0, "details", "displaced")

			v.open()
			wantServed(t, "critical", first.wait())
			wantServed(t, "critical", second.wait())
			for _, p := range waiting[:places-2] {
				wantServed(t, "one that was not displaced", p.wait())
			}
			s.epp.settled()
			if n := s.epp.value("weir_displaced_total", "tier", "sheddable"); n != 2 {
				t.Errorf("%v displaced, want 2", n)
			}
			if got := s.epp.outcomes(); got["displaced"] != 2 || got["queue-full"] != 1 || got["dispatched"] != places+1 || len(got) != 3 {
				t.Errorf("outcomes are %v, want 2 displaced, 1 queue-full, %d dispatched", got, places+1)
			}
			if order := tenants(s.models[0]); order[1] != "quiet" || order[2] != "quiet" {
				t.Errorf("served %v: the critical ones go first", order)
			}
		})
	}
}

// Places are the scarce resource of a queue, whatever a request costs. A quiet tenant's one costly request keeps its
// place while a noisy tenant holds all the others and sends more.
func TestCostlyRequestKeepsItsPlace(t *testing.T) {
	t.Parallel()
	const places = 10
	v := newValve()
	s := start(t, setup{
		models: v.one(), edit: unhurried,
		config: sharedQueue(1, places, "flowCapacity: 10, topTier: fair") + "trustedHeaders: { cost: x-cost }\n",
	})
	costs := func(tenant, cost string) ask {
		a := ofTier(tenant, "sheddable")
		a.header = append(a.header, "x-cost", cost)
		return a
	}
	served := []*pending{s.begin(costs("noisy", "1"))}
	s.epp.waitFor(1, "weir_stock_level")
	quiet := s.fill(1, costs("quiet", "200"))[0]
	served = append(served, s.fill(places-1, costs("noisy", "1"))...)
	for range 5 {
		wantRejection(t, s.send(costs("noisy", "1")), rejection{status: 503, reason: "queue-full"})
	}
	v.open()
	wantServed(t, "the quiet tenant's request", quiet.wait())
	for _, p := range served {
		wantServed(t, "a request of the noisy tenant", p.wait())
	}
	s.epp.settled()
	if got := s.epp.outcomes(); got["displaced"] != 0 || got["queue-full"] != 5 {
		t.Errorf("outcomes are %v, want none displaced and the noisy tenant's 5 turned away", got)
	}
}

// A flood in the same tier keeps the queue full. It does not affect a quiet tenant within its fair share of the queue:
// of 1,000 requests none is rejected or displaced.
func TestQuietTenantIsNeverDisplaced(t *testing.T) {
	t.Parallel()
	const slots, places, quiet, flooders = 4, 40, 20, 64
	s := start(t, setup{
		models: []modelsim.Config{modelsim.Fixed(slots, time.Millisecond)},
		config: sharedQueue(slots, places, "flowCapacity: 40, topTier: fair"), edit: unhurried,
	})

	// The flood retries at once, whatever its Retry-After.
	var flood sync.WaitGroup
	var over atomic.Bool
	var served, displaced, full atomic.Int64
	for range flooders {
		flood.Go(func() {
			for !over.Load() {
				switch got := s.send(ofTier("noisy", "sheddable")); {
				case got.status == 200:
					served.Add(1)
				case got.reason() == "displaced":
					displaced.Add(1)
				case got.reason() == "flow-full": // its capacity is the queue's
					full.Add(1)
					time.Sleep(10 * time.Millisecond) // otherwise the flood would only measure the machine
				case got.reason() == "queue-full":
					full.Add(1)
					time.Sleep(10 * time.Millisecond)
				default:
					t.Errorf("the flood: got %d %q %v", got.status, got.reason(), got.err)
				}
			}
		})
	}
	s.epp.waitFor(places, "weir_queue_length")

	var calm sync.WaitGroup
	requests := make(chan int)
	for range quiet { // this many at once, and never more
		calm.Go(func() {
			for i := range requests {
				wantServed(t, fmt.Sprintf("quiet request %d", i), s.send(ofTier("quiet", "sheddable")))
			}
		})
	}
	for i := range 1000 {
		requests <- i
	}
	close(requests)
	calm.Wait()
	over.Store(true)
	flood.Wait()
	s.epp.settled()

	if displaced.Load() < 20 || full.Load() < 20 {
		t.Errorf("the flood had %d displaced and %d turned away: it did not keep the queue full", displaced.Load(), full.Load())
	}
	got := s.epp.outcomes()
	if got["dispatched"] != 1000+int(served.Load()) || got["displaced"] != int(displaced.Load()) || got["queue-full"]+got["flow-full"] != int(full.Load()) {
		t.Errorf("outcomes are %v; the clients saw %d served, %d displaced, %d full",
			got, 1000+served.Load(), displaced.Load(), full.Load())
	}
}
