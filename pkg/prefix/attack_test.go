package prefix

import (
	"math/rand/v2"
	"testing"

	"github.com/weir-epp/weir/pkg/scheduling"
)

// crowd plays conversations of tenants against engines whose caches have room for these.
type crowd struct {
	tenants, turns int
	tokens         int64 // of an engine's cache
	oneFlow        bool  // nobody tells the tenants apart
}

const enginesOfCrowd = 4

// hitRate returns the part of the tenants' tokens that the index finds, in percent. Between two of their prompts a flooder
// sends so many of 100 blocks, each of them so often.
func (c crowd) hitRate(flood, often int) float64 {
	x, ids := newIndex(enginesOfCrowd, c.tokens)
	lot := rand.New(rand.NewPCG(1, 2))
	place := func(p *Prefix, flow uint64) (r scheduling.Ratings) {
		if !c.oneFlow {
			p.Flow = flow
		}
		r = x.Match(p, ids)
		best := ids[lot.IntN(enginesOfCrowd)]
		if len(r.Near) > 0 {
			best = r.Near[0]
		}
		for _, e := range r.Above {
			if e.Tokens > r.Cached(best) {
				best = e.ID
			}
		}
		x.Place(p, &r, best)
		return r
	}
	var found, all int64
	sent := 0
	for turn := range c.turns {
		for tenant := range uint64(c.tenants) {
			p := blocks(1+tenant, uint64(20+5*turn), 0, 20+5*turn)
			r := place(p, tenant)
			if turn > 0 {
				found, all = found+r.Best(), all+p.Tokens
			}
			for range flood {
				place(blocks(1<<40+uint64(sent/often), 0, 0, 100), 1<<40)
				sent++
			}
		}
	}
	return 100 * float64(found) / float64(all)
}

// A flow of prompts that nobody repeats, of ten times the tokens of all tenants together, costs these at most 5 % of their
// hits; so does one that sends each of its prompts twice, so that they look as if somebody shared them.
func TestFloodOfUniquePrompts(t *testing.T) {
	c := crowd{tenants: 40, turns: 12, tokens: 512_000}
	alone := c.hitRate(0, 1)
	for often, name := range map[int]string{1: "unique", 2: "repeated"} {
		flooded := c.hitRate(5, often) // 500 blocks beside 47 of the tenants', on average
		t.Logf("%.1f %% alone, and %.1f %% beside %s prompts", alone, flooded, name)
		if alone < 80 || flooded < .95*alone {
			t.Errorf("%.1f %% alone, and %.1f %% beside %s prompts", alone, flooded, name)
		}
	}
}

// Where nobody tells the flows apart, a flood of unique prompts still leaves what others ask for again: what they share.
func TestFloodWithinAFlow(t *testing.T) {
	c := crowd{tenants: 40, turns: 12, tokens: 512_000, oneFlow: true}
	alone, flooded := c.hitRate(0, 1), c.hitRate(2, 1)
	t.Logf("%.1f %% alone, and %.1f %%", alone, flooded)
	if flooded < .9*alone {
		t.Errorf("%.1f %% alone, and %.1f %%", alone, flooded)
	}
}

// Many small flows share an index that is too small for all as if they were one: who comes back soon finds all of its
// prompt. A share for each of them would leave each a part.
func TestManySmallFlows(t *testing.T) {
	rate := func(oneFlow bool) float64 {
		return crowd{tenants: 400, turns: 12, tokens: 2_000_000, oneFlow: oneFlow}.hitRate(0, 1)
	}
	if apart, together := rate(false), rate(true); apart < .98*together || together < 50 {
		t.Errorf("%.1f %% for flows, %.1f %% for one", apart, together)
	}
}

// A large tenant gets the room of small ones that are gone.
func TestRoomOfThoseWhoAreGone(t *testing.T) {
	x, ids := newIndex(1, 128_000) // 1,000 blocks
	for tenant := range uint64(50) {
		p := blocks(1+tenant, 0, 1, 18)
		p.Flow = tenant
		x.put(p, 0)
	}
	var all []*Prefix
	for i := range uint64(9) {
		p := blocks(100+i, 0, 1, 100)
		p.Flow = 1 << 20
		all = append(all, p)
	}
	found := 0
	for round := range 40 {
		for _, p := range all {
			if r := x.Match(p, ids); round == 39 && r.Cached(0) == p.Tokens {
				found++
			}
			x.put(p, 0)
		}
	}
	if found != len(all) {
		t.Errorf("of %d prompts the tenant finds %d", len(all), found)
	}
}
