package integration

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weir-epp/weir/internal/modelsim"
)

// listEndpoints replaces the endpoints file by one with these entries, in YAML, and waits until the given number of
// backends is ready. Without probing, all listed ones are ready.
func (s *scene) listEndpoints(entries ...string) {
	s.t.Helper()
	s.epp.writeEndpoints("endpoints: [" + strings.Join(entries, ", ") + "]\n")
	s.epp.waitFor(float64(len(entries)), "weir_ready_backends")
}

// listed returns the entries of the scene's first n model servers.
func (s *scene) listed(n int) []string {
	var entries []string
	for _, m := range s.models[:n] {
		entries = append(entries, fmt.Sprintf("{ address: %q }", m.Address()))
	}
	return entries
}

// Two of three backends go away under load and return. The bounds follow the ready backends at once, and the stock
// falls as running requests end. No request is lost or stuck, and a removed backend gets no new requests.
func TestBackendsComeAndGo(t *testing.T) {
	t.Parallel()
	v := newValve()
	s := start(t, setup{
		models: []modelsim.Config{v.on(recorded(8)), v.on(recorded(8)), v.on(recorded(8))},
		file:   true,
	})
	bounds := func(lower, watermark, upper float64) {
		t.Helper()
		s.epp.waitFor(lower, "weir_lower_bound")
		s.epp.waitFor(watermark, "weir_watermark")
		s.epp.waitFor(upper, "weir_upper_bound")
	}
	bounds(5.4, 6, 6.6)
	var load sync.WaitGroup
	var over atomic.Bool
	var served atomic.Int64
	for range 30 {
		load.Go(func() {
			for !over.Load() {
				wantServed(t, "a loaded backend", s.send(ask{}))
				served.Add(1)
			}
		})
	}
	s.epp.waitFor(7, "weir_stock_level") // below the upper bound of 6.6 arrivals bypass: 7 of them
	s.epp.waitFor(23, "weir_queue_length")
	v.pass(30) // released below 5.4: six at a time
	s.epp.waitFor(6, "weir_stock_level")
	s.epp.waitFor(24, "weir_queue_length")

	s.listEndpoints(s.listed(1)...)
	bounds(1.8, 2, 2.2)
	if n := s.epp.value("weir_stock_level"); n != 6 {
		t.Errorf("the stock is %v: requests at a removed backend still run", n)
	}
	gone := len(s.models[1].Records()) + len(s.models[2].Records())
	v.pass(30)
	s.epp.waitFor(2, "weir_stock_level") // released below 1.8
	s.epp.waitFor(28, "weir_queue_length")
	if n := len(s.models[1].Records()) + len(s.models[2].Records()); n != gone {
		t.Errorf("%d requests went to backends that were gone", n-gone)
	}

	s.listEndpoints(s.listed(3)...)
	bounds(5.4, 6, 6.6)
	s.epp.waitFor(6, "weir_stock_level") // at once, without a completion
	s.epp.waitFor(24, "weir_queue_length")
	v.pass(30)
	if n := len(s.models[1].Records()) + len(s.models[2].Records()); n == gone {
		t.Error("the backends that came back get nothing")
	}
	over.Store(true)
	v.open()
	load.Wait()
	s.epp.settled()
	if got := s.epp.outcomes(); len(got) != 1 || got["dispatched"] != int(served.Load()) {
		t.Errorf("outcomes are %v, want all %d dispatched", got, served.Load())
	}
}

// With no backend ready, admissible requests wait, and go as soon as a backend is ready.
func TestHeldUntilABackendComes(t *testing.T) {
	t.Parallel()
	s := start(t, setup{models: []modelsim.Config{recorded(8)}, file: true})
	s.listEndpoints()
	s.epp.waitFor(0, "weir_upper_bound")
	var held []*pending
	for range 3 {
		held = append(held, s.begin(ask{}))
	}
	s.epp.waitFor(3, "weir_queue_length")

	s.listEndpoints(s.listed(1)...)
	for _, p := range held {
		wantServed(t, "a held request", p.wait())
	}
	s.epp.settled()
}

// Requests passed on without queueing cannot wait either.
func TestPassedOnWithoutBackends(t *testing.T) {
	t.Parallel()
	s := start(t, setup{models: []modelsim.Config{recorded(8)}, file: true})
	s.listEndpoints()
	wantRejection(t, s.send(ask{method: "GET", path: "/v1/models"}), rejection{status: 503, reason: "no-endpoint"})
}

