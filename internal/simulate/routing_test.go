package simulate

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/config"
)

// shippedInput returns a workload and a configuration of config/simulate.
func shippedInput(t *testing.T, workload, name string) (*Workload, config.Document) {
	t.Helper()
	read := func(name string) []byte {
		text, err := os.ReadFile(filepath.Join("..", "..", "config", "simulate", name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	w, err := DecodeWorkload(read(workload))
	if err != nil {
		t.Fatal(err)
	}
	d, err := config.Load(config.Source{Text: read(name)})
	if err != nil {
		t.Fatal(err)
	}
	return &w, d
}

// shipped runs a workload of config/simulate against a configuration of it.
func shipped(t *testing.T, workload, name string) *Report {
	return shippedWith(t, workload, name, false)
}

// shippedWith is shipped with a choice about first tokens.
func shippedWith(t *testing.T, workload, name string, firstTokens bool) *Report {
	t.Helper()
	w, d := shippedInput(t, workload, name)
	r, err := Run(&Options{Name: name, Config: d, Engines: w.Pool(), Weights: w.Weights(), Seed: 1, FirstTokens: firstTokens}, w.Requests(1))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// sampled is a source that calls a function before each request.
type sampled struct {
	Source
	sample func(now time.Duration)
}

// Next implements Source.
func (s *sampled) Next() (Request, error) {
	r, err := s.Source.Next()
	if err == nil {
		s.sample(r.At)
	}
	return r, err
}

// A queue that looks for a match stays fair: 8 tenants with constant backlogs never differ in their grants by more than
// the bound of ADR 0146, a largest charge of each and Q of each. Without a match it is a charge of each.
func TestTenantsHaveTheirSharesOfMatches(t *testing.T) {
	const charge = 6144 + 1200 + 1000
	for _, c := range []struct {
		configuration string
		quantum       int
	}{{"prefix-64", 0}, {"locality-64", 20_000}} {
		w, d := shippedInput(t, "groups-of-tenants", c.configuration)
		requests := &sampled{Source: w.Requests(1)}
		s, err := newSimulation(&Options{Config: d, Engines: w.Pool(), Seed: 1}, requests)
		if err != nil {
			t.Fatal(err)
		}
		from, worst := map[string]int{}, 0
		requests.sample = func(now time.Duration) {
			if now < 20*time.Second || now > 95*time.Second {
				return
			}
			least, most := math.MaxInt, 0
			for key, f := range s.accounts.flows {
				if int(f.wait.n) == f.arrived {
					t.Fatalf("%s: at %v nothing of %s waits", c.configuration, now, key)
				}
				if _, known := from[key]; !known {
					from[key] = int(f.wait.n)
				}
				served := int(f.wait.n) - from[key]
				least, most = min(least, served), max(most, served)
			}
			worst = max(worst, (most-least)*charge)
		}
		if err := s.run(); err != nil {
			t.Fatal(err)
		}
		bound := 2*charge + 2*c.quantum
		t.Logf("%s: %d tokens apart, of at most %d", c.configuration, worst, bound)
		if worst > bound || len(from) != 8 {
			t.Errorf("%s: %d tenants are %d tokens apart, want at most %d", c.configuration, len(from), worst, bound)
		}
	}
}

// With visible first tokens, unread prompts keep other requests away. That halves the mean time to first token of
// prompts of very different lengths. Similar prompts gain less, and none loses.
func TestPromptsThatAreBeingReadCount(t *testing.T) {
	for _, c := range []struct {
		workload string
		part     float64 // remaining part of the mean TTFT
	}{{"documents", .6}, {"bursts", 1}, {"zipf", 1}, {"hot", 1}} {
		unseen, seen := shippedWith(t, c.workload, "prefix-unbounded", false).All, shippedWith(t, c.workload, "prefix-unbounded", true).All
		if seen.TTFT.Mean > c.part*unseen.TTFT.Mean || seen.Answered != unseen.Answered {
			t.Errorf("%s: TTFT %.3f s with first tokens, %.3f s without", c.workload, seen.TTFT.Mean, unseen.TTFT.Mean)
		}
	}
	if off, on := shippedWith(t, "documents", "off-unbounded", false).All, shippedWith(t, "documents", "off-unbounded", true).All; off.TTFT != on.TTFT {
		t.Errorf("without affinity first tokens change the choice: %.3f s, %.3f s", off.TTFT.Mean, on.TTFT.Mean)
	}
}

// Bounds that follow engines do not shrink because of long prompts. As it is shipped, Weir needs at most twice as long
// to the first token of documents as without a queue and with first tokens, the best case of docs/routing.md.
func TestShippedBoundsReadDocuments(t *testing.T) {
	w, _ := shippedInput(t, "documents", "prefix-unbounded")
	d, err := config.Load(config.Source{Profile: config.DefaultProfile})
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(&Options{Config: d, Engines: w.Pool(), Seed: 1}, w.Requests(1))
	if err != nil {
		t.Fatal(err)
	}
	best := shippedWith(t, "documents", "prefix-unbounded", true).All
	if r.All.Answered != best.Answered || r.All.TTFT.Mean > 2*best.TTFT.Mean {
		t.Errorf("%d answers, %.2f s to the first token; %d and %.2f s without a queue", r.All.Answered, r.All.TTFT.Mean, best.Answered, best.TTFT.Mean)
	}
}

// The files of docs/routing.md's tables give its results: affinity gains most if engines hold the backlog, little if
// the queue's head goes to the only free place, and nothing if all prompts begin alike.
func TestAffinityIsWorthWhatThePageSays(t *testing.T) {
	for _, c := range []struct {
		workload, configuration  string
		leastHits, mostHits      float64
		leastTokens, longestTTFT float64
	}{
		{"groups", "off-64", 30, 40, 13_500, 75},
		{"groups", "prefix-64", 37, 45, 14_000, 65},
		{"groups", "off-unbounded", 30, 40, 13_500, 75},
		{"groups", "prefix-unbounded", 75, 83, 20_000, 27},
		{"groups-of-tenants", "prefix-unbounded", 75, 83, 19_000, 27},
		{"groups", "locality-64", 58, 70, 17_500, 45},
		{"groups-of-tenants", "locality-64", 70, 80, 20_000, 30},
		{"hot", "off-64", 80, 84, 14_000, 1},
		{"hot", "prefix-64", 80, 84, 14_000, 1},
		{"bursts", "off-64", 70, 77, 4_000, 1.3},
		{"bursts", "prefix-64", 78, 84, 4_000, 1},
		{"zipf", "off-64", 50, 60, 16_000, 7},
		{"zipf", "prefix-64", 70, 76, 16_000, .4},
	} {
		a := shipped(t, c.workload, c.configuration).All
		if a.Answered != a.Requests || a.HitPercent < c.leastHits || a.HitPercent > c.mostHits ||
			a.OutputTokensPerSec < c.leastTokens || a.TTFT.Mean > c.longestTTFT {
			t.Errorf("%s, %s: %d of %d answered, %.1f %% hits, %.0f tokens/s, TTFT %.2f s", c.workload, c.configuration, a.Answered,
				a.Requests, a.HitPercent, a.OutputTokensPerSec, a.TTFT.Mean)
		}
	}
}
