package dispatch

import (
	"fmt"
	"testing"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/stock"
)

// counting counts what a placer is asked.
type counting struct {
	onBoard
	calls int
}

func (c *counting) Place(p Placement, bound Bound, except *EndpointSet) Reservation {
	c.calls++
	return c.onBoard.Place(p, bound, except)
}

func (c *counting) HasRoom(p Placement, bound Bound, except *EndpointSet) bool {
	c.calls++
	return c.onBoard.HasRoom(p, bound, except)
}

func (c *counting) HasReady(p Placement, except *EndpointSet) bool {
	c.calls++
	return c.onBoard.HasReady(p, except)
}

func (c *counting) Meets(p Placement, set *EndpointSet) bool {
	c.calls++
	return c.onBoard.Meets(p, set)
}

func (c *counting) CanServe(p Placement, e Endpoint) bool {
	c.calls++
	return c.onBoard.CanServe(p, e)
}

// countsCalls has a machine ask a placer that counts, from now on.
func countsCalls(x *shared) *counting {
	c := &counting{onBoard: onBoard{x.board}}
	x.placer = c
	return c
}

// One place at a backend rouses a few of those who are at their cap elsewhere and wait for it, however many they are: as
// many questions are asked for 20 as for 2,000, and the place goes to the first of them. Here every tenant has a request
// at a backend without end, and waits with another for the one place of the second backend.
func TestOnePlaceRousesFew(t *testing.T) {
	asked := map[int]int{}
	for _, n := range []int{20, 2000} {
		x := newShared(t, 2, 1_000_000, func(c *Config) {
			c.MaxInFlightPerFlowPerBackend = 1
			c.Stock.Tokens = stock.TokensConfig{Watermark: stock.Tokens(10 * n), Lower: stock.Tokens(10 * n), Upper: stock.Tokens(10 * n)}
		})
		arrives := func(flow string, tokens stock.Tokens, at ...int) *Waiter {
			w := new(Waiter)
			x.Arrive(x.clock, w, Arrival{Flow: flow, Tokens: tokens, Placement: x.placement(at...)})
			return w
		}
		giant := arrives("giant", stock.Tokens(10*n), 1)
		for i := range n {
			if w := arrives(fmt.Sprint(i), 1, 0); w.Stage() != StageSent {
				t.Fatalf("stage %d", w.Stage())
			}
		}
		var waiting []*Waiter
		for i := range n {
			waiting = append(waiting, arrives(fmt.Sprint(i), stock.Tokens(10*n)))
		}
		c := countsCalls(x)
		going := giant
		for i, w := range waiting[:10] {
			c.calls = 0
			x.Complete(x.clock, going.Lease(), fairqueue.UnknownCost)
			if w.Stage() != StageGranted || w.Lease().Endpoint() != 1 {
				t.Fatalf("of %d, number %d: stage %d", n, i, w.Stage())
			}
			x.Told(w)
			going = w
			asked[n] = max(asked[n], c.calls)
		}
		for _, w := range waiting[10:] {
			if w.Stage() != StageWaiting {
				t.Fatalf("stage %d", w.Stage())
			}
		}
	}
	if asked[20] != asked[2000] || asked[20] > 40 {
		t.Errorf("questions for one place: %v", asked)
	}
}
