package dispatch

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/stock"
)

// job is a request of a random workload, with its current cost and tokens.
type job struct {
	*Waiter
	flow   string
	lane   []int // nil: all endpoints
	tokens stock.Tokens
}

// holding is the stock held by some requests, in both units.
type holding struct {
	requests int
	tokens   stock.Tokens
}

func holds(jobs []*job, which func(*job) bool) (h holding) {
	for _, j := range jobs {
		if which(j) {
			h.requests++
			h.tokens += j.tokens
		}
	}
	return h
}

// below reports whether another request may be added, in both units; a bound of 0 is no bound.
func (h holding) below(most holding) bool {
	return (most.requests == 0 || h.requests < most.requests) && (most.tokens == 0 || h.tokens < most.tokens)
}

// workload is a random workload on a pool with every bound in both units.
type workload struct {
	*shared
	t                                 *testing.T
	endpoints                         int
	perBackend, perFlow, perFlowThere holding
	waiting, going                    []*job
}

func (w *workload) of(flow string) func(*job) bool {
	return func(j *job) bool { return j.flow == flow }
}

func (w *workload) at(e int) func(*job) bool {
	return func(j *job) bool { return int(j.Lease().Endpoint()) == e }
}

func everyJob(*job) bool { return true }

// pool is the bound of the whole pool.
func (w *workload) pool() holding {
	return holding{w.perBackend.requests * w.endpoints, w.perBackend.tokens * stock.Tokens(w.endpoints)}
}

func (w *workload) laneOf(j *job) []int {
	if j.lane != nil {
		return j.lane
	}
	all := make([]int, w.endpoints)
	for i := range all {
		all[i] = i
	}
	return all
}

// goes checks that a request may go: the pool, its lane, its endpoint and its flow were below their bounds before, or
// empty.
func (w *workload) goes(j *job) {
	e := int(j.Lease().Endpoint())
	theFlows := func(o *job) bool { return o.flow == j.flow && int(o.Lease().Endpoint()) == e }
	lane := w.laneOf(j)
	inLane := func(o *job) bool { return slices.Contains(lane, int(o.Lease().Endpoint())) }
	for _, bound := range []struct {
		of   string
		held holding
		most holding
	}{
		{"the pool", holds(w.going, everyJob), holding{requests: w.pool().requests}},
		{"its lane", holds(w.going, inLane), holding{requests: w.perBackend.requests * len(lane)}},
		{"its endpoint", holds(w.going, w.at(e)), w.perBackend},
		{"its flow", holds(w.going, w.of(j.flow)), w.perFlow},
		{"its flow at its endpoint", holds(w.going, theFlows), w.perFlowThere},
	} {
		if bound.held.requests > 0 && !bound.held.below(bound.most) {
			w.t.Fatalf("a request of %s for %v goes to %d, and %s holds %+v of %+v already", j.flow, j.lane, e, bound.of, bound.held, bound.most)
		}
	}
	w.Told(j.Waiter)
	w.going = append(w.going, j)
}

// mayGo reports whether a request could go: an endpoint is below its bounds, and its flow is below its caps or has
// nothing in flight.
func (w *workload) mayGo(j *job) bool {
	flows := holds(w.going, w.of(j.flow))
	var place bool
	for _, e := range w.laneOf(j) {
		there := holds(w.going, w.at(e))
		its := holds(w.going, func(o *job) bool { return o.flow == j.flow && int(o.Lease().Endpoint()) == e })
		place = place || there.below(w.perBackend) && (its.requests == 0 || its.below(w.perFlowThere))
	}
	return place && (flows.requests == 0 || flows.below(w.perFlow))
}

// follow checks the results of an event. own is the request that arrived in it, or nil.
func (w *workload) follow(own *job) {
	if own != nil {
		w.waiting = append(w.waiting, own)
	}
	leave := func(v *Waiter) {
		i := slices.IndexFunc(w.waiting, func(j *job) bool { return j.Waiter == v })
		j := w.waiting[i]
		w.waiting = slices.Delete(w.waiting, i, i+1)
		w.goes(j)
	}
	if own != nil && own.Stage() == StageSent {
		leave(own.Waiter)
	}
	for _, v := range slices.Clone(w.Verdicts()) {
		leave(v)
	}
	for _, j := range w.waiting {
		if w.mayGo(j) {
			w.t.Fatalf("a request of %s for %v waits, and nothing keeps it: its flow holds %+v, the pool %+v of %+v", j.flow, j.lane,
				holds(w.going, w.of(j.flow)), holds(w.going, everyJob), w.pool())
		}
	}
	if len(w.going) == 0 && len(w.waiting) > 0 {
		w.t.Fatalf("%d wait, and nothing is in flight", len(w.waiting))
	}
}

