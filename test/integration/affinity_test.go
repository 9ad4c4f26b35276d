package integration

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/modelsim"
)

// cachingServer has a KV cache with room for a third of these tests' prefixes, beside the running requests.
func cachingServer() modelsim.Config {
	cfg := modelsim.TinyVLLM()
	cfg.PrefixCaching, cfg.PromptTokensDetails = true, true
	cfg.Engine.BlockSize, cfg.Engine.Blocks = 16, 1200
	return cfg
}

const (
	groups      = 24
	groupTokens = 1024 // common to the prompts of a group
	ownTokens   = 100
)

// prompt is the text of a prompt of a group.
func groupPrompt(group, number int) string {
	word := func(n int, text string) string { return strings.Repeat(text, 4*n/len(text)+1)[:4*n] }
	return word(groupTokens, fmt.Sprintf("of group %d ", group)) + word(ownTokens, fmt.Sprintf("number %d ", number))
}

// hits sends requests of the groups in random order, and returns the percentage of their prompts' tokens that the
// engines had cached, by the engines' own counters. request makes one.
func hits(s *scene, requests, workers int, request func(group, number int) ask) float64 {
	s.t.Helper()
	lot := rand.New(rand.NewPCG(1, 2))
	work := make(chan ask, requests)
	for i := range requests {
		work <- request(lot.IntN(groups), i)
	}
	close(work)
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for a := range work {
				wantServed(s.t, "a request", s.send(a))
			}
		})
	}
	all.Wait()
	var prompt, cached uint64
	for i, m := range s.models {
		stats := m.Stats()
		prompt, cached = prompt+stats.PromptTokens, cached+stats.CachedTokens
		s.t.Logf("engine %d: %d requests, %d of %d tokens cached", i, stats.Completed, stats.CachedTokens, stats.PromptTokens)
	}
	if prompt < uint64(requests*groupTokens) {
		s.t.Fatalf("the engines have read %d tokens", prompt)
	}
	return 100 * float64(cached) / float64(prompt)
}

func completionOf(group, number int) ask {
	return ask{path: "/v1/completions", body: fmt.Sprintf(`{"model":"tiny","prompt":%q,"max_tokens":8}`, groupPrompt(group, number))}
}

// 24 groups of prompts with a common beginning go to engines whose caches have room for a third of them. With affinity
// each engine has its groups. Without it every engine reads every prompt again and again.
func TestPrefixesFindTheirEngine(t *testing.T) {
	t.Parallel()
	for _, engines := range []int{3, 4} {
		rate := map[string]float64{}
		for _, affinity := range []string{"off", "prefix"} {
			t.Run(fmt.Sprint(engines, " engines, ", affinity), func(t *testing.T) {
				models := make([]modelsim.Config, engines)
				for i := range models {
					models[i] = cachingServer()
				}
				s := start(t, setup{
					models: models,
					config: "requestQueueController: { slotsPerBackend: 8 }\nscheduling: { affinity: " + affinity + " }\nusage: auto\n",
				})
				rate[affinity] = hits(s, 600, 12, completionOf)
				t.Logf("%.1f %% of the tokens were cached", rate[affinity])
				placed, chosen := s.epp.value("weir_affinity_tokens_total", "kind", "prompt"), s.epp.value("weir_affinity_tokens_total", "kind", "chosen")
				if affinity == "off" && placed+chosen > 0 || affinity == "prefix" && (chosen < placed/2 || placed < 600*groupTokens/2) {
					t.Errorf("weir_affinity_tokens_total: %v of %v", chosen, placed)
				}
			})
		}
		if rate["prefix"] < 70 || rate["prefix"] < rate["off"]+20 {
			t.Errorf("%d engines: %.1f %% of the tokens were cached, %.1f %% without affinity", engines, rate["prefix"], rate["off"])
		}
	}
}

