package integration

import (
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/modelsim"
)

// slow returns a model server whose requests do not end by themselves within a test.
func slow() modelsim.Config { return modelsim.Fixed(1000, time.Hour) }

// The seed's example: two backends, watermark 2 ± 10 %. Five bypass an empty queue, since stock 4 is below 4.4; the
// rest wait.
func TestFiveBypassTheRestWait(t *testing.T) {
	t.Parallel()
	s := start(t, setup{models: []modelsim.Config{slow(), slow()}})
	for i := range 8 {
		s.begin(ask{})
		if i < 5 {
			s.epp.waitFor(float64(i+1), "weir_stock_level")
		}
	}
	s.epp.waitFor(3, "weir_queue_length")
	s.epp.waitFor(5, "weir_stock_level")
	if n := s.epp.value("weir_bypass_total"); n != 5 {
		t.Errorf("bypass_total is %v, want 5", n)
	}
}

// enabled: false is the operator's emergency switch. All waiting requests go at once, in the queue's order, and are
// counted as usual. New requests bypass. When it is switched back, there is a queue again.
func TestDisablingReleasesTheQueue(t *testing.T) {
	t.Parallel()
	v := newValve()
	file := newConfigFile(t, byTenant+single)
	s := start(t, setup{models: v.one(), flags: []string{"--config-file=" + file.path}})
	clients := []*pending{s.begin(from("a"))}
	s.epp.waitFor(1, "weir_stock_level")
	for i, tenant := range []string{"a", "a", "b", "c"} {
		clients = append(clients, s.begin(from(tenant)))
		s.epp.waitFor(float64(i+1), "weir_queue_length")
	}

	file.write(byTenant + "requestQueueController: { enabled: false }\n")
	s.epp.reloaded(1, 0, 1)
	s.epp.waitFor(0, "weir_queue_length")
	s.epp.waitFor(5, "weir_stock_level")
	clients = append(clients, s.begin(from("d")))
	s.epp.waitFor(6, "weir_stock_level")

	file.write(byTenant + single)
	s.epp.reloaded(2, 0, 1)
	clients = append(clients, s.begin(from("e")))
	s.epp.waitFor(1, "weir_queue_length")
	v.open()
	for _, c := range clients {
		wantServed(t, "everybody", c.wait())
	}
	s.epp.settled()
	if got := s.epp.outcomes(); got["dispatched"] != len(clients) {
		t.Errorf("outcomes are %v", got)
	}
}

// holdWhenEmpty: false also rejects requests that already wait when the last endpoint goes away.
func TestNobodyWaitsForNobody(t *testing.T) {
	t.Parallel()
	v := newValve()
	s := start(t, setup{models: v.one(), file: true, config: byTenant +
		"requestQueueController: { watermarkPerBackend: 1, lowerBoundPerBackend: 1, upperBoundPerBackend: 1, holdWhenEmpty: false }\n"})
	running := s.begin(from("a"))
	s.epp.waitFor(1, "weir_stock_level")
	waits := []*pending{s.begin(from("a")), s.begin(from("b"))}
	s.epp.waitFor(2, "weir_queue_length")

	s.epp.setEndpoints()
	for _, w := range waits {
		got := w.wait()
		if got.status != 503 || got.reason() != "no-endpoint" {
			t.Errorf("got %d %q %v", got.status, got.reason(), got.err)
		}
		if ms := retryAfterMS(t, got); ms < 1000 || ms > 2000 {
			t.Errorf("come back after %d ms", ms)
		}
	}
	v.open()
	wantServed(t, "the one in flight", running.wait())
	s.epp.settled()
}
