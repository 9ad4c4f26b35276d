package prefix

import (
	"math/rand/v2"
	"testing"

	"github.com/weir-epp/weir/pkg/scheduling"
)

// hitRate plays conversations of many tenants against engines whose caches have room for them, with so many prompts of a
// flooder between two of theirs, and returns the part of the tenants' tokens that the index finds, in percent.
func hitRate(flood int, prompt func(lot *rand.Rand, i int) *Prefix) float64 {
	const engines, tenants, turns = 4, 40, 12
	x, ids := newIndex(engines, 512_000)
	lot := rand.New(rand.NewPCG(1, 2))
	place := func(p *Prefix) (r scheduling.Ratings) {
		r = x.Match(p, ids)
		best := ids[lot.IntN(engines)]
		if len(r.Near) > 0 {
			best = r.Near[0]
		}
		for _, c := range r.Above {
			if c.Tokens > r.Cached(best) {
				best = c.ID
			}
		}
		x.Place(p, &r, best)
		return r
	}
	var found, all int64
	for turn := range turns {
		for tenant := range uint64(tenants) {
			p := blocks(1+tenant, uint64(20+5*turn), 0, 20+5*turn)
			r := place(p)
			if turn > 0 {
				found, all = found+r.Best(), all+p.Tokens
			}
			for i := range flood {
				place(prompt(lot, i))
			}
		}
	}
	return 100 * float64(found) / float64(all)
}

// A flow of prompts that nobody repeats, of twice the others' tokens, costs these at most 5 % of their hits while the engines'
// caches have room for all; so does one that sends each of its prompts twice, so that they look as if they were shared. Where
// the engines have no room, see TestUniquePromptsFlushNothing.
func TestFloodOfUniquePrompts(t *testing.T) {
	alone := hitRate(0, nil)
	for times, name := range map[uint64]string{1: "unique", 2: "repeated"} {
		n := uint64(0)
		flooded := hitRate(1, func(*rand.Rand, int) *Prefix { n++; return blocks(1<<40+n/times, 0, 0, 100) })
		t.Logf("%.1f %% alone, and %.1f %% beside %s prompts", alone, flooded, name)
		if alone < 80 || flooded < .95*alone {
			t.Errorf("%.1f %% alone, and %.1f %% beside %s prompts", alone, flooded, name)
		}
	}
}
