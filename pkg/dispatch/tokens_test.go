package dispatch

import (
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

// An endpoint's bound is rounded up, like the pool's: 5.5 tokens are not reached by 5.
func TestTokenBoundIsRoundedUp(t *testing.T) {
	x := newShared(t, 2, 8, func(c *Config) {
		c.Stock.Tokens = stock.TokensConfig{Watermark: 5}
		c.Stock.PercentageDeviationForBounds = stock.One / 10
	})
	x.takes(5, 0)
	x.takes(1, 0)
	x.want("5 are below 5.5", 2, 0)
	x.takes(1, 0)
	x.want("6 are not", 2, 0)
}

// Others' stock at an endpoint counts with its tokens, and an endpoint that leaves and returns has what it had.
func TestTokensOfOthersAndOfEndpointsThatReturn(t *testing.T) {
	x := newShared(t, 2, 8, bounded(100))
	x.others(stock.Foreign{ID: 0, Held: stock.Amount{Requests: 1, Tokens: 100}})
	w := x.takes(60, 0)
	x.want("others have filled it", 0, 0)
	x.others(stock.Foreign{ID: 0, Held: stock.Amount{Requests: 1, Tokens: 30}})
	x.want("others use less", 1, 0)
	x.Told(w)
	x.ready(1, nil) // the first one is not ready, the second gone
	x.ready(2, nil, 0, 1)
	x.takes(60, 0)
	x.want("60 of ours, and nothing of others any more", 2, 0)
	x.takes(1, 0)
	x.want("120 of ours", 2, 0)
	x.want("and nothing else", 2, 0)
}

// A lease that was taken while tokens had no bound counts at its endpoint from the reload on that bounds them.
func TestLeasesFromBeforeTheBoundCount(t *testing.T) {
	x := newShared(t, 2, 8)
	first := x.takes(90, 0)
	cfg := x.Config()
	bounded(50)(&cfg)
	if err := x.Configure(x.clock, cfg); err != nil {
		t.Fatal(err)
	}
	waits := x.takes(1, 0)
	if elsewhere := x.takes(1, 1); waits.Stage() != StageWaiting || elsewhere.Stage() != StageSent {
		t.Errorf("90 of 50 tokens are at the first: stages %d and %d", waits.Stage(), elsewhere.Stage())
	}
	x.Complete(x.clock, first.Lease(), fairqueue.UnknownCost)
	if waits.Stage() != StageGranted {
		t.Errorf("stage %d, and nothing is there", waits.Stage())
	}
}

// No request is preempted where the rest takes too many tokens for the preemptor to go.
func TestPreemptionByTokens(t *testing.T) {
	x := newShared(t, 2, 2, bounded(100), func(c *Config) { twoTiers(c); perBackend(c, 2, 2) })
	first, second := x.comes(1, 40, 0), x.comes(1, 40, 0)
	x.FirstByte(first.Lease()) // so it is no victim
	x.Raise(x.clock, first.Lease(), 1, 150)
	high := x.comes(0, 1, 0)
	if high.Stage() != StageWaiting || x.Preemptor() != nil || second.Stage() != StageSent {
		t.Fatalf("stages %d, %d: without the newest, 150 would still be there", high.Stage(), second.Stage())
	}
	x.TrueUp(x.clock, first.Lease(), 1, 99)
	if x.Preemptor() != high {
		t.Fatalf("stage %d: without the newest, 99 would be there", high.Stage())
	}
	x.Preempt(x.clock)
	if high.Stage() != StageGranted || second.Outcome() != OutcomePreempted {
		t.Errorf("stages %d, %d", high.Stage(), second.Stage())
	}
	if got := x.board.TakesTokens(0, 0); got {
		t.Error("99 and 1 are there")
	}
	if !x.board.TakesTokens(0, -1) {
		t.Error("what the victim took is still there")
	}
}

// Two subsets, long prompts and short ones, overruns and true-ups: whenever a request goes to an endpoint, what is there
// already is below its bound in tokens; and nobody waits whose endpoint is below every bound.
func TestTokensStayWithinTheirBounds(t *testing.T) {
	const bound, slots = 1000, 6
	x := newShared(t, 6, slots, bounded(bound))
	r := rand.New(rand.NewPCG(3, 4))
	subsets := [][]int{{0, 1, 2}, {3, 4, 5}, {2, 3}, nil}
	type request struct {
		*Waiter
		subset []int
		tokens stock.Tokens
	}
	var waiting, going []*request
	size := func() stock.Tokens { return []stock.Tokens{10, 50, 400, 900, 1500}[r.IntN(5)] }
	at := func(e int) (n int64, sum stock.Tokens) {
		for _, g := range going {
			if int(g.Lease().Endpoint()) == e {
				n, sum = n+1, sum+g.tokens
			}
		}
		return n, sum
	}
	follow := func() {
		var went []*request
		waiting = slices.DeleteFunc(waiting, func(w *request) bool {
			gone := w.Stage() == StageGranted || w.Stage() == StageSent
			if gone {
				went = append(went, w)
			}
			return gone
		})
		last := map[int]stock.Tokens{} // the largest of those that went to an endpoint: at least it may have been the last
		for _, w := range went {
			x.Told(w.Waiter)
			e := int(w.Lease().Endpoint())
			last[e] = max(last[e], w.tokens)
		}
		going = append(going, went...)
		for e, size := range last {
			if _, sum := at(e); sum-size >= bound {
				t.Fatalf("what is at endpoint %d takes %d, and took %d before the last one", e, sum, sum-size)
			}
		}
		for _, w := range waiting {
			below := false
			lane := w.subset
			if lane == nil {
				lane = []int{0, 1, 2, 3, 4, 5}
			}
			for _, e := range lane {
				n, sum := at(e)
				below = below || sum < bound && n < slots
			}
			if below {
				t.Fatalf("a request for %v waits, and an endpoint there is below both bounds", w.subset)
			}
		}
	}
	for range 4000 {
		switch n := r.IntN(10); {
		case n < 5 && len(waiting) < 40:
			w := &request{subset: subsets[r.IntN(len(subsets))], tokens: size()}
			w.Waiter = x.takes(w.tokens, w.subset...)
			waiting = append(waiting, w)
		case n < 8 && len(going) > 0:
			i := r.IntN(len(going))
			w := going[i]
			going = slices.Delete(going, i, i+1)
			x.Complete(x.clock, w.Lease(), fairqueue.UnknownCost)
		case len(going) > 0:
			w := going[r.IntN(len(going))]
			w.tokens = size()
			x.TrueUp(x.clock, w.Lease(), 1, w.tokens)
		}
		follow()
	}
	for len(going) > 0 {
		w := going[0]
		going = going[1:]
		x.Complete(x.clock, w.Lease(), fairqueue.UnknownCost)
		follow()
	}
	if len(waiting) > 0 {
		t.Fatalf("%d wait, and nothing is in flight", len(waiting))
	}
}
