package integration

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/modelsim"
)

// An unbounded stock is like Dynamo's without thresholds. Nothing waits, even at an endpoint that reports slots, and
// the endpoints share the requests. The gauges of the bounds are infinite, and the stock's utilisation is 0. One
// warning says so. A reload to a bound takes effect at once, and one back to no bound releases all.
func TestUnboundedStock(t *testing.T) {
	t.Parallel()
	const all = 60
	with := func(slots string) string {
		return "profile: dynamo-drr\nrequestQueueController: { slotsPerBackend: " + slots + " }\n" +
			"classes: [ { name: gold, quantum: 512 }, { name: iron, quantum: 128 } ]\n" +
			"tiers: [ { name: default, minPriority: null, reservedFloor: 1, reservedPerSlot: 0.5 } ]\n"
	}
	file := newConfigFile(t, with("unbounded"))
	v := newValve()
	s := start(t, setup{
		models: []modelsim.Config{v.on(recorded(1)), v.on(recorded(1))}, file: true, flags: []string{"--config-file=" + file.path},
	})
	s.listEndpoints()
	s.listEndpoints(fmt.Sprintf("{ address: %q, slots: 1 }", s.models[0].Address()), fmt.Sprintf("{ address: %q }", s.models[1].Address()))
	expect.True(t, "the warning", func() bool {
		return strings.Contains(s.epp.Log.String(), "slotsPerBackend: unbounded: while a backend is ready, requests wait only for a cap")
	})
	held := make([]*pending, all)
	for i := range held {
		held[i] = s.begin(inClass([]string{"gold", "iron"}[i%2], "t", 512))
	}
	s.epp.waitFor(all, "weir_stock_level")
	for _, name := range []string{"weir_upper_bound", "weir_lower_bound", "weir_watermark", "weir_stock_capacity"} {
		if got := s.epp.value(name); !math.IsInf(got, 1) {
			t.Errorf("%s is %v", name, got)
		}
	}
	for _, name := range []string{"weir_queue_length", "weir_stock_utilisation", "weir_tier_reserved"} {
		if got := s.epp.value(name); got != 0 {
			t.Errorf("%s is %v, want 0", name, got)
		}
	}
	for _, m := range s.models {
		if n := s.epp.value("weir_endpoint_in_flight", "endpoint", m.Address()); n != all/2 {
			t.Errorf("%v at %s, want %d", n, m.Address(), all/2)
		}
		if got := s.epp.value("weir_endpoint_bound", "endpoint", m.Address()); !math.IsInf(got, 1) {
			t.Errorf("weir_endpoint_bound is %v", got)
		}
	}
	if got := s.epp.status(); !strings.Contains(got, "lower bound +Inf, watermark +Inf, upper bound +Inf") {
		t.Errorf("the page says\n%s", got)
	}

	// The endpoints came after the start, so no warning mentions the one with slots.
	s.epp.told(1, `"configuration: `)

	file.write(with("1"))
	s.epp.reloaded(1, 0, 1)
	if got := s.epp.value("weir_stock_capacity"); got != 2 {
		t.Errorf("weir_stock_capacity is %v, want 2", got)
	}
	held = append(held, s.begin(inClass("gold", "late", 1)), s.begin(inClass("iron", "late", 1)))
	s.epp.waitFor(2, "weir_queue_length")
	file.write(with("unbounded"))
	s.epp.reloaded(2, 0, 1)
	s.epp.waitFor(0, "weir_queue_length")
	v.open()
	for _, p := range held {
		wantServed(t, "a request", p.wait())
	}
	s.epp.settled()
}
