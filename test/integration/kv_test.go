package integration

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/modelsim"
)

// Two subsets share a model server, and one of them has long prompts. By the engines' own counters, the tokens in a KV
// cache exceed its bound by at most one request, while the requests stay far below theirs. The charges are a tenth of
// the tokens, so the bound cannot count charges.
func TestKVStaysWithinItsBound(t *testing.T) {
	t.Parallel()
	const bound, slots = 5000, 16
	long, short := tenant{name: "long", in: 1900, out: 100}, tenant{name: "short", in: 50, out: 50}
	server := modelsim.Fixed(64, 20*time.Millisecond)
	server.Engine.BlockSize, server.Engine.Blocks = 1, 1<<20
	s := start(t, setup{
		models: []modelsim.Config{server, server, server}, envoys: []string{"usage"},
		edit: func(b envoyrun.Bootstrap) error {
			metadataFromHeader(b, "x-test-subset", "envoy.lb.subset_hint", "x-gateway-destination-endpoint-subset")
			return nil
		},
		config: fmt.Sprintf(`cost: tokens
tokens: { weights: { input: 0.1, cachedInput: 0.1, output: 0.1 } }
requestBody: always
requestQueueController: { watermarkPerBackend: %[1]d, lowerBoundPerBackend: %[1]d, upperBoundPerBackend: %[1]d,
  watermarkTokensPerBackend: %[2]d, lowerBoundTokensPerBackend: %[2]d, upperBoundTokensPerBackend: %[2]d }
flows: { key: ["header:x-tenant"] }
`, slots, bound),
	})
	var workers sync.WaitGroup
	var over atomic.Bool
	var served [2]atomic.Int64
	for i, w := range []tenant{long, short} {
		a := w.ask()
		a.header = append(a.header, "x-test-subset", inMetadata(t, s.models[i].Address()+","+s.models[i+1].Address()))
		for range 30 {
			workers.Go(func() {
				for !over.Load() {
					wantServed(t, w.name, s.send(a))
					served[i].Add(1)
				}
			})
		}
	}
	defer workers.Wait()
	defer over.Store(true)
	expect.Within(t, 2*patience, "both are served", func() error {
		if l, s := served[0].Load(), served[1].Load(); l < 300 || s < 300 {
			return fmt.Errorf("%d long ones and %d short ones", l, s)
		}
		return nil
	})
	for i, largest := range []int{2000, 2000, 100} {
		stats := s.models[i].Stats()
		if stats.MaxKVTokens >= bound+largest || stats.MaxInFlight > 2*slots {
			t.Errorf("server %d had %d tokens in its KV cache, and %d requests", i, stats.MaxKVTokens, stats.MaxInFlight)
		}
		if i == 0 && (stats.MaxKVTokens < bound || stats.MaxInFlight >= slots/2) {
			t.Errorf("the server of long prompts had %d tokens in its KV cache, and %d requests: the tokens do not bound it", stats.MaxKVTokens, stats.MaxInFlight)
		}
		t.Logf("server %d: at most %d tokens, %d requests", i, stats.MaxKVTokens, stats.MaxInFlight)
	}
}

// A tenant sends one prompt of 200,000 tokens to a pool of three model servers, whose bound is 5,000 each. It closes
// its own server, and no other: another tenant's small requests keep flowing through the other two, within their
// bounds, as if there were only those.
func TestOneGiantPromptClosesOneServer(t *testing.T) {
	t.Parallel()
	const bound = 5000
	v := newValve()
	server := modelsim.Fixed(64, 5*time.Millisecond)
	server.Engine.BlockSize, server.Engine.Blocks = 1, 1<<20
	server.Quirk.Match = func(r *http.Request) bool {
		if r.Header.Get("x-tenant") == "giant" {
			select {
			case <-v.passes:
			case <-r.Context().Done():
			}
		}
		return false
	}
	s := start(t, setup{
		models: []modelsim.Config{server, server, server}, envoys: []string{"usage"},
		config: fmt.Sprintf(`cost: tokens
requestBody: always
requestQueueController: { enqueueAll: true, watermarkPerBackend: 64, watermarkTokensPerBackend: %d }
flows: { key: ["header:x-tenant"] }
`, bound),
	})
	large, small := tenant{name: "giant", in: 200_000, out: 20}.ask(), tenant{name: "small", in: 400, out: 100}
	giant := s.begin(large)
	s.epp.waitFor(1, "weir_stock_level")

	var workers sync.WaitGroup
	for range 40 {
		workers.Go(func() {
			for i := 0; i < 10 && !t.Failed(); i++ {
				wantServed(t, "a small one", s.send(small.ask()))
			}
		})
	}
	workers.Wait()
	served := 0
	for i, m := range s.models {
		stats := m.Stats()
		t.Logf("server %d: at most %d tokens, %d requests", i, stats.MaxKVTokens, stats.MaxInFlight)
		if stats.MaxKVTokens > bound*11/10+500 {
			t.Errorf("server %d had %d tokens in its KV cache", i, stats.MaxKVTokens)
		}
		if stats.MaxKVTokens > 0 {
			served++
		}
	}
	if served != 2 {
		t.Errorf("%d servers were used beside the giant's, want 2", served)
	}
	if giant.over() {
		t.Fatalf("the giant has ended: %+v", giant.answer)
	}
	v.open()
	wantServed(t, "the giant", giant.wait())
}
