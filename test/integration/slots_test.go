package integration

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/modelsim"
	"github.com/weir-epp/weir/internal/modelsim/engine"
)

// batching is a model server of some slots, with the engine of the figures about routing.
func batching(slots int) modelsim.Config {
	cfg := modelsim.TinyVLLM()
	cfg.Engine = engine.Reference()
	cfg.Engine.Slots = slots
	cfg.Records = 0
	return cfg
}

// bound is the bound of one of the scene's model servers.
func (s *scene) bound(i int) int {
	s.t.Helper()
	return int(s.epp.value("weir_endpoint_bound", "endpoint", s.models[i].Address()))
}

// waitForBound waits for the bound of an engine with so many slots.
func (s *scene) waitForBound(i, slots int) {
	s.t.Helper()
	expect.Eventually(s.t, fmt.Sprintf("the bound of %d slots", slots), func() error {
		if b := s.bound(i); b < slots || b > slots+max(2, slots/16) {
			return fmt.Errorf("%d", b)
		}
		return nil
	})
}

// Without stated slots each bound goes from 64 to its engine's 16 or 256 slots, and few requests wait inside. A
// restarted engine with fewer slots takes none from the other.
func TestSlotsAreFound(t *testing.T) {
	t.Parallel()
	falls := batching(256)
	falls.Address = "127.0.0.4:0" // an address whose port no other process takes meanwhile
	s := start(t, setup{models: []modelsim.Config{batching(16), falls}, config: "profile: recommended"})
	for i := range s.models {
		if b := s.bound(i); b != 64 {
			t.Errorf("a bound of %d at the start", b)
		}
	}
	var load sync.WaitGroup
	var over atomic.Bool
	defer load.Wait()
	defer over.Store(true)
	for range 400 {
		load.Go(func() {
			for !over.Load() {
				s.send(ask{body: `{"model":"tiny","prompt":"hello","max_tokens":100}`, path: "/v1/completions"})
			}
		})
	}
	s.waitForBound(0, 16)
	s.waitForBound(1, 256)
	inside := func(i, slots int) {
		t.Helper()
		sum := 0.0
		for range 10 {
			time.Sleep(500 * time.Millisecond)
			sum += s.epp.value("weir_endpoint_waiting", "endpoint", s.models[i].Address())
		}
		if most := max(2, float64(slots)/16); sum/10 > most {
			t.Errorf("%d slots: %.1f wait inside, want at most %v", slots, sum/10, most)
		}
	}
	inside(0, 16)
	inside(1, 256)

	address := s.models[1].Address()
	s.models[1].Close()
	fallen := batching(16)
	fallen.Address = address
	var err error
	if s.models[1], err = modelsim.Start(fallen); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.models[1].Close() })
	least := s.bound(0)
	expect.Eventually(t, "the bound of the one that fell", func() error {
		time.Sleep(100 * time.Millisecond)
		least = min(least, s.bound(0))
		if b := s.bound(1); b < 16 || b > 18 {
			return fmt.Errorf("%d", b)
		}
		return nil
	})
	if least < 14 { // on a busy machine it may not be full
		t.Errorf("the other engine's bound was %d meanwhile, want its 16 slots", least)
	}
	s.waitForBound(0, 16)
}

// Without readable metrics the bound is 64, or the stated number, with one log line for each endpoint.
func TestWithoutMetricsOfTheEngine(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]int{"": 64, "requestQueueController: { slotsPerBackend: 24 }": 24} {
		s := start(t, setup{
			models: []modelsim.Config{batching(16)}, config: "profile: recommended\n" + config, flags: []string{"--scrape-path=/nothing"},
		})
		s.epp.told(1, "the metrics of the endpoint cannot be read")
		if b := s.bound(0); b != want {
			t.Errorf("%q: a bound of %d", config, b)
		}
	}
}
