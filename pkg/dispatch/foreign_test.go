package dispatch

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/placement"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// shared drives a machine on a board with foreign stock. Each endpoint takes bound requests.
type shared struct {
	*Machine
	t         *testing.T
	board     *scheduling.Board
	scheduler *scheduling.Scheduler
	snapshot  *scheduling.Snapshot
	clock     time.Time
}

func newShared(t *testing.T, endpoints, bound int, changes ...func(*Config)) *shared {
	t.Helper()
	s, err := scheduling.New(scheduling.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	cfg := DefaultConfig()
	cfg.EnqueueAll = true
	cfg.Queue.CapacityMode, cfg.Queue.TotalCapacity, cfg.Queue.FlowCapacity = fairqueue.Shared, 10_000, 10_000
	cfg.Queue.QueueTTL = time.Hour
	perBackend(&cfg, bound, bound)
	for _, change := range changes {
		change(&cfg)
	}
	x := &shared{t: t, board: scheduling.NewBoard(s, nil), scheduler: s, clock: epoch}
	if x.Machine, err = New(cfg, placement.On(x.board), rand.New(rand.NewPCG(1, 2))); err != nil {
		t.Fatal(err)
	}
	ready := make([]int, endpoints)
	for i := range ready {
		ready[i] = i
	}
	x.ready(endpoints, nil, ready...)
	return x
}

// ready makes these endpoints ready, with this foreign stock.
func (x *shared) ready(endpoints int, others []stock.Foreign, ready ...int) {
	pool := make([]scheduling.Endpoint, endpoints)
	var backends []stock.Backend
	for i := range pool {
		pool[i] = scheduling.Endpoint{ID: Endpoint(i), Address: fmt.Sprintf("10.0.0.%d:80", i+1), Ready: slices.Contains(ready, i)}
		if pool[i].Ready {
			backends = append(backends, stock.Backend{ID: stock.BackendID(i)})
		}
	}
	x.snapshot = scheduling.NewSnapshot(1, pool)
	x.board.SetSnapshot(x.snapshot)
	x.SetBackends(x.clock, backends, others)
}

// held is foreign stock at an endpoint.
func held(endpoint, n int) stock.Foreign {
	return stock.Foreign{ID: stock.BackendID(endpoint), Held: stock.Amount{Requests: n}}
}

// others sets the foreign stock at endpoints.
func (x *shared) others(changes ...stock.Foreign) { x.SetForeign(x.clock, changes) }

// arrives makes a request arrive that may use some endpoints, or all.
func (x *shared) arrives(endpoints ...int) *Waiter {
	x.t.Helper()
	return x.takes(1, endpoints...)
}

// takes makes a request with these tokens arrive that may use some endpoints, or all.
func (x *shared) takes(tokens stock.Tokens, endpoints ...int) *Waiter {
	x.t.Helper()
	return x.comes(0, tokens, endpoints...)
}

// comes makes a request of a tier with these tokens arrive that may use some endpoints, or all. All requests have the
// same cost.
func (x *shared) comes(tier int, tokens stock.Tokens, endpoints ...int) *Waiter {
	x.t.Helper()
	w := new(Waiter)
	x.Arrive(x.clock, w, Arrival{Flow: "a", Tier: tier, Cost: 1, Tokens: tokens, Placement: x.placement(endpoints...)})
	x.Told(w)
	return w
}

// placement returns the placement of a request that may use some endpoints, or all.
func (x *shared) placement(endpoints ...int) Placement {
	x.t.Helper()
	ask := scheduling.Ask{Subset: scheduling.Subset{Set: endpoints != nil}}
	for _, e := range endpoints {
		ask.Subset.Entries = append(ask.Subset.Entries, x.snapshot.At(e).Address)
	}
	q, err := x.scheduler.Prepare(x.snapshot, ask)
	if err != nil {
		x.t.Fatal(err)
	}
	return q
}

// want checks the number of own requests at each endpoint.
func (x *shared) want(what string, own ...int) {
	x.t.Helper()
	for e, n := range own {
		if got := x.board.Stock(Endpoint(e)); got != n {
			x.t.Fatalf("%s: %d in flight at endpoint %d, want %d", what, got, e, n)
		}
	}
}

// An endpoint that was not ready for a while returns with its foreign stock: no request goes there before the stock is
// known.
func TestEndpointIsBackWithWhatOthersHave(t *testing.T) {
	x := newShared(t, 2, 2)
	x.others(held(0, 2))
	x.ready(2, nil, 1)
	for range 4 {
		x.arrives()
	}
	x.want("the other one is ready", 0, 2)
	x.ready(2, []stock.Foreign{held(0, 2)}, 0, 1)
	x.want("it is back", 0, 2)
	x.others(held(0, 1))
	x.want("others end one", 1, 2)
}

// A leader is killed at saturation. Its requests end at the engines at random times, at the latest when its record has
// fallen to 0. The next leader has more requests than fit, for the whole pool and for a part of it. No engine ever
// exceeds its bound, and each is full again when the record has fallen to 0.
func TestNoEngineGetsMoreThanItsBoundAfterAKill(t *testing.T) {
	const endpoints, bound, steps = 5, 6, 60
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		x := newShared(t, endpoints, bound)
		record := make([]int, endpoints)
		var told []stock.Foreign
		for e := range record {
			record[e] = r.IntN(bound + 1)
			told = append(told, held(e, record[e]))
		}
		x.others(told...)
		var going []*Waiter
		for step := range steps + 1 {
			for range r.IntN(4) {
				going = append(going, x.arrives([][]int{nil, {0}, {1, 2}, {2, 3, 4}}[r.IntN(4)]...))
			}
			if len(going) > 0 && r.IntN(2) == 0 {
				if w := going[r.IntN(len(going))]; w.Lease() != nil {
					x.Told(w)
					x.Complete(x.clock, w.Lease(), fairqueue.UnknownCost)
				}
			}
			told = told[:0]
			for e, n := range record {
				told = append(told, held(e, (n*(steps-step)+steps-1)/steps))
			}
			x.others(told...)
			for e, f := range told {
				if n := x.board.Stock(Endpoint(e)) + f.Held.Requests; n > bound {
					t.Fatalf("seed %d, step %d: endpoint %d has %d requests, and its bound is %d", seed, step, e, n, bound)
				}
			}
		}
		for range endpoints * bound {
			x.arrives()
		}
		x.want("the record has fallen", bound, bound, bound, bound, bound)
	}
}
