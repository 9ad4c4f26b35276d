package dispatch

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/stock"
)

// bounded bounds the tokens at each endpoint.
func bounded(bound stock.Tokens) func(*Config) {
	return func(c *Config) { c.Stock.Tokens = stock.TokensConfig{Watermark: bound, Lower: bound, Upper: bound} }
}

// tokenBands are bounds of an endpoint: one number, a tenth around it, and far apart, each with its lower and upper
// bound in tokens.
var tokenBands = []struct {
	name         string
	band         stock.TokensConfig
	lower, upper stock.Tokens
}{
	{"one bound", stock.TokensConfig{Watermark: 5000, Lower: 5000, Upper: 5000}, 5000, 5000},
	{"a tenth around", stock.TokensConfig{Watermark: 5000}, 4500, 5500},
	{"far apart", stock.TokensConfig{Watermark: 5000, Lower: 1000, Upper: 9000}, 1000, 9000},
}

// A request larger than all bounds together closes only its own endpoint. Requests that can use the others go there,
// with or without waiting, whatever the large one's tokens turn out to be.
func TestOneGiantClosesItsEndpointAlone(t *testing.T) {
	for _, c := range tokenBands {
		t.Run(c.name, func(t *testing.T) {
			x := newShared(t, 3, 8, func(cfg *Config) { cfg.Stock.Tokens = c.band })
			giant := x.takes(200_000)
			e := int(giant.Lease().Endpoint())
			others := slices.Delete([]int{0, 1, 2}, e, e+1)
			near, far := others[0], others[1]
			for range 6 {
				w := x.takes(200)
				if w.Stage() != StageSent || int(w.Granted().Endpoint()) == e {
					t.Fatalf("stage %d at endpoint %d; the giant is at %d", w.Stage(), w.Granted().Endpoint(), e)
				}
			}
			second := x.takes(300_000, near)
			x.Raise(x.clock, giant.Lease(), 1, 1_000_000)
			for _, full := range []int{e, near} {
				if w := x.takes(1, full); w.Stage() != StageWaiting {
					t.Errorf("stage %d: endpoint %d is full", w.Stage(), full)
				}
			}
			if w := x.takes(200); w.Stage() != StageSent || int(w.Granted().Endpoint()) != far {
				t.Errorf("stage %d at endpoint %d: two giants leave the third endpoint alone", w.Stage(), w.Granted().Endpoint())
			}
			x.takes(9000, far)
			waits := x.takes(200)
			if waits.Stage() != StageWaiting {
				t.Fatalf("stage %d: all are full", waits.Stage())
			}
			x.TrueUp(x.clock, second.Lease(), 1, 10)
			if waits.Stage() != StageGranted || int(waits.Granted().Endpoint()) != near {
				t.Errorf("stage %d: the second giant was none", waits.Stage())
			}
		})
	}
}

// giants is a random workload of small requests and giants, on a pool of four endpoints, not all of which are ready.
type giants struct {
	*shared
	t              *testing.T
	ofPool         []int // the ready ones
	others         [4]stock.Tokens
	lower, upper   stock.Tokens
	waiting, going []*job
}

// tokensAt returns an endpoint's tokens, own and foreign.
func (g *giants) tokensAt(e int) stock.Tokens {
	return g.others[e] + holds(g.going, func(j *job) bool { return int(j.Lease().Endpoint()) == e }).tokens
}

// follow checks the results of an event. A request that went found its endpoint below the upper bound; if it had
// waited, an endpoint was below its lower bound, or all were empty. A waiting request can use no endpoint below its
// lower bound, whatever the others hold.
func (g *giants) follow(own ...*job) {
	g.waiting = append(g.waiting, own...)
	went := slices.Clone(g.Verdicts())
	for _, j := range own {
		if j.Stage() == StageSent {
			went = append([]*Waiter{j.Waiter}, went...)
		}
	}
	for _, w := range went {
		i := slices.IndexFunc(g.waiting, func(j *job) bool { return j.Waiter == w })
		j := g.waiting[i]
		g.waiting = slices.Delete(g.waiting, i, i+1)
		e := int(w.Granted().Endpoint())
		if n := g.tokensAt(e); n >= g.upper {
			g.t.Fatalf("a request goes to endpoint %d, which holds %d of %d", e, n, g.upper)
		}
		low := func(e int) bool { return g.tokensAt(e) < g.lower }
		if w.WasQueued() && len(g.going) > 0 && !slices.ContainsFunc(g.ofPool, low) {
			g.t.Fatalf("a request is released, and no endpoint is below %d", g.lower)
		}
		g.Told(w)
		g.going = append(g.going, j)
	}
	for _, j := range g.waiting {
		for _, e := range g.ofPool {
			if (j.lane == nil || slices.Contains(j.lane, e)) && g.tokensAt(e) < g.lower {
				g.t.Fatalf("a request for %v waits, and endpoint %d holds %d of %d to %d", j.lane, e, g.tokensAt(e), g.lower, g.upper)
			}
		}
	}
}

