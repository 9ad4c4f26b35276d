package simulate

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/weir-epp/weir/internal/config"
)

// shipped runs a workload of config/simulate against a configuration of it.
func shipped(t *testing.T, workload, name string) *Report {
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
	r, err := Run(&Options{Name: name, Config: d, Engines: w.Pool(), Weights: w.Weights(), Seed: 1}, w.Requests(1))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The files of docs/routing.md's tables have their result: affinity is worth most where engines hold the backlog, little
// where the head of a queue goes to the one place that is free, and nothing where all prompts begin alike.
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