// The endpoint-picker protocol requires an error at once if there is no endpoint to pick: holdWhenEmpty: false.
func TestNotHeldWhenEmpty(t *testing.T) {
	t.Parallel()
	s := start(t, setup{
		models: []modelsim.Config{recorded(8)}, file: true,
		config: "requestQueueController: { holdWhenEmpty: false }\n",
	})
	wantServed(t, "with a backend", s.send(ask{}))
	s.listEndpoints()
	wantRejection(t, s.send(ask{}), rejection{status: 503, reason: "no-endpoint"})
	s.epp.settled()
}

// If endpoints serve some models only, a request goes to one that serves its model. Without one it is rejected at once.
func TestModelsOfEndpoints(t *testing.T) {
	t.Parallel()
	s := start(t, setup{
		models: []modelsim.Config{recorded(8), recorded(8)}, file: true,
		config: `models: [ { name: alias, targets: [ { name: tiny } ] } ]` + "\n",
	})
	s.listEndpoints()
	s.listEndpoints(
		fmt.Sprintf("{ address: %q, models: [tiny] }", s.models[0].Address()),
		fmt.Sprintf("{ address: %q, models: [other] }", s.models[1].Address()))
	for range 4 {
		wantServed(t, "tiny", s.send(ask{}))
		wantServed(t, "its alias", s.send(ask{body: chat("alias", false)}))
		if got := s.send(ask{body: chat("other", false)}); got.status != 404 {
			t.Errorf("other: got %d, want the model server's own 404", got.status)
		}
	}
	if a, b := len(s.models[0].Records()), len(s.models[1].Records()); a != 8 || b != 4 {
		t.Errorf("the servers got %d and %d requests, want 8 and 4", a, b)
	}
	unknown := rejection{status: 404, reason: "unknown-model", kind: "invalid_request_error", param: "model", final: true}
	got := s.send(ask{body: chat("nobody's", false)})
	wantRejection(t, got, unknown)
	if !strings.Contains(got.body, `\"nobody's\"`) {
		t.Errorf("the model is not named: %s", got.body)
	}
	unknown.kind, unknown.param = "not_found_error", ""
	wantAnthropicRejection(t, s.send(ask{path: "/v1/messages", body: chat("nobody's", false)}), unknown)
	s.epp.waitFor(2, "weir_requests_total", "outcome", "unknown-model")
	// An endpoint without a list may serve any model.
	s.listEndpoints()
	s.listEndpoints(
		fmt.Sprintf("{ address: %q }", s.models[0].Address()),
		fmt.Sprintf("{ address: %q, models: [other] }", s.models[1].Address()))
	if got := s.send(ask{body: chat("nobody's", false)}); got.status != 404 || got.reason() != "" {
		t.Errorf("with an endpoint without a list: got %d %q, want the model server's own 404", got.status, got.reason())
	}
	s.epp.settled()
}

// A model whose only endpoint has left, scaled to zero, is not unknown: its clients get a Retry-After. So do clients of
// a model that the configuration names and no endpoint has listed yet. Requests never make an invented name known.
func TestModelsThatLeave(t *testing.T) {
	t.Parallel()
	s := start(t, setup{
		models: []modelsim.Config{recorded(8), recorded(8)}, file: true,
		config: `models: [ { name: alias, targets: [ { name: tiny } ] }, { name: soon, targets: [ { name: next-week } ] } ]` + "\n",
	})
	stays := fmt.Sprintf("{ address: %q, models: [stays] }", s.models[0].Address())
	leaves := fmt.Sprintf("{ address: %q, models: [tiny, leaves] }", s.models[1].Address())
	unknown := rejection{status: 404, reason: "unknown-model", kind: "invalid_request_error", param: "model", final: true}
	away := rejection{status: 503, reason: "no-endpoint"}
	s.listEndpoints()
	s.listEndpoints(stays)
	for _, model := range []string{"alias", "tiny", "soon", "next-week"} {
		wantRejection(t, s.send(ask{body: chat(model, false)}), away)
	}
	for i := range 50 {
		wantRejection(t, s.send(ask{body: chat(fmt.Sprint("leaves", i), false)}), unknown)
	}
	wantRejection(t, s.send(ask{body: chat("leaves", false)}), unknown)
	for range 2 {
		s.listEndpoints(stays, leaves)
		wantServed(t, "tiny", s.send(ask{}))
		s.listEndpoints(stays)
		for _, model := range []string{"alias", "tiny", "leaves"} {
			wantRejection(t, s.send(ask{body: chat(model, false)}), away)
		}
		wantRejection(t, s.send(ask{body: chat("leaves0", false)}), unknown)
	}
	s.epp.settled()
}

