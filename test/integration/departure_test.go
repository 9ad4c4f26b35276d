package integration

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/modelsim"
)

// oneSlot lets one request through to one model server, and two wait. Within these tests only disconnects free a place:
// requests do not end by themselves, the TTL is long, and no sweep runs.
const oneSlot = `
fairRequestQueue: { totalCapacity: 2, flowCapacity: 2, queueTTL: 10m }
requestQueueController: { watermarkPerBackend: 1, lowerBoundPerBackend: 1, upperBoundPerBackend: 1, expiryCleanupInterval: 10m }
`

// A request can wait in two phases. If the headers name its flow, it waits before Envoy has received its body. If only
// the body names its model, it waits after.
var phases = map[string]string{
	"header phase": oneSlot + `flows: { key: ["header:x-llm-d-inference-fairness-id"] }` + "\n",
	"body phase":   oneSlot + `flows: { key: ["model"] }` + "\n",
}

var protocols = map[string]*http.Client{"HTTP/1.1": client, "HTTP/2": client2}

// everyDeparture runs a test for each phase, Envoy configuration and HTTP version of the client, on a scene with one
// model server of one slot.
func everyDeparture(t *testing.T, test func(s *scene, a ask)) {
	for phase, config := range phases {
		t.Run(phase, func(t *testing.T) {
			t.Parallel()
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

// A client that disconnects while it waits leaves the queue at once: it no longer counts as waiting, and its place in a
// full flow goes to the next request. Peers keep a cancelled waiter's capacity until a sweep.
func TestClientGoneWhileQueued(t *testing.T) {
	t.Parallel()
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
		// No request that left the queue ever reached the model server.
		if n := s.models[0].Stats().Started; n != uint64(s.epp.outcomes()["dispatched"]) {
			s.t.Errorf("the model server saw %d requests, dispatched were %d", n, s.epp.outcomes()["dispatched"])
		}
	})
}

// If a client disconnects while its request runs, its stock goes at once to the next in the queue, and the model
// server's work is aborted. Streamed answers have begun by then, others have not.
func TestClientGoneAfterDispatch(t *testing.T) {
	t.Parallel()
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
			s.running(1) // the one that was waiting

			waiting.cancel()
			s.aborted(aborted + 2)
			s.epp.settled()
			s.epp.waitFor(0, "weir_extproc_streams")
		}
	})
}

// running waits until the given number of requests is at the model servers.
func (s *scene) running(want int) {
	s.t.Helper()
	expect.Eventually(s.t, "requests at the model servers", func() error {
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

// aborted waits until the first model server has counted the given number of disconnects.
func (s *scene) aborted(want uint64) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.models[0].WaitFor(ctx, func(m modelsim.Stats) bool { return m.Aborted >= want }); err != nil {
		s.t.Fatal(err)
	}
}

// reluctant returns a client that speaks HTTP/2 with a window of 64 KiB for each answer: it gets no more until it
// reads.
func reluctant() *http.Client {
	t := &http.Transport{
		DisableCompression: true, Protocols: new(http.Protocols),
		HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10},
	}
	t.Protocols.SetUnencryptedHTTP2(true)
	return &http.Client{Transport: t}
}

// A client that never reads its answers holds nothing for longer than the shipped files allow, after the model server
// has finished. Otherwise, with HTTP/2, it could hold its lease until the stream idle timeout of an hour, with any
// answer longer than its window.
func TestUnreadAnswersHoldNothing(t *testing.T) {
	t.Parallel()
	for _, m := range modes {
		t.Run(m.config, func(t *testing.T) {
			t.Parallel()
			begun := make(chan struct{})
			s := before(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				_, _ = io.WriteString(w, "x")
				_ = http.NewResponseController(w).Flush()
				<-begun // for Weir, an answer that is complete before its headers are sent ends at once
				_, _ = io.WriteString(w, strings.Repeat("x", 256<<10))
			}), setup{envoys: []string{m.config}, config: "profile: recommended\n", edit: envoyrun.Edits(trustIssuer, soonFlushed)})
			client := reluctant()
			defer client.CloseIdleConnections()
			for range 4 {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
					s.envoy().URL()+"/v1/chat/completions", strings.NewReader(chat("tiny", false)))
				if err != nil {
					t.Fatal(err)
				}
				s.authorize(request)
				response, err := client.Do(request)
				if err != nil || response.StatusCode != http.StatusOK {
					t.Fatalf("got %v, %v", response, err)
				}
				defer response.Body.Close() // and never read
			}
			s.epp.waitFor(4, "weir_stock_level")
			close(begun)
			s.epp.waitFor(4, "weir_requests_total", "outcome", "dispatched")
			s.epp.settled()
		})
	}
}

// soonFlushed is an Edit that shortens the shipped time for the rest of an answer, if there is one.
func soonFlushed(b envoyrun.Bootstrap) error {
	if manager := b.ConnectionManager(); manager["stream_flush_timeout"] != nil {
		manager["stream_flush_timeout"] = "0.3s"
	}
	return nil
}
