package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/modelsim"
)

// The metrics show each engine's load: requests in flight and bound by endpoint, for as long as the endpoint is in the
// pool.
func TestLoadByEndpoint(t *testing.T) {
	t.Parallel()
	v := newValve()
	s := start(t, setup{models: []modelsim.Config{v.on(recorded(8)), v.on(recorded(8))}, config: byTenant, file: true})
	if n := s.epp.value("weir_queue_length") + s.epp.value("weir_stock_level"); n != 0 {
		t.Errorf("before the first request %v", n)
	}
	families := s.epp.scrape()
	for _, name := range []string{"weir_queue_length", "weir_stock_level"} {
		if len(families[name].GetMetric()) == 0 {
			t.Errorf("%s does not exist before the first request", name)
		}
	}
	for range 3 {
		s.begin(from("a"))
	}
	s.epp.waitFor(3, "weir_stock_level")
	s.epp.waitFor(3, "weir_endpoint_in_flight")
	a, b := s.models[0].Address(), s.models[1].Address()
	one, other := s.epp.value("weir_endpoint_in_flight", "endpoint", a), s.epp.value("weir_endpoint_in_flight", "endpoint", b)
	if one+other != 3 || one < 1 || other < 1 {
		t.Errorf("in flight are %v and %v, want 1 and 2", one, other)
	}
	if bound := s.epp.value("weir_endpoint_bound", "endpoint", a); bound != 2.2 {
		t.Errorf("the bound is %v, want 2.2 (the watermark of 2 and a tenth)", bound)
	}
	s.epp.setEndpoints(a)
	s.epp.waitFor(one, "weir_endpoint_in_flight") // the other one's series is gone, although it may have requests in flight
	v.open()
	s.epp.settled()
	s.epp.waitFor(0, "weir_endpoint_in_flight")
}

// The metrics by flow show the waiting tenant and the rejected one.
func TestRejectionsByTenant(t *testing.T) {
	t.Parallel()
	v := newValve()
	s := start(t, setup{models: v.one(), config: byTenant + single + "fairRequestQueue: { totalCapacity: 10, flowCapacity: 1 }\n"})
	s.begin(from("quiet"))
	s.epp.waitFor(1, "weir_stock_level")
	s.begin(from("noisy"))
	s.epp.waitFor(1, "weir_queue_length")
	for range 3 {
		if got := s.send(from("noisy")); got.reason() != "flow-full" {
			t.Fatalf("got %d %q", got.status, got.reason())
		}
	}
	s.epp.waitFor(3, "weir_flow_rejections_total", "flow", "noisy", "outcome", "flow-full")
	v.open()
	s.epp.settled()
	if n := s.epp.value("weir_flow_rejections_total"); n != 3 {
		t.Errorf("%v rejections in all", n)
	}
	families := s.epp.scrape()
	waits := map[string]uint64{}
	for _, m := range families["weir_flow_queue_wait_seconds"].GetMetric() {
		waits[m.GetLabel()[0].GetValue()] = m.GetSummary().GetSampleCount()
	}
	if fmt.Sprint(waits) != "map[noisy:1 quiet:0]" {
		t.Errorf("waits: %v", waits)
	}
}

// Weir picks an endpoint that Envoy lacks, and another one serves its requests: none is rejected, but Weir counts
// capacity that does not exist. A metric counts these requests by the picked endpoint, and Weir logs it once.
func TestEndpointThatEnvoyLacks(t *testing.T) {
	t.Parallel()
	for _, envoy := range []string{"recommended", "full-duplex", "gate"} {
		t.Run(envoy, func(t *testing.T) {
			s := start(t, setup{envoys: []string{envoy}, models: []modelsim.Config{recorded(8), recorded(8)}, file: true})
			stranger, err := modelsim.Start(recorded(8))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { stranger.Close() })
			known := []string{s.models[0].Address(), s.models[1].Address()}
			s.epp.setEndpoints(append(known, stranger.Address())...)
			s.epp.waitFor(3, "weir_ready_backends")
			for range 12 {
				wantServed(t, "a request", s.send(ask{}))
			}
			s.epp.settled()
			if n := len(stranger.Records()); n != 0 {
				t.Errorf("Envoy sent %d to an endpoint that it does not have", n)
			}
			if n := s.epp.value("weir_served_elsewhere_total", "endpoint", stranger.Address()); n < 2 {
				t.Errorf("%v of 12 are counted as served elsewhere, want several", n)
			}
			for _, address := range known {
				if n := s.epp.value("weir_served_elsewhere_total", "endpoint", address); n != 0 {
					t.Errorf("%v picks of %s are said to be served elsewhere", n, address)
				}
			}
			s.epp.told(1, "elsewhere")
			var warnings []string
			for line := range strings.Lines(s.epp.Log.String()) {
				if strings.Contains(line, "elsewhere") {
					warnings = append(warnings, line)
				}
			}
			if len(warnings) != 1 || !strings.Contains(warnings[0], `"level":"warn"`) || !strings.Contains(warnings[0], stranger.Address()) {
				t.Errorf("the log says %q", warnings)
			}
			s.epp.setEndpoints(known...)
			s.epp.waitFor(0, "weir_served_elsewhere_total")
		})
	}
}

// With the shipped settings, an endpoint that Envoy lacks gets nothing after eight requests in a row that another
// endpoint served.
func TestEngineThatEnvoyLacks(t *testing.T) {
	t.Parallel()
	s := start(t, setup{models: []modelsim.Config{recorded(8), recorded(8)}, file: true, config: "profile: recommended\nscheduling: { affinity: off }\n"})
	stranger, err := modelsim.Start(recorded(8))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stranger.Close() })
	s.epp.setEndpoints(s.models[0].Address(), s.models[1].Address(), stranger.Address())
	s.epp.waitFor(3, "weir_ready_backends")
	for range 100 {
		wantServed(t, "a request", s.send(ask{}))
	}
	s.epp.settled()
	if n := s.epp.value("weir_served_elsewhere_total", "endpoint", stranger.Address()); n != 8 {
		t.Errorf("%v of 100 requests were meant for it, want 8", n)
	}
	s.epp.waitFor(1, "weir_endpoint_circuit_open", "endpoint", stranger.Address())
	for _, m := range s.models {
		s.epp.waitFor(0, "weir_endpoint_circuit_open", "endpoint", m.Address())
	}
}

// An endpoint that only Envoy has gets nothing from Weir, however full the others are. While Weir is away, it gets
// uncounted requests.
func TestEndpointThatWeirLacks(t *testing.T) {
	t.Parallel()
	s := start(t, setup{models: []modelsim.Config{recorded(8), recorded(8)}, file: true})
	known, unknown := s.models[0], s.models[1]
	s.epp.setEndpoints(known.Address())
	s.epp.waitFor(1, "weir_ready_backends")
	for range 12 {
		wantServed(t, "a request", s.send(ask{}))
	}
	s.epp.settled()
	if n := len(unknown.Records()); n != 0 {
		t.Errorf("Weir sent %d to an endpoint that it does not have", n)
	}
	s.epp.kill()
	for range 24 { // the two take turns at random
		if got := s.send(ask{}); got.status != 200 {
			t.Errorf("without Weir: %d %v", got.status, got.err)
		}
	}
	if n := len(unknown.Records()); n == 0 {
		t.Error("nothing came past Weir")
	}
}
