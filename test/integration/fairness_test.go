package integration

import (
	"math"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/modelsim"
)

// crowd keeps 16 requests of each tenant in progress until the given number was granted, all of them waiting before the
// first grant. It returns the tenants of the grants in order. One model server runs one request at a time, so requests
// arrive there in the order of the grants.
func crowd(t *testing.T, weights string, grants int, flows ...string) []string {
	t.Helper()
	return crowdOf(t, single+"flows: { key: [\"header:x-tenant\"], weights: "+weights+" }\n", from, grants, flows...)
}

// crowdOf is crowd with another configuration and other requests.
func crowdOf(t *testing.T, config string, request func(flow string) ask, grants int, flows ...string) []string {
	t.Helper()
	const workers = 16 // enough that a flow's queue is never empty, however fast it is served
	v := newValve()
	s := start(t, setup{models: v.one(), config: config})
	plug := s.begin(request("plug"))
	s.epp.waitFor(1, "weir_stock_level")

	var all sync.WaitGroup
	var over atomic.Bool
	for _, flow := range flows {
		for range workers {
			all.Go(func() {
				for !over.Load() {
					wantServed(t, "a backlogged request", s.send(request(flow)))
				}
			})
		}
	}
	s.epp.waitFor(float64(workers*len(flows)), "weir_queue_length")
	v.pass(1)
	wantServed(t, "the plug", plug.wait())
	v.pass(grants)
	over.Store(true)
	v.open()
	all.Wait()
	s.epp.settled()
	return tenants(s.models[0])[1 : 1+grants]
}

// Flows with a constant backlog are served by their weights: 1:2:4 within 3 %, over 700 grants.
func TestServedByWeight(t *testing.T) {
	t.Parallel()
	const grants = 700
	served := map[string]int{}
	for _, tenant := range crowd(t, "{ two: 2, four: 4 }", grants, "one", "two", "four") {
		served[tenant]++
	}
	for flow, weight := range map[string]float64{"one": 1, "two": 2, "four": 4} {
		want := grants * weight / 7
		if got := float64(served[flow]); math.Abs(got-want) > 0.03*want {
			t.Errorf("flow %s was served %v of %d, want %v within 3 %%", flow, got, grants, want)
		}
	}
}

// Flows of equal weight never differ by more than one request, at any grant.
func TestEqualFlows(t *testing.T) {
	t.Parallel()
	flows := []string{"a", "b", "c"}
	served := map[string]int{}
	for i, tenant := range crowd(t, "{}", 300, flows...) {
		served[tenant]++
		least, most := math.MaxInt, 0
		for _, f := range flows {
			least, most = min(least, served[f]), max(most, served[f])
		}
		if most-least > 1 {
			t.Fatalf("after %d grants: %v", i+1, served)
		}
	}
}

// A flood of 64 closed-loop workers delays a quiet flow by at most one grant between its enqueue and its own grant,
// however long the flood has lasted. With newcomers first it delays it by none.
func TestFloodBesideAQuietFlow(t *testing.T) {
	t.Parallel()
	t.Run("ties by arrival", func(t *testing.T) { floodBesideAQuietFlow(t, byTenant, 1) })
	t.Run("newcomers first", func(t *testing.T) {
		floodBesideAQuietFlow(t, "flows: { key: [\"header:x-tenant\"], tieBreak: newcomer }\n", 0)
	})
}

func floodBesideAQuietFlow(t *testing.T, flows string, most int) {
	v := newValve()
	s := start(t, setup{models: v.one(), config: flows + single})
	var flood sync.WaitGroup
	var over atomic.Bool
	for range 64 {
		flood.Go(func() {
			for !over.Load() {
				wantServed(t, "the flood", s.send(from("flood")))
			}
		})
	}
	s.epp.waitFor(63, "weir_queue_length")

	granted := 0 // to the model server, and let through
	atServer := func() {
		t.Helper()
		expect.True(t, "the next one is granted", func() bool { return len(s.models[0].Records()) > granted })
	}
	for i := range 20 {
		// The quiet flow's requests come at various points of the flood. While one enters the queue, the valve is
		// closed: no grants but those below come between its enqueue and its own.
		v.pass(1 + i%5)
		granted += 1 + i%5
		atServer()
		s.epp.waitFor(63, "weir_queue_length")
		quiet := s.begin(from("quiet-" + strconv.Itoa(i%2)))
		s.epp.waitFor(64, "weir_queue_length")
		s.epp.waitFor(2, "weir_active_flows")
		before := len(s.models[0].Records())
		for answered := false; !answered; {
			v.pass(1)
			granted++
			atServer()
			answered = slices.Contains(tenants(s.models[0])[before:], "quiet-"+strconv.Itoa(i%2))
		}
		if n := len(s.models[0].Records()) - before - 1; n > most {
			t.Errorf("%d grants to the flood before the quiet one's", n)
		}
		v.pass(1) // the quiet request itself
		granted++
		wantServed(t, "the quiet flow", quiet.wait())
	}
	over.Store(true)
	v.open()
	flood.Wait()
	s.epp.settled()
	if got := s.epp.outcomes(); len(got) != 1 {
		t.Errorf("outcomes are %v: none was to be turned away", got)
	}
}

// No later request overtakes waiting ones, even inside the band, where the stock would let an arrival bypass an empty
// queue.
func TestNoBarging(t *testing.T) {
	t.Parallel()
	v := newValve()
	s := start(t, setup{
		models: []modelsim.Config{v.on(recorded(8))},
		config: byTenant + "requestQueueController: { watermarkPerBackend: 2, lowerBoundPerBackend: 1, upperBoundPerBackend: 3 }\n",
	})
	for i := range 3 {
		s.begin(from("bypass"))
		s.epp.waitFor(float64(i+1), "weir_stock_level")
	}
	s.begin(from("waiter"))
	s.epp.waitFor(1, "weir_queue_length")

	v.pass(2) // down to 1: below the upper bound, but not below the lower
	s.epp.waitFor(1, "weir_stock_level")
	s.begin(from("late")) // another flow: alone, it would go
	s.epp.waitFor(2, "weir_queue_length")

	v.open()
	s.epp.settled()
	want := []string{"bypass", "bypass", "bypass", "waiter", "late"}
	if got := tenants(s.models[0]); !slices.Equal(got, want) {
		t.Errorf("served %v, want %v", got, want)
	}
	if n := s.epp.value("weir_bypass_total"); n != 3 {
		t.Errorf("bypassed: %v, want 3", n)
	}
}
