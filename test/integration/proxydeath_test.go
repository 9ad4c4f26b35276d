package integration

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/modelsim"
)

// promised is how long a proxy that stands still may hold its leases. gRPC's keepalive notices it after 20 s.
const promised = 30 * time.Second

// full starts a scene with 100 requests in flight and 100 queued, from one Envoy. Nothing but the proxy's end can end
// them within these tests.
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

// allBack says that the queue, the stock and the streams are at 0, and that each of the 200 has its one outcome.
func (s *scene) allBack(bound time.Duration) {
	s.t.Helper()
	within(s.t, bound, "everything is back", func() error {
		families, err := s.epp.scrape()
		if err != nil {
			return err
		}
		for _, gauge := range []string{"weir_queue_length", "weir_stock_level", "weir_active_flows", "weir_extproc_streams"} {
			if n := sum(families, gauge); n != 0 {
				return fmt.Errorf("%s is %v", gauge, n)
			}
		}
		return nil
	})
	// As the streams end one by one, a place that becomes free may be granted to a request whose own end comes a
	// moment later: it counts as dispatched too. These are few: what cannot be told any more is no dispatch.
	if got := s.epp.outcomes(); got["dispatched"] > 105 || got["dispatched"]+got["client-cancelled"] != 200 {
		s.t.Errorf("outcomes %v, want 200: 100 (and a few) dispatched, 100 client-cancelled", got)
	}
	if n := s.models[0].Stats().Started + s.models[1].Stats().Started; n != 100 {
		s.t.Errorf("the model servers saw %d requests, want 100", n)
	}
}

// An Envoy that dies takes its requests with it: all leases are back at once.
func TestProxyKilled(t *testing.T) {
	s := full(t)
	s.envoy().Kill()
	s.allBack(5 * time.Second) // at once, and long before a keepalive would notice

	// Its successor is served as if nothing had been.
	s.replaceEnvoy()
	p := s.begin(ask{})
	s.running(1)
	p.cancel()
	s.epp.settled()
}

// An Envoy that is stopped, or behind a cable that was cut, says nothing at all.
func TestProxyStopped(t *testing.T) {
	t.Parallel()
	s := full(t)
	if err := s.envoy().Pause(); err != nil {
		t.Fatal(err)
	}
	s.allBack(promised)
}

// replaceEnvoy starts another Envoy in the place of the first one.
func (s *scene) replaceEnvoy() {
	s.t.Helper()
	opts := envoyrun.Options{Config: "recommended", Weir: s.epp.address}
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