// step makes a random event.
func (g *giants) step(r *rand.Rand) {
	size := func() stock.Tokens { return []stock.Tokens{10, 200, 900, 4600, 50_000}[r.IntN(5)] }
	some := func() *job { return g.going[r.IntN(len(g.going))] }
	switch n := r.IntN(20); {
	case n < 8 && len(g.waiting) < 30:
		j := &job{Waiter: new(Waiter), lane: [][]int{nil, nil, {0}, {1, 2}, {2, 3}}[r.IntN(5)], tokens: size()}
		g.Arrive(g.clock, j.Waiter, Arrival{Flow: string(rune('a' + r.IntN(3))), Tokens: j.tokens, Placement: g.placement(j.lane...)})
		g.follow(j)
		return
	case n < 13 && len(g.going) > 0:
		j := some()
		g.going = slices.DeleteFunc(g.going, func(o *job) bool { return o == j })
		g.Complete(g.clock, j.Lease(), fairqueue.UnknownCost)
	case n == 13 && len(g.going) > 0:
		j, to := some(), size()
		j.tokens = max(j.tokens, to)
		g.Raise(g.clock, j.Lease(), 1, to)
	case n == 14 && len(g.going) > 0:
		j := some()
		j.tokens = size()
		g.TrueUp(g.clock, j.Lease(), 1, j.tokens)
	case n == 15 && len(g.going) > 0:
		j := some()
		g.ServedElsewhere(g.clock, j.Lease(), Endpoint(r.IntN(4)), 200)
	case n == 16: // endpoints go and return; foreign stock goes with them
		g.ofPool = slices.DeleteFunc([]int{0, 1, 2, 3}, func(int) bool { return r.IntN(4) == 0 })
		for e := range g.others {
			if !slices.Contains(g.ofPool, e) {
				g.others[e] = 0
			}
		}
		g.ready(4, nil, g.ofPool...)
	case n == 17 && len(g.ofPool) > 0:
		e := g.ofPool[r.IntN(len(g.ofPool))]
		g.others[e] = stock.Tokens(r.IntN(2)) * size()
		g.shared.others(stock.Foreign{ID: stock.BackendID(e), Held: stock.Amount{Requests: 1, Tokens: g.others[e]}})
	case n == 18: // a reload
		g.bands(r.IntN(len(tokenBands)))
	default:
		return
	}
	g.follow()
}

// bands sets the bounds.
func (g *giants) bands(i int) {
	cfg := g.config
	cfg.Stock.Tokens, g.lower, g.upper = tokenBands[i].band, tokenBands[i].lower, tokenBands[i].upper
	if err := g.Configure(g.clock, cfg); err != nil {
		g.t.Fatal(err)
	}
}

// For requests of any size, any corrections of their tokens, any foreign stock, any changes of the bounds and
// endpoints: no request waits while an endpoint for it is below its lower bound, and no endpoint at its upper bound
// gets more.
func TestGiantsCloseNobodyElse(t *testing.T) {
	waited, giant := 0, 0
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 90))
			g := &giants{shared: newShared(t, 4, 1000, bounded(1)), t: t, ofPool: []int{0, 1, 2, 3}}
			g.bands(int(seed) % len(tokenBands))
			for range 300 {
				g.step(r)
				waited += len(g.waiting)
				if total := holds(g.going, everyJob).tokens; total > 4*g.upper && len(g.waiting) == 0 {
					giant++
				}
			}
			g.ofPool = []int{0, 1, 2, 3}
			g.others = [4]stock.Tokens{}
			g.ready(4, []stock.Foreign{{ID: 0}, {ID: 1}, {ID: 2}, {ID: 3}}, g.ofPool...)
			g.follow()
			for len(g.going) > 0 {
				g.Complete(g.clock, g.going[0].Lease(), fairqueue.UnknownCost)
				g.going = g.going[1:]
				g.follow()
			}
			if s := g.State(); s.Stock != 0 || s.Tokens != 0 || s.Queued != 0 {
				t.Errorf("left: %+v", s)
			}
		})
	}
	if waited == 0 || giant < 100 {
		t.Errorf("%d waited, and %d times a pool above its bounds let everybody go: too light to show anything", waited, giant)
	}
}
