package integration

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/modelsim"
)

// promised is the longest time that a stopped proxy may hold its leases. gRPC's keepalive detects it after 20 s.
const promised = 30 * time.Second

// full starts a scene with 100 requests in flight and 100 queued, from one Envoy. Only the proxy's end can end them
// within these tests.
func full(t *testing.T) *scene {
	t.Helper()
	s := start(t, setup{
		models: []modelsim.Config{slow(), slow()},
		config: `
fairRequestQueue: { totalCapacity: 100, flowCapacity: 100, queueTTL: 10m }
requestQueueController: { watermarkPerBackend: 50, lowerBoundPerBackend: 50, upperBoundPerBackend: 50 }
`,
	})
	for range 200 {
		s.begin(ask{})
	}
	s.epp.waitFor(100, "weir_stock_level")
	s.epp.waitFor(100, "weir_queue_length")
	s.running(100)
	return s
}

// allBack checks that the queue, the stock and the streams are at 0 within the bound, and that each of the 200 requests
// has one outcome.
func (s *scene) allBack(bound time.Duration) {
	s.t.Helper()
	expect.Within(s.t, bound, "everything is back", func() error {
		families, err := expect.Scrape(s.epp.MetricsURL + "/metrics")
		if err != nil {
			return err
		}
		for _, gauge := range []string{"weir_queue_length", "weir_stock_level", "weir_active_flows", "weir_extproc_streams"} {
			if n := families.Sum(gauge); n != 0 {
				return fmt.Errorf("%s is %v", gauge, n)
			}
		}
		return nil
	})
	// While the streams end one by one, a freed place may go to a request whose own stream ends a moment later: it
	// counts as dispatched too. These are few: a request whose stream has ended is not dispatched.
	if got := s.epp.outcomes(); got["dispatched"] > 120 || got["dispatched"]+got["client-cancelled"] != 200 {
		s.t.Errorf("outcomes %v, want 200: 100 (and a few) dispatched, 100 client-cancelled", got)
	}
	if n := s.models[0].Stats().Started + s.models[1].Stats().Started; n != 100 {
		s.t.Errorf("the model servers saw %d requests, want 100", n)
	}
}

// If an Envoy dies, its requests end with it: all leases are returned at once.
func TestProxyKilled(t *testing.T) {
	t.Parallel()
	s := full(t)
	s.envoy().Kill()
	s.allBack(10 * time.Second) // at once, long before a keepalive would notice

	// A new Envoy is served as if nothing had happened.
	s.replaceEnvoy()
	p := s.begin(ask{})
	s.running(1)
	p.cancel()
	s.epp.settled()
}

// An Envoy that is stopped, or behind a cut cable, sends nothing at all.
func TestProxyStopped(t *testing.T) {
	t.Parallel()
	s := full(t)
	if err := s.envoy().Pause(); err != nil {
		t.Fatal(err)
	}
	s.allBack(promised)
}

// replaceEnvoy starts another Envoy in place of the first one.
func (s *scene) replaceEnvoy() {
	s.t.Helper()
	opts := envoyrun.Options{Config: "recommended", Weir: s.epp.Address}
	for _, m := range s.models {
		opts.ModelServers = append(opts.ModelServers, m.Address())
	}
	e, err := envoyrun.Start(context.Background(), opts)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(e.Kill)
	s.envoys[0] = e
}
