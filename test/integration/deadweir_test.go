package integration

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/modelsim"
)

// If Weir dies and the filter fails open, traffic continues: waiting and new requests go to the least loaded model
// server, and running ones are not affected.
func TestDeadWeirFailsOpen(t *testing.T) {
	t.Parallel()
	s := start(t, setup{
		models: []modelsim.Config{modelsim.Fixed(8, 2*time.Second)}, config: oneAtATime("1s"), edit: unhurried,
	})
	streamed := s.begin(ask{body: chat("tiny", true)})
	s.running(1)
	waiting := s.queue(5)

	s.epp.kill()
	for i, p := range waiting {
		if got := p.wait(); got.status != 200 || got.err != nil {
			t.Errorf("waiting %d: got %d %v %s", i, got.status, got.err, got.body)
		}
	}
	if got := streamed.wait(); got.status != 200 || !strings.Contains(got.body, "[DONE]") {
		t.Errorf("running: got %d %v %s", got.status, got.err, got.body)
	}
	if got := s.send(ask{}); got.status != 200 {
		t.Errorf("new: got %d %v %s", got.status, got.err, got.body)
	}

	// Only Weir names a destination, even while it is unreachable.
	stranger, err := modelsim.Start(modelsim.Fixed(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stranger.Close)
	forged := s.send(ask{header: []string{"x-gateway-destination-endpoint", stranger.Address()}})
	if n := stranger.Stats().Started; forged.status != 200 || n != 0 {
		t.Errorf("forged destination: got %d, and the stranger %d requests", forged.status, n)
	}

	s.restart()
	s.servedByWeir()
}

// If the filter fails closed, all requests get 503 while Weir is away.
func TestDeadWeirFailsClosed(t *testing.T) {
	t.Parallel()
	s := start(t, setup{
		envoys: []string{"fail-closed"},
		models: []modelsim.Config{modelsim.Fixed(8, 5*time.Millisecond)}, config: oneAtATime("1s"),
	})
	s.models[0].Inject(1, modelsim.Quirk{HeaderDelay: time.Hour})
	running := s.begin(ask{})
	s.running(1)
	waiting := s.queue(5)

	s.epp.kill()
	for i, p := range append(waiting, running) {
		if got := p.wait(); got.status != 503 && got.err == nil {
			t.Errorf("%d: got %d %v %s, want 503", i, got.status, got.err, got.body)
		}
	}
	if got := s.send(ask{}); got.status != 503 || got.reason() != "" {
		t.Errorf("new: got %d %q %v", got.status, got.reason(), got.err)
	}
	if n := s.models[0].Stats().Started; n != 1 {
		t.Errorf("the model server saw %d requests, want the one that was dispatched", n)
	}
	s.running(0)

	s.restart()
	s.servedByWeir()
}

// If bodies are streamed through Weir, Envoy fails closed for requests with a body, whatever failure_mode_allow says:
// it cannot take back the bytes that it has sent. Running answers go through Weir too, and are cut. A gateway that
// needs this mode needs two Weirs.
func TestDeadWeirInFullDuplex(t *testing.T) {
	t.Parallel()
	s := start(t, setup{envoys: []string{"full-duplex"}, models: []modelsim.Config{modelsim.Fixed(4, 5*time.Second)}})
	running := s.begin(ask{body: chat("tiny", true)})
	s.epp.waitFor(1, "weir_extproc_time_to_first_token_seconds")

	s.epp.kill()
	if got := running.wait(); got.status != 200 || got.err == nil || got.body == "" {
		t.Errorf("running: got %d %v %q, want a part of an answer", got.status, got.err, got.body)
	}
	for range 5 {
		if got := s.send(ask{}); got.status != 503 || got.reason() != "" {
			t.Errorf("with a body: got %d %q %v, want Envoy's 503", got.status, got.reason(), got.err)
		}
	}
	if got := s.send(ask{method: "GET", path: "/v1/models"}); got.status != 200 {
		t.Errorf("without a body: got %d %v, want 200", got.status, got.err)
	}
	s.restart()
	s.servedByWeir()
}

// kill kills epp.
func (e *epp) kill() {
	e.t.Helper()
	if err := e.Kill(); err != nil {
		e.t.Fatal(err)
	}
}

// restart starts another epp at the dead one's address, which Envoy uses.
func (s *scene) restart() {
	s.t.Helper()
	_, port, err := net.SplitHostPort(s.epp.Address)
	if err != nil {
		s.t.Fatal(err)
	}
	addresses := make([]string, len(s.models))
	for i, m := range s.models {
		addresses[i] = m.Address()
	}
	with := s.with
	with.flags = append(slices.Clip(with.flags), "--grpc-port="+port) // the last value of a repeated flag counts
	s.epp = startEPP(s.t, with, addresses)
}

// servedByWeir waits for the next request that goes through Weir.
func (s *scene) servedByWeir() {
	s.t.Helper()
	expect.Eventually(s.t, "served by the new Weir", func() error {
		got := s.send(ask{})
		if s.epp.outcomes()["dispatched"] == 0 || got.status != 200 {
			return fmt.Errorf("got %d, outcomes %v", got.status, s.epp.outcomes())
		}
		return nil
	})
	s.epp.settled()
}
