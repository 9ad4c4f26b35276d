package integration

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/envoyrun"
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

// reluctant speaks HTTP/2 with a window of 64 KiB for each answer: more is not sent to it before it reads.
func reluctant() *http.Client {
	t := &http.Transport{
		DisableCompression: true, Protocols: new(http.Protocols),
		HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10},
	}
	t.Protocols.SetUnencryptedHTTP2(true)
	return &http.Client{Transport: t}
}

// A client that asks and never reads its answers holds nothing for longer than the shipped files say, once the model
// server is through with them. With HTTP/2 it would otherwise for as long as an idle stream may live, which is an hour,
// and with any answer longer than the window that it chooses.
func TestUnreadAnswersHoldNothing(t *testing.T) {
	for _, m := range modes {
		t.Run(m.config, func(t *testing.T) {
			begun := make(chan struct{})
			s := before(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				_, _ = io.WriteString(w, "x")
				_ = http.NewResponseController(w).Flush()
				<-begun // an answer that is whole before its headers are through ends for Weir at once
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

// soonFlushed is an Edit that makes the shipped time for the rest of an answer shorter, where there is one.
func soonFlushed(b envoyrun.Bootstrap) error {
	if manager := b.ConnectionManager(); manager["stream_flush_timeout"] != nil {
		manager["stream_flush_timeout"] = "0.3s"
	}
	return nil
}
