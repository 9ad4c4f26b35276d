package request

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Targets are drawn with a probability of their weight over the sum of weights. A model without targets is its own.
func TestTargetsAreDrawnByWeight(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Models = []Model{
		{Name: "chat", Targets: []Target{{Name: "v1", Weight: 9}, {Name: "v2", Weight: 1}}},
		{Name: "even", Targets: []Target{{Name: "a", Weight: 5}, {Name: "b", Weight: 5}}},
	}
	r, draw := NewRules(&cfg), rand.New(rand.NewPCG(1, 2))
	drawn := map[string]int{}
	const n = 10_000
	for range n {
		drawn[r.target("chat", draw)]++
		drawn[r.target("even", draw)]++
	}
	if math.Abs(float64(drawn["v1"])/n-0.9) > 0.01 || math.Abs(float64(drawn["a"])/n-0.5) > 0.02 {
		t.Errorf("%v", drawn)
	}
	if got := r.target("other", draw); got != "other" {
		t.Errorf("a model that is not listed became %q", got)
	}
}
