package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/modelsim"
)

// roomy returns a configuration with the given slots on each backend, in which the tenant is the flow.
func roomy(slots int, more string) string {
	return byTenant + fmt.Sprintf("requestQueueController: { watermarkPerBackend: %d, lowerBoundPerBackend: %[1]d, upperBoundPerBackend: %[1]d, %s }\n", slots, more)
}

// wantBypasses checks that the request is dispatched without waiting.
func (s *scene) wantBypasses(a ask) *pending {
	s.t.Helper()
	before := s.epp.value("weir_bypass_total")
	p := s.begin(a)
	s.epp.waitFor(before+1, "weir_bypass_total")
	return p
}

// A flow at its cap waits although the backend has room, and requests behind it do not wait (C9). When one of its own
// requests ends, its next one goes.
func TestFlowAtItsCapBlocksNobody(t *testing.T) {
	t.Parallel()
	v := newValve()
	s := start(t, setup{models: []modelsim.Config{v.on(recorded(8))}, config: roomy(8, "maxInFlightPerFlow: 2")})
	heavy := []*pending{s.wantBypasses(from("heavy")), s.wantBypasses(from("heavy"))}
	heavy = append(heavy, s.fill(3, from("heavy"))...)

	// The other flows do not wait behind it, and its cap does not count for them.
	light := []*pending{s.wantBypasses(from("a")), s.wantBypasses(from("b")), s.wantBypasses(from("a"))}
	light = append(light, s.fill(1, from("a"))...) // its third
	s.epp.waitFor(5, "weir_stock_level")
	s.epp.waitFor(4, "weir_queue_length")

	// The oldest requests end first, also heavy's: its third takes the place, and the cap still holds.
	v.pass(1)
	wantServed(t, "heavy's first", heavy[0].wait())
	s.epp.waitFor(3, "weir_queue_length")
	s.epp.waitFor(5, "weir_stock_level")
	v.open()
	for _, p := range append(heavy, light...) {
		wantServed(t, "a request", p.wait())
	}
	s.epp.settled()
	if got := tenants(s.models[0])[:6]; !slices.Equal(got, []string{"heavy", "heavy", "a", "b", "a", "heavy"}) {
		t.Errorf("served %v", got)
	}
}

// With the cap at each endpoint a flow's requests spread, one each, and its next one waits although both endpoints have
// room. It goes to the endpoint where one of its own ends. An endpoint never has two of them.
func TestCapAtEachEndpoint(t *testing.T) {
	t.Parallel()
	valves := []*valve{newValve(), newValve()}
	s := start(t, setup{
		models: []modelsim.Config{valves[0].on(recorded(8)), valves[1].on(recorded(8))},
		config: roomy(8, "maxInFlightPerFlowPerBackend: 1"),
	})
	s.wantBypasses(from("heavy"))
	s.wantBypasses(from("heavy"))
	s.fill(2, from("heavy"))
	arrived := func(want ...int) { // heavy's, at each server
		t.Helper()
		expect.Eventually(t, "heavy's requests at the servers", func() error {
			for i, m := range s.models {
				if n := len(slices.DeleteFunc(tenants(m), func(name string) bool { return name != "heavy" })); n != want[i] {
					return fmt.Errorf("%d at server %d, want %d", n, i, want[i])
				}
			}
			return nil
		})
	}
	arrived(1, 1)

	// Other flows' requests that begin and end do not help it.
	s.wantBypasses(from("light"))
	s.wantBypasses(from("light"))
	s.epp.waitFor(4, "weir_stock_level")

	valves[1].pass(1) // heavy's, the first to arrive
	arrived(1, 2)
	s.epp.waitFor(1, "weir_queue_length")
	valves[1].pass(1) // light's
	s.epp.waitFor(3, "weir_stock_level")
	s.epp.waitFor(1, "weir_queue_length")
	valves[1].pass(1)
	arrived(1, 3)
	valves[0].open()
	valves[1].open()
	s.epp.settled()
	if got := s.epp.outcomes(); got["dispatched"] != 6 || len(got) != 1 {
		t.Errorf("outcomes are %v, want 6 dispatched", got)
	}
}

// twoPerTenant has tiers that preempt, 8 slots, and at most 2 requests of a tenant in flight.
var twoPerTenant = strings.Replace(smgTiers, "flows: {", "flows: { discipline: wfq,", 1) +
	"requestQueueController: { slotsPerBackend: 8, maxInFlightPerFlow: 2 }\n"

// A cap counts a tenant over all its tiers. With three of them and a cap of 2, 2 of its requests are in flight, and its
// next ones wait beside free slots, which other tenants get. When one ends, its next one goes, of the highest tier
// first.
func TestCapCountsTheTenantOverItsTiers(t *testing.T) {
	t.Parallel()
	v := newValve()
	s := start(t, setup{models: []modelsim.Config{v.on(recorded(8))}, config: twoPerTenant})
	clients := []*pending{s.wantBypasses(as("system", "vip")), s.wantBypasses(as("system", "vip"))}
	for i, class := range []string{"bulk", "bulk", "default", "interactive"} {
		clients = append(clients, s.begin(as(class, "vip")))
		s.epp.waitFor(float64(i+1), "weir_queue_length")
	}
	other := s.wantBypasses(as("default", "other"))
	s.epp.waitFor(3, "weir_stock_level")
	for _, class := range []string{"interactive", "default", "bulk", "bulk"} {
		before := s.epp.value("weir_tier_queue_length", "tier", class)
		v.pass(1) // the oldest one ends
		if class == "bulk" && before == 2 {
			v.pass(1) // that was the other tenant's
		}
		s.epp.waitFor(before-1, "weir_tier_queue_length", "tier", class)
	}
	s.epp.waitFor(0, "weir_queue_length")
	if n := s.epp.value("weir_stock_level"); n > 3 {
		t.Errorf("%v are in flight", n)
	}
	v.open()
	for _, p := range append(clients, other) {
		wantServed(t, "a request", p.wait())
	}
	s.epp.settled()
}

// A request of a tenant at its cap takes over a lease of its own tenant in a lower tier, beside free slots. Another
// tenant's requests go on.
func TestTenantAtItsCapPreemptsItsOwn(t *testing.T) {
	t.Parallel()
	v := newValve()
	s := start(t, setup{models: []modelsim.Config{v.on(recorded(8))}, config: twoPerTenant})
	other := s.wantBypasses(as("bulk", "other"))
	older, newer := s.wantBypasses(as("bulk", "vip")), s.wantBypasses(as("bulk", "vip"))
	urgent := s.begin(as("interactive", "vip"))
	wantPreempted(t, "the newer", "/v1/chat/completions", newer.wait())
	s.epp.waitFor(3, "weir_stock_level")
	if n := s.epp.value("weir_preempted_total", "victim_tier", "bulk", "by_tier", "interactive"); n != 1 {
		t.Errorf("%v preempted", n)
	}
	v.open()
	for what, p := range map[string]*pending{"the other tenant's": other, "the older": older, "the urgent one": urgent} {
		wantServed(t, what, p.wait())
	}
	s.epp.settled()
}
