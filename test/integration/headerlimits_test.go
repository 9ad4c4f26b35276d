package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/modelsim"
)

// envoysOwnHeaderLimits is an Edit that keeps Envoy's own limits for request headers, 60 KiB and 100.
func envoysOwnHeaderLimits(b envoyrun.Bootstrap) error {
	delete(b.ConnectionManager(), "max_request_headers_kb")
	delete(b.ConnectionManager(), "common_http_protocol_options")
	return nil
}

// A request with too many or too large headers gets 413, which no client repeats, and is neither queued nor charged. It
// never gets Envoy's 503 for headers that exceed its limit together with Weir's own. Requests beyond Envoy's limit do
// not reach Weir, and the shipped files keep that limit far from Weir's.
func TestRequestsNearTheHeaderLimits(t *testing.T) {
	t.Parallel()
	rewrites := "models: [ { name: t, targets: [ { name: tiny } ] } ]\nscheduling: { fallbacks: 2 }\n"
	for _, test := range []struct {
		config, weir string
		own          bool // Envoy has its own limits
	}{
		{"recommended", "", false},
		{"recommended", rewrites, false},
		{"recommended", rewrites, true},
		{"header-only", "", true},
		{"full-duplex", rewrites, true},
		{"streamed", "", true},
		{"gate", "", false},
	} {
		t.Run(fmt.Sprintf("%s, own %v, rewrites %v", test.config, test.own, test.weir != ""), func(t *testing.T) {
			t.Parallel()
			with := setup{envoys: []string{test.config}, models: []modelsim.Config{recorded(8), recorded(8)}, config: test.weir}
			if test.own {
				with.edit = envoysOwnHeaderLimits
			}
			s := start(t, with)
			served, refused := 0, 0
			try := func(what string, unannounced bool, header []string) {
				t.Helper()
				a := ask{header: header, unannounced: unannounced}
				if test.weir != "" {
					a.body = chat("t", false)
				}
				got := s.send(a)
				switch {
				case got.status == 200:
					served++
				case got.status == 413 && got.reason() == "too-large" && got.header.Get("x-should-retry") == "false":
					refused++
				case test.own && got.err != nil: // by Envoy, whose 431 is replaced
				default:
					t.Errorf("%s: got %d %q %v %.200s", what, got.status, got.reason(), got.err, got.body)
				}
			}
			counts, sizes := []int{150, 190}, []int{70_000, 96_000}
			for n := 82; n <= 98; n++ {
				counts = append(counts, n)
			}
			for size := 60_000; size <= 61_500; size += 50 {
				sizes = append(sizes, size)
			}
			for _, n := range counts {
				var header []string
				for i := range n {
					header = append(header, fmt.Sprintf("x-h%d", i), "v")
				}
				try(fmt.Sprintf("%d headers", n), n%2 == 0, header)
			}
			if served == 0 || refused == 0 {
				t.Errorf("by number: %d served, %d refused", served, refused)
			}
			wereServed, wereRefused := served, refused
			for _, size := range sizes {
				try(fmt.Sprintf("%d bytes", size), size%100 == 0, []string{"x-big", strings.Repeat("v", size)})
			}
			if served == wereServed || refused == wereRefused {
				t.Errorf("by size: %d served, %d refused", served-wereServed, refused-wereRefused)
			}
			s.epp.settled()
			s.epp.waitFor(float64(served), "weir_requests_total", "outcome", "dispatched")
			s.epp.waitFor(float64(refused), "weir_requests_total", "outcome", "too-large")
			s.epp.waitFor(float64(served), "weir_flow_served_cost_total")
			if n := s.models[0].Stats().Started + s.models[1].Stats().Started; int(n) != served {
				t.Errorf("model servers had %d requests, want %d", n, served)
			}
			if n := s.extProc("rejected_header_mutations"); n != 0 {
				t.Errorf("Envoy has rejected Weir's replies %v times", n)
			}
		})
	}
}

// An answer with nearly as many headers as Envoy accepts arrives without the queue's state, and is not lost. More room
// for the headers of requests is no room for those of answers.
func TestQueueStateBesideManyHeaders(t *testing.T) {
	t.Parallel()
	told := func(limits string, headers int) bool {
		s := start(t, setup{
			config: "responses: { queueState: true }\n" + limits, models: []modelsim.Config{recorded(8)},
			edit: func(b envoyrun.Bootstrap) error {
				var add []any
				for i := range headers {
					add = append(add, map[string]any{"header": map[string]any{"key": fmt.Sprintf("x-r%d", i), "value": "v"}})
				}
				envoyrun.Object(b.ConnectionManager(), "route_config", "virtual_hosts", 0)["response_headers_to_add"] = add
				return nil
			},
		})
		got := s.send(ask{header: []string{"x-weir-queue-state", "1"}})
		wantServed(t, fmt.Sprintf("%san answer with %d headers", limits, headers), got)
		return got.header.Get("x-weir-queue-length") != ""
	}
	for _, limits := range []string{"", "limits: { maxHeaders: 198, maxHeaderBytes: 97792 }\n"} {
		for headers, want := range map[int]bool{90: true, 94: false, 98: false} {
			if got := told(limits, headers); got != want {
				t.Errorf("%s%d headers: the queue's state is there: %v", limits, headers, got)
			}
		}
	}
}