// With probing, a backend is ready only after its first success. A dead backend becomes unready, and is used again
// after its return.
func TestProbedBackends(t *testing.T) {
	t.Parallel()
	cfg := recorded(8)
	cfg.Address = "127.0.0.3:0" // an address whose port no other process takes meanwhile
	s := start(t, setup{
		models: []modelsim.Config{cfg, cfg},
		flags:  []string{"--probe-path=/health", "--probe-interval=100ms"},
	})
	s.epp.waitFor(2, "weir_ready_backends")

	s.models[1].Close()
	s.epp.waitFor(1, "weir_ready_backends")
	s.epp.waitFor(2.2, "weir_upper_bound")
	for range 4 {
		wantServed(t, "with one backend", s.send(ask{}))
	}
	if n := len(s.models[0].Records()); n != 4 {
		t.Errorf("the backend that is left got %d of 4", n)
	}

	cfg.Address = s.models[1].Address()
	back, err := modelsim.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(back.Close)
	s.epp.waitFor(2, "weir_ready_backends")
	for range 4 {
		wantServed(t, "with two backends", s.send(ask{}))
		s.epp.waitFor(0, "weir_stock_level")
	}
	if n := len(back.Records()); n != 2 {
		t.Errorf("the backend that is back got %d of 4, want its half", n)
	}
}

// Without a configured path, Weir probes /health. A dead server becomes unready. A server that lacks the path, or
// requires a key for it, is ready while it answers, and Weir logs one warning.
func TestProbedByDefault(t *testing.T) {
	t.Parallel()
	t.Run("a server that has the path", func(t *testing.T) {
		cfg := recorded(8)
		s := start(t, setup{models: []modelsim.Config{cfg, cfg}, shipped: true, flags: []string{"--probe-interval=100ms"}})
		s.epp.waitFor(2, "weir_ready_backends")
		s.models[1].Close()
		s.epp.waitFor(1, "weir_ready_backends")
		for range 4 {
			wantServed(t, "with one backend", s.send(ask{}))
		}
	})
	for _, status := range []int{401, 404} {
		t.Run(fmt.Sprintf("servers that answer %d", status), func(t *testing.T) {
			var servers []*httptest.Server
			var addresses []string
			for range 2 {
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/health" {
						w.WriteHeader(status)
					}
				}))
				t.Cleanup(server.Close)
				servers = append(servers, server)
				addresses = append(addresses, server.Listener.Addr().String())
			}
			e := startEPP(t, setup{shipped: true, flags: []string{"--probe-interval=100ms"}}, addresses)
			e.waitFor(2, "weir_ready_backends")
			servers[0].Close()
			e.waitFor(1, "weir_ready_backends")
			e.told(1, "--probe-path: an endpoint answers")
		})
	}
}

// A rolling update: an engine leaves with all its streams running, and another one replaces it. The new engine has as
// much work as it can run at once, and only the end of its own streams makes more room.
func TestARollingUpdateLeavesNoEngineIdle(t *testing.T) {
	t.Parallel()
	old, fresh := newValve(), newValve()
	s := start(t, setup{
		models: []modelsim.Config{old.on(recorded(8)), fresh.on(recorded(8))},
		file:   true, config: "profile: recommended\nrequestQueueController: { slotsPerBackend: 4 }\n",
	})
	s.listEndpoints(s.listed(1)...)
	var load sync.WaitGroup
	for range 20 {
		load.Go(func() { wantServed(t, "a request of the update", s.send(ask{})) })
	}
	s.epp.waitFor(4, "weir_stock_level")
	s.epp.waitFor(16, "weir_queue_length")

	s.listEndpoints(fmt.Sprintf("{ address: %q }", s.models[1].Address()))
	s.epp.waitFor(12, "weir_queue_length")
	s.epp.waitFor(8, "weir_stock_level") // 4 still run at the old one
	old.open()
	s.epp.waitFor(4, "weir_stock_level")
	s.epp.waitFor(12, "weir_queue_length")
	fresh.open()
	load.Wait()
	if n, m := len(s.models[0].Records()), len(s.models[1].Records()); n != 4 || m != 16 {
		t.Errorf("%d at the old engine, %d at the new one", n, m)
	}
	s.epp.settled()
}
