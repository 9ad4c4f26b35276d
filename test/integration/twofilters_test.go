package integration

import (
	"bufio"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/modelsim"
)

// With two ext_proc filters to the same Weir, each request is queued and counted once, and the log has the remedy. If
// both filters requested a lease, with room for one request no request would ever get its second.
func TestTwoFilters(t *testing.T) {
	t.Parallel()
	for _, config := range []string{"recommended", "header-only", "full-duplex", "streamed"} {
		t.Run(config, func(t *testing.T) {
			t.Parallel()
			s := start(t, setup{
				envoys: []string{config}, models: []modelsim.Config{recorded(8)}, config: byTenant + single,
				edit: func(b envoyrun.Bootstrap) error {
					manager := b.ConnectionManager()
					filters := envoyrun.List(manager, "http_filters")
					at := slices.IndexFunc(filters, func(f any) bool { return envoyrun.Object(f)["name"] == envoyrun.ExtProcFilter })
					second := maps.Clone(envoyrun.Object(filters[at]))
					second["name"] = "a.second.one"
					manager["http_filters"] = slices.Insert(filters, at+1, any(second))
					return nil
				},
			})
			var all []*pending
			for range 5 {
				all = append(all, s.begin(ask{}))
			}
			for _, p := range all {
				wantServed(t, "a request", p.wait())
			}
			s.epp.settled()
			if got := s.epp.outcomes(); got["dispatched"] != 5 || len(got) != 1 {
				t.Errorf("outcomes are %v, want 5 dispatched", got)
			}
			if n := s.epp.value("weir_extproc_placed_before_total"); n != 5 {
				t.Errorf("%v were seen to come from another filter, want 5", n)
			}
			s.epp.told(1, "has its destination already")
		})
	}
}

// To Envoy an internal redirect is a new request, with its own metadata: it is queued and counted again, and does not
// count as placed.
func TestInternalRedirectQueuesAgain(t *testing.T) {
	t.Parallel()
	s := before(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/first" {
			w.Header().Set("location", "http://weir/second")
			w.WriteHeader(http.StatusTemporaryRedirect)
			return
		}
		w.Header().Set("x-path", r.URL.Path)
	}), setup{
		envoys: []string{"recommended"}, config: byTenant + single,
		edit: func(b envoyrun.Bootstrap) error {
			b.Route()["internal_redirect_policy"] = map[string]any{"max_internal_redirects": 1, "redirect_response_codes": []any{307}}
			return nil
		},
	})
	conn := s.write(rawRequest("POST", "/first", "", "content-length: 0"))
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || response.StatusCode != http.StatusOK || response.Header.Get("x-path") != "/second" {
		t.Fatalf("got %v, %v", response, err)
	}
	s.epp.settled()
	if got := s.epp.outcomes(); got["dispatched"] != 2 {
		t.Errorf("outcomes are %v, want 2 dispatched", got)
	}
	if n := s.epp.value("weir_extproc_placed_before_total"); n != 0 {
		t.Errorf("%v passed as placed before", n)
	}
}

// A second value of a trusted header is refused, with the header's name, even if Envoy joins the two with a comma.
func TestAppendedHeadersAreRefused(t *testing.T) {
	t.Parallel()
	s := start(t, setup{
		models: []modelsim.Config{recorded(8)},
		config: "flows: { key: [\"header:x-tenant\", model] }\ntrustedHeaders: { cost: x-cost }\n" +
			"requestQueueController: { deadlineHeaders: [x-envoy-expected-rq-timeout-ms, grpc-timeout, x-deadline-ms] }\n",
		edit: envoyrun.KeepHeader("x-envoy-expected-rq-timeout-ms"),
	})
	for _, header := range []string{"x-tenant", "x-cost", "x-deadline-ms", "grpc-timeout"} {
		conn := s.write(rawRequest("POST", "/v1/chat/completions", chat("tiny", false), header+": 5", header+": 7"))
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		body := make([]byte, 1000)
		n, _ := response.Body.Read(body)
		if response.StatusCode != http.StatusBadRequest || !strings.Contains(string(body[:n]), `"param":"`+header+`"`) {
			t.Errorf("%s: got %d %s", header, response.StatusCode, body[:n])
		}
	}
	s.epp.settled()
	if n := len(s.models[0].Records()); n != 0 {
		t.Errorf("%d went on", n)
	}
}