// A request goes only if the pool, its lane, its endpoint, its flow and its flow there are below their bounds in
// requests and in tokens, or hold nothing. So each bound is exceeded by at most that request and overruns; into an
// empty holder goes a request of any size. The pool's bound in tokens is the sum of its endpoints' bounds, whatever
// each holds. No request waits that none of these bounds stops. Costs, drawn independently, make no difference.
func TestBoundsInBothUnits(t *testing.T) {
	waited, largest := 0, 0
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 12))
			w := &workload{t: t, endpoints: 2 + r.IntN(4), perBackend: holding{1 + r.IntN(5), stock.Tokens(50 + r.IntN(200))}}
			if r.IntN(2) == 0 {
				w.perFlow = holding{r.IntN(6), stock.Tokens(r.IntN(300))}
			}
			if r.IntN(2) == 0 {
				w.perFlowThere = holding{r.IntN(3), stock.Tokens(r.IntN(200))}
			}
			w.shared = newShared(t, w.endpoints, w.perBackend.requests, bounded(w.perBackend.tokens), func(c *Config) {
				c.MaxInFlightPerFlow, c.MaxTokensInFlightPerFlow = w.perFlow.requests, w.perFlow.tokens
				c.MaxInFlightPerFlowPerBackend, c.MaxTokensInFlightPerFlowPerBackend = w.perFlowThere.requests, w.perFlowThere.tokens
				c.Queue.Discipline = []fairqueue.Discipline{fairqueue.WFQ, fairqueue.VTC}[r.IntN(2)]
			})
			size := func() stock.Tokens { return []stock.Tokens{1, 5, 30, 90, 400}[r.IntN(5)] }
			lanes := [][]int{nil, nil, {0}, {0, 1}, {w.endpoints - 1}}
			for range 400 {
				switch n := r.IntN(12); {
				case n < 5 && len(w.waiting) < 30:
					j := &job{new(Waiter), string(rune('a' + r.IntN(4))), lanes[r.IntN(len(lanes))], size()}
					w.Arrive(w.clock, j.Waiter, Arrival{
						Flow: j.flow, Cost: fairqueue.Cost(1 + r.IntN(500)), Tokens: j.tokens, Placement: w.placement(j.lane...),
					})
					w.follow(j)
				case n < 9 && len(w.going) > 0:
					i := r.IntN(len(w.going))
					j := w.going[i]
					w.going = slices.Delete(w.going, i, i+1)
					w.Complete(w.clock, j.Lease(), fairqueue.Cost(r.IntN(500)))
					w.follow(nil)
				case n == 9 && len(w.going) > 0:
					j := w.going[r.IntN(len(w.going))]
					to := size()
					j.tokens = max(j.tokens, to)
					w.Raise(w.clock, j.Lease(), fairqueue.Cost(r.IntN(500)), to)
					w.follow(nil)
				case len(w.going) > 0:
					j := w.going[r.IntN(len(w.going))]
					j.tokens = size()
					w.TrueUp(w.clock, j.Lease(), fairqueue.Cost(1+r.IntN(500)), j.tokens)
					w.follow(nil)
				}
				waited = max(waited, len(w.waiting))
				if holds(w.going, everyJob).tokens > w.pool().tokens {
					largest++
				}
			}
			for len(w.going) > 0 {
				j := w.going[0]
				w.going = w.going[1:]
				w.Complete(w.clock, j.Lease(), fairqueue.UnknownCost)
				w.follow(nil)
			}
		})
	}
	if waited < 20 || largest == 0 {
		t.Errorf("%d waited at most, %d times the pool was above its bound: the workloads are too light to show anything", waited, largest)
	}
}
