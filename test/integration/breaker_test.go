package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/modelsim"
)

// defaultBreaker is Envoy's default limit of requests for a cluster.
const defaultBreaker = 1024

// Each waiting request is a request on Envoy's cluster for Weir, and Envoy's default circuit breaker allows 1,024 of
// them. Further requests never reach Weir, whose number of streams stays at exactly that. Weir logs it once, with the
// remedy.
func TestDefaultCircuitBreakerIsNoticed(t *testing.T) {
	t.Parallel()
	s := start(t, setup{
		envoys: []string{"fail-closed"},
		models: []modelsim.Config{slow()},
		config: "fairRequestQueue: { totalCapacity: 5000, flowCapacity: 5000, queueTTL: 10m }\n",
		edit: func(b envoyrun.Bootstrap) error {
			delete(b.Cluster(envoyrun.WeirCluster), "circuit_breakers")
			return nil
		},
	})
	warnings := func() int {
		return strings.Count(s.epp.Log.String(), "the number of streams stands at exactly 1024")
	}
	var held []*pending
	for range defaultBreaker {
		held = append(held, s.begin(ask{}))
	}
	s.epp.waitFor(defaultBreaker, "weir_extproc_streams")
	if n := warnings(); n != 0 {
		t.Errorf("warned %d times when 1,024 were reached for the first time, which may be chance", n)
	}

	// Envoy answers requests beyond the limit without Weir.
	for range 20 {
		if got := s.send(ask{}); got.status != 503 || got.reason() != "" {
			t.Fatalf("beyond the breaker: %d %q %v", got.status, got.reason(), got.err)
		}
	}

	// For each end one request begins: with more than 1,024 clients, the number never exceeds the limit.
	for i := range 20 {
		held[i].cancel()
		s.epp.waitFor(defaultBreaker-1, "weir_extproc_streams")
		held = append(held, s.beginUntilItCounts(defaultBreaker))
	}
	expect.Eventually(t, "a warning", func() error {
		if n := warnings(); n != 1 {
			return fmt.Errorf("%d warnings, want 1", n)
		}
		return nil
	})
	for _, remedy := range []string{"circuit_breakers", "max_requests"} {
		if !strings.Contains(s.epp.Log.String(), remedy) {
			t.Errorf("the warning does not say %s", remedy)
		}
	}
	for _, p := range held {
		p.cancel()
	}
	s.epp.settled()
}

// beginUntilItCounts begins a request and waits for the given number of streams. Envoy frees a place a moment after
// Weir has, so the first attempts may still exceed the breaker.
func (s *scene) beginUntilItCounts(streams float64) *pending {
	s.t.Helper()
	p := s.begin(ask{})
	expect.Eventually(s.t, "a request in the free place", func() error {
		select {
		case <-p.done:
			p = s.begin(ask{})
		default:
		}
		if n := s.epp.value("weir_extproc_streams"); n != streams {
			return fmt.Errorf("%v streams", n)
		}
		return nil
	})
	return p
}
