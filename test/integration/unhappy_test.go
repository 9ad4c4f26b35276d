package integration

import (
	"flag"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/modelsim"
)

var unhappyRequests = flag.Int("unhappy", 3_000, "requests of TestUnhappy")

// The constant part of the configuration, and the parts that take turns while requests come and go.
const unhappyBase = `
flows: { key: ["header:x-llm-d-inference-fairness-id", "model"], discipline: vtc, weights: { t0: %d } }
criticality: { header: x-smg-priority }
cost: tokens
replaceTiers: true
`

var unhappyTurns = []string{`
fairRequestQueue: { capacityMode: shared, totalCapacity: 60, flowCapacity: 8, queueTTL: 100ms }
requestQueueController: { enqueueAll: true, watermarkPerBackend: 5, lowerBoundPerBackend: 5, upperBoundPerBackend: 5, maxInFlightPerFlow: 4 }
tiers: [ { name: system, canPreempt: true, minPriority: 3 }, { name: interactive, canPreempt: true, minPriority: 2 }, { name: default, minPriority: 1 }, { name: bulk } ]
limits: { maxBodyBytes: 65536, bodyTimeout: 1s }
`, `
fairRequestQueue: { capacityMode: shared, totalCapacity: 12, flowCapacity: 4, topTier: fair, queueTTL: 20ms }
requestQueueController: { enqueueAll: true, watermarkPerBackend: 2, lowerBoundPerBackend: 1, upperBoundPerBackend: 3, watermarkTokensPerBackend: 1500 }
tiers: [ { name: system, canPreempt: true, minPriority: 3 }, { name: default, minPriority: 1, starvationThreshold: 5ms }, { name: bulk } ]
limits: { maxBodyBytes: 65536, maxBodyBytesTotal: 131072, bodyTimeout: 1s }
classes: [ { name: x, quantum: 100 }, { name: y, quantum: 300 } ]
`, `
fairRequestQueue: { capacityMode: shared, totalCapacity: 100, flowCapacity: 100 }
requestQueueController: { enabled: false }
tiers: [ { name: system, minPriority: 3 }, { name: bulk } ]
limits: { maxBodyBytes: 65536 }
`, `
fairRequestQueue: { capacityMode: shared, totalCapacity: 40, flowCapacity: 10, queueTTL: 50ms }
requestQueueController: { enqueueAll: false, holdWhenEmpty: false, watermarkPerBackend: 3, lowerBoundPerBackend: 3, upperBoundPerBackend: 4, maxInFlightPerFlowPerBackend: 1, releaseSpacing: 1ms }
tiers: [ { name: interactive, canPreempt: true, minPriority: 2, reservedFloor: 1 }, { name: system, minPriority: 1 }, { name: bulk } ]
limits: { maxBodyBytes: 65536, bodyTimeout: 1s }
requestBody: always
`}

// Requests end badly in every way. Clients disconnect at any moment: while they wait, during their answer or with half
// of their body sent. Bodies are too large or no requests. Model servers refuse connections, answer with errors and
// break off. Higher tiers preempt. The queue and its TTL are too short. Meanwhile the configuration and the endpoints
// change. Afterwards every account is at 0, and the whole stock is free.
func TestUnhappy(t *testing.T) {
	t.Parallel()
	turn := func(i int) string { return fmt.Sprintf(unhappyBase, 1+i%5) + unhappyTurns[i%len(unhappyTurns)] }
	file := newConfigFile(t, turn(0))
	server := modelsim.Fixed(16, 3*time.Millisecond)
	server.Records = 0
	s := start(t, setup{
		envoys: []string{"recommended", "full-duplex", "gate"}, models: []modelsim.Config{server, server, server, server}, file: true,
		flags: []string{"--config-file=" + file.path, "--enable-pprof"}, edit: smallBuffers,
	})
	s.models[3].Close() // it refuses connections, and Envoy knows it
	whole, refusing := s.addresses()[:3], s.addresses()[3]
	s.models = s.models[:3]
	s.epp.setEndpoints(whole...)
	s.epp.waitFor(3, "weir_ready_backends")

	over, changed := make(chan struct{}), sync.WaitGroup{}
	changed.Go(func() {
		ticks := time.NewTicker(60 * time.Millisecond)
		defer ticks.Stop()
		for i := 1; ; i++ {
			select {
			case <-over:
				return
			case <-ticks.C:
			}
			switch i % 8 {
			case 0, 4:
				file.write(turn(i / 4))
			case 1:
				s.epp.setEndpoints(append([]string{refusing}, whole...)...)
			case 3:
				s.epp.setEndpoints(whole[i/8%3])
			case 5:
				s.epp.setEndpoints(refusing, whole[0], whole[1])
			case 6:
				s.epp.setEndpoints()
			default:
				s.epp.setEndpoints(whole...)
			}
		}
	})
	s.unleash(*unhappyRequests, func() {
		close(over)
		changed.Wait()
		s.epp.setEndpoints(whole...)
		file.write(turn(0))
		s.epp.waitFor(3, "weir_ready_backends")
		s.epp.waitFor(15, "weir_upper_bound")
		s.epp.waitFor(1, "weir_config_valid")
	})
	outcomes := s.epp.outcomes()
	all := []string{"preempted", "ttl-expired", "displaced", "queue-full"}
	if *unhappyRequests >= 10_000 { // fewer may be over before the configuration that sheds has its turn
		all = append(all, "shed")
	}
	for _, must := range all {
		if outcomes[must] == 0 {
			t.Errorf("no request ended as %s", must)
		}
	}
	if n := outcomes["internal"]; n > 0 {
		t.Errorf("%d requests ended as internal", n)
	}
	for _, account := range []string{
		"weir_stock_level", "weir_queue_length", "weir_active_flows", "weir_endpoint_in_flight", "weir_tier_inflight",
		"weir_tier_queue_length", "weir_extproc_streams", "weir_gate_streams", "weir_extproc_body_bytes",
		"weir_extproc_panics_total", "weir_decision_panics_total", "weir_stock_utilisation",
	} {
		s.epp.waitFor(0, account)
	}
	if flows := s.epp.waitingFlows(); len(flows) > 0 {
		t.Errorf("these are known to wait: %+v", flows)
	}
	s.wholeStockIsFree(15)
}

// wholeStockIsFree fills the stock: as many requests go at once, and none waits.
func (s *scene) wholeStockIsFree(bound int) {
	s.t.Helper()
	for _, m := range s.models {
		m.Inject(-1, modelsim.Quirk{Match: chaotic("long"), HeaderDelay: time.Second})
	}
	var all []*pending
	for i := range bound {
		all = append(all, s.begin(ask{tenant: fmt.Sprintf("after-%d", i), header: []string{chaosHeader, "long"}}))
	}
	s.epp.waitFor(float64(bound), "weir_stock_level") // all of them, while the first still runs
	for _, p := range all {
		wantServed(s.t, "a request to the idle pool", p.wait())
	}
	s.epp.settled()
}

// addresses are those of the model servers.
func (s *scene) addresses() (all []string) {
	for _, m := range s.models {
		all = append(all, m.Address())
	}
	return all
}

// half is a body of which the client sends only the first half, until it disconnects.
type half struct {
	rest []byte
	gone <-chan struct{}
}

func (h *half) Read(p []byte) (int, error) {
	if len(h.rest) == 0 {
		<-h.gone
		return 0, io.ErrUnexpectedEOF
	}
	n := copy(p, h.rest)
	h.rest = h.rest[n:]
	return n, nil
}
