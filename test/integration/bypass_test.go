package integration

import (
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/modelsim"
)

// slow is a model server whose requests do not end by themselves within a test.
func slow() modelsim.Config { return modelsim.Fixed(1000, time.Hour) }

// An uncontended request goes through at once, and its stock comes back.
func TestBypassWhenIdle(t *testing.T) {
	s := start(t, setup{})
	got := s.send(ask{})
	if got.err != nil || got.status != 200 {
		t.Fatalf("got %d %v %s", got.status, got.err, got.body)
	}
	s.epp.settled()
	if n := s.epp.value("weir_bypass_total"); n != 1 {
		t.Errorf("bypass_total is %v, want 1", n)
	}
	if n := s.epp.outcomes()["dispatched"]; n != 1 {
		t.Errorf("dispatched %d, want 1", n)
	}
}

// The seed's example: two backends, watermark 2 ± 10 %. Five bypass an empty queue, since stock 4 is below 4.4; the
// rest wait.
func TestFiveBypassTheRestWait(t *testing.T) {
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
