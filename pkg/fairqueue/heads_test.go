package fairqueue

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Heads in any order are sorted in one way: a class's heads in the order in which they go, which may differ from that
// of arrival.
func TestSortHeadsIsOneOrder(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Classes = []ClassConfig{{Name: "a", Quantum: 1}, {Name: "b", Quantum: 1}}
	q := queue(t, cfg)
	push := func(class, flow string, lane Lane, cost Cost) *Request {
		r := &Request{Flow: flow, Lane: lane, Cost: cost, Path: &Path{Class: class}}
		mustPush(t, q, r)
		return r
	}
	costly := push("a", "f", "x", 100)
	between := push("b", "g", "x", 1)
	cheap := push("a", "h", "y", 1) // goes before costly, came after between, which came after costly
	want := []*Request{between, cheap, costly}
	random := rand.New(rand.NewPCG(1, 1))
	for range 50 {
		heads := slices.Clone(want)
		random.Shuffle(len(heads), func(i, j int) { heads[i], heads[j] = heads[j], heads[i] })
		if SortHeads(heads); !slices.Equal(heads, want) {
			t.Fatalf("%v, %v, %v goes, want the one of class b, the cheap one, the costly one", heads[0].Flow, heads[1].Flow, heads[2].Flow)
		}
	}
}
