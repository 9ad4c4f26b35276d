package integration

import (
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/expect"
)

// The metrics do not reveal waiting tenants: the pages that show them have a port of their own.
func TestMetricsPortNamesNoFlow(t *testing.T) {
	t.Parallel()
	s := start(t, setup{config: `flows: { key: ["header:x-llm-d-inference-fairness-id"] }` + "\n", flags: []string{"--enable-pprof"}})
	page := func(root, path string) (int, string) {
		t.Helper()
		a := expect.Get(root + path)
		if a.Err != nil {
			t.Fatal(a.Err)
		}
		return a.Status, a.Body
	}
	for _, path := range []string{"/statusz", "/debug/flows", "/debug/config", "/debug/pprof/", "/debug/pprof/cmdline"} {
		if status, _ := page(s.epp.MetricsURL, path); status != 404 {
			t.Errorf("the metrics port has %s: %d", path, status)
		}
		if status, _ := page(s.epp.DebugURL, path); status != 200 {
			t.Errorf("the debug port: %s: %d", path, status)
		}
	}
	if _, text := page(s.epp.DebugURL, "/statusz"); !strings.Contains(text, s.models[0].Address()) {
		t.Errorf("/statusz does not name the endpoint:\n%s", text)
	}
	if status, _ := page(s.epp.MetricsURL, "/metrics"); status != 200 {
		t.Errorf("/metrics: %d", status)
	}
}

// The shipped Envoy configurations use no TLS to Weir, which serves TLS by default. The filter fails open, so clients
// notice nothing: Weir logs it once, with the remedy.
func TestPlaintextEnvoyAtTheTLSPort(t *testing.T) {
	t.Parallel()
	s := start(t, setup{flags: []string{"--secure-serving"}})
	for range 3 {
		if got := s.send(ask{}); got.status != 200 {
			t.Errorf("got %d %v %s, want an answer past Weir", got.status, got.err, got.body)
		}
	}
	const told = "a plaintext client at the TLS port"
	s.epp.told(1, told)
	if log := s.epp.Log.String(); !strings.Contains(log, "--secure-serving=false") {
		t.Errorf("the log is %s", log)
	}
	if n := s.epp.value("weir_extproc_streams_total"); n != 0 {
		t.Errorf("%v streams", n)
	}
}
