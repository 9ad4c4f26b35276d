package integration

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/modelsim"
)

// Without its scheduler SMG limits by a token bucket over all workers, and Weir does the same. The burst passes,
// whatever the slots, requests above the rate get SMG's 429, and requests that are not inference pass. A reload
// switches the scheduler on.
func TestLimiterOnTheWire(t *testing.T) {
	t.Parallel()
	config := func(enabled bool) string {
		return fmt.Sprintf("profile: smg-priority\nflows: { key: [\"header:x-tenant\", model] }\n"+
			"requestQueueController: { slotsPerBackend: 8, enabled: %v, limiter: { rate: 0.01, burst: 3 } }\n", enabled)
	}
	file := newConfigFile(t, config(false))
	s := start(t, setup{models: []modelsim.Config{recorded(8)}, flags: []string{"--config-file=" + file.path}})
	for range 3 {
		wantServed(t, "the burst", s.send(from("a")))
	}
	for range 2 {
		got := s.send(from("a"))
		if got.status != http.StatusTooManyRequests || got.reason() != "shed" || got.failure(t).Error.Code != "scheduler_queue_full" {
			t.Errorf("above the rate: %d %s %s", got.status, got.reason(), got.body)
		}
		if ms := retryAfterMS(t, got); ms < 1000 || ms > 50_000 {
			t.Errorf("come back in %d ms", ms)
		}
	}
	wantServed(t, "no inference", s.send(ask{method: http.MethodGet, path: "/v1/models"}))
	file.write(config(true))
	s.epp.reloaded(1, 0, 1)
	for range 4 {
		wantServed(t, "with the scheduler", s.send(from("a")))
	}
	s.epp.settled()
}

// smg, "Fallback": a broken configuration never takes the data plane down. At start, with --on-invalid-config=defaults,
// Weir serves by the defaults of the profile and logs it. The first valid file takes effect, and a later broken one
// changes nothing.
func TestDefectBrokenConfigurationAtStart(t *testing.T) {
	t.Parallel()
	const slots = "profile: smg-priority\nrequestQueueController: { slotsPerBackend: 4 }\n"
	file := newConfigFile(t, slots+"tiers: [ { name: bulk, queueSise: 2 } ]\n")
	s := start(t, setup{
		models: []modelsim.Config{modelsim.Fixed(8, time.Millisecond)},
		flags:  []string{"--config-file=" + file.path, "--on-invalid-config=defaults"},
	})
	valid := func(what string, want float64) {
		t.Helper()
		s.epp.waitFor(want, "weir_config_valid")
		for range 3 {
			wantServed(t, what, s.send(from("a")))
		}
	}
	valid("by the defaults", 0)
	s.epp.told(1, "THE CONFIGURATION IS INVALID")
	file.write(slots)
	valid("by the corrected file", 1)
	file.write("tiers: [")
	valid("by the last file that was valid", 0)
	s.epp.settled()
}