// A header, a cookie or a field of the body names a session, and its requests go to one engine.
func TestSessionsFindTheirEngine(t *testing.T) {
	t.Parallel()
	for source, request := range map[string]func(group, number int) ask{
		"header:x-session": func(group, number int) ask {
			a := completionOf(group, number)
			a.header = []string{"x-session", fmt.Sprint(group)}
			return a
		},
		"cookie:session": func(group, number int) ask {
			a := completionOf(group, number)
			a.header = []string{"cookie", fmt.Sprintf("theme=dark; session=%d", group)}
			return a
		},
		"body:prompt_cache_key": func(group, number int) ask {
			return ask{path: "/v1/completions", body: fmt.Sprintf(
				`{"model":"tiny","prompt":%q,"max_tokens":8,"prompt_cache_key":"s%d"}`, groupPrompt(group, number), group)}
		},
	} {
		t.Run(source, func(t *testing.T) {
			s := start(t, setup{
				models: []modelsim.Config{cachingServer(), cachingServer(), cachingServer()},
				config: "requestQueueController: { slotsPerBackend: 8 }\nscheduling: { affinity: session, affinitySession: " + source + " }\n",
			})
			if rate := hits(s, 400, 12, request); rate < 65 {
				t.Errorf("%.1f %% of the tokens were cached", rate)
			}
			if n := s.epp.value("weir_affinity_unknown_total"); n > 0 {
				t.Errorf("%v requests had no session", n)
			}
		})
	}
}

// If Envoy shows no bodies, requests are served as without affinity, and Weir logs it once.
func TestPrefixesWithoutBodies(t *testing.T) {
	t.Parallel()
	s := start(t, setup{
		envoys: []string{"header-only"}, models: []modelsim.Config{cachingServer(), cachingServer()},
		config: "requestQueueController: { slotsPerBackend: 8 }\nscheduling: { affinity: prefix }\n",
	})
	hits(s, 40, 4, func(group, number int) ask {
		a := completionOf(group, number)
		a.header = []string{"x-gateway-model-name", "tiny"}
		return a
	})
	if n := s.epp.value("weir_affinity_unknown_total"); n != 40 {
		t.Errorf("%v requests are counted as unknown", n)
	}
	s.epp.told(1, "knows nothing of a request")
}

// A long unread prompt keeps other requests from its engine until its first token, although fewer requests are there:
// if Weir sees first tokens, it counts the unread tokens of each engine.
func TestPromptsThatAreBeingReadKeepOthersAway(t *testing.T) {
	t.Parallel()
	p, q := newParked(""), newParked("")
	s := beforeAll(t, setup{
		envoys: []string{"full-duplex"}, config: "requestQueueController: { slotsPerBackend: 32 }\nscheduling: { affinity: prefix }\n",
	}, p, q)
	send := func(number, tokens int) *pending {
		text := strings.Repeat(fmt.Sprintf("word %d ", number), 4*tokens/7)
		return s.begin(ask{path: "/v1/completions", body: fmt.Sprintf(`{"model":"tiny","prompt":%q,"stream":true}`, text)})
	}
	// arrives returns the engine of the next request, and the other one.
	arrives := func() (at, other *parked) {
		select {
		case <-p.began:
			return p, q
		case <-q.began:
			return q, p
		case <-time.After(patience):
			t.Fatal("a request does not come to an engine")
		}
		return nil, nil
	}
	all := []*pending{send(0, 16_000)}
	long, other := arrives()
	for i := range 5 {
		all = append(all, send(i+1, 1000))
		if at, _ := arrives(); at != other {
			t.Fatalf("short request %d goes to the engine that reads the long prompt", i)
		}
	}
	long.release <- struct{}{}
	wantServed(t, "the long one", all[0].wait())
	s.epp.waitFor(5, "weir_stock_level")
	all = append(all, send(9, 1000))
	if at, _ := arrives(); at != long {
		t.Fatal("a short request goes to the engine that has five prompts to read")
	}
	long.release <- struct{}{}
	for range 5 {
		other.release <- struct{}{}
	}
	for _, a := range all {
		wantServed(t, "a short one", a.wait())
	}
	s.epp.settled()
}
