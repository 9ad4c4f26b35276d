package integration

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/weir-epp/weir/internal/modelsim"
)

// oneSlot lets one request through to one model server, and two wait. Nothing but the departures themselves can free
// a place within these tests: requests do not end by themselves, the TTL is long, and no sweep comes by.
const oneSlot = `
fairRequestQueue: { totalCapacity: 2, flowCapacity: 2, queueTTL: 10m }
requestQueueController: { watermarkPerBackend: 1, lowerBoundPerBackend: 1, upperBoundPerBackend: 1, expiryCleanupInterval: 10m }
`

// The two phases that a request can wait in: when the headers name its flow it waits before Envoy has taken in its
// body, when only the body says which model it is for it waits after.
var phases = map[string]string{
	"header phase": oneSlot + `flows: { key: ["header:x-llm-d-inference-fairness-id"] }` + "\n",
	"body phase":   oneSlot + `flows: { key: ["model"] }` + "\n",
}

var protocols = map[string]*http.Client{"HTTP/1.1": client, "HTTP/2": client2}

// everyDeparture runs a test for each phase, Envoy configuration and HTTP version of the client, on a scene of one
// model server with one slot.
func everyDeparture(t *testing.T, test func(s *scene, a ask)) {
	for phase, config := range phases {
		t.Run(phase, func(t *testing.T) {
			envoys := []string{"recommended", "full-duplex"}
			s := start(t, setup{envoys: envoys, models: []modelsim.Config{slow()}, config: config})
			for i, envoy := range envoys {
				for protocol, client := range protocols {
					s.run(envoy+" "+protocol, func() { test(s, ask{envoy: i, client: client, tenant: "a"}) })
				}
			}
		})
	}
}

// A client that goes away while it waits leaves the queue at once: it no longer counts as waiting, and its place in a
// full flow goes to the next one who asks. Peers keep a cancelled waiter's capacity until a sweep.
func TestClientGoneWhileQueued(t *testing.T) {
	everyDeparture(t, func(s *scene, a ask) {
		cancelled := s.epp.value("weir_requests_cancelled_total")
		running := s.begin(a)
		s.epp.waitFor(1, "weir_stock_level")
		leaver, stayer := s.begin(a), s.begin(a)
		s.epp.waitFor(2, "weir_queue_length")
		if got := s.send(a); got.status != 503 || got.reason() != "flow-full" {
			s.t.Fatalf("a third one got %d %q %v, want 503 flow-full", got.status, got.reason(), got.err)
		}

		leaver.cancel()
		s.epp.waitFor(1, "weir_queue_length")
		s.epp.waitFor(cancelled+1, "weir_requests_cancelled_total")
		next := s.begin(a)
		s.epp.waitFor(2, "weir_queue_length")

		next.cancel()
		stayer.cancel()
		s.epp.waitFor(0, "weir_queue_length")
		running.cancel()
		s.epp.settled()
		s.epp.waitFor(0, "weir_extproc_streams")
		// Nobody who left the queue ever came to the model server.
		if n := s.models[0].Stats().Started; n != uint64(s.epp.outcomes()["dispatched"]) {
			s.t.Errorf("the model server saw %d requests, dispatched were %d", n, s.epp.outcomes()["dispatched"])
		}
	})
}

// A client that goes away while its request runs gives its stock back at once, to the next in the queue, and the model
// server's work is aborted. Streamed answers have begun by then, whole ones have not.
func TestClientGoneAfterDispatch(t *testing.T) {
	everyDeparture(t, func(s *scene, a ask) {
		for _, stream := range []bool{false, true} {
			a.body = chat("tiny", stream)
			aborted := s.models[0].Stats().Aborted
			running := s.begin(a)
			s.running(1)
			waiting := s.begin(a)
			s.epp.waitFor(1, "weir_queue_length")

			running.cancel()
			s.epp.waitFor(0, "weir_queue_length")
			s.epp.waitFor(1, "weir_stock_level")
			s.aborted(aborted + 1)
			s.running(1) // the one that waited

			waiting.cancel()
			s.aborted(aborted + 2)
			s.epp.settled()
			s.epp.waitFor(0, "weir_extproc_streams")
		}
	})
}

// running waits until so many requests are at the model servers.
func (s *scene) running(want int) {
	s.t.Helper()
	eventually(s.t, "requests at the model servers", func() error {
		n := 0
		for _, m := range s.models {
			n += m.Stats().InFlight
		}
		if n != want {
			return fmt.Errorf("%d in flight, want %d", n, want)
		}
		return nil
	})
}

// aborted waits until the first model server has seen so many clients go away.
func (s *scene) aborted(want uint64) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.models[0].WaitFor(ctx, func(m modelsim.Stats) bool { return m.Aborted >= want }); err != nil {
		s.t.Fatal(err)
	}
}
