package fairqueue

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestWeightsOneTwoFour: "three flows at weights 1, 2, 4 permanently backlogged: served in 1:2:4 within 3 % over 700
// grants".
func TestWeightsOneTwoFour(t *testing.T) {
	q := unlimited(t, map[string]Weight{"b": 2 * WeightOne, "c": 4 * WeightOne}, ByArrival)
	served := serveBacklogged(t, q, 700, "a", "b", "c")
	for flow, want := range map[string]float64{"a": 100, "b": 200, "c": 400} {
		if got := float64(served[flow]); math.Abs(got-want) > 0.03*want {
			t.Errorf("flow %s was served %g of 700, want %g within 3 %%", flow, got, want)
		}
	}
}

// Flows of equal weight differ by at most one request, counted at the grant, from the first grant on.
func TestEqualFlowsWithinOne(t *testing.T) {
	q := unlimited(t, nil, ByArrival)
	names := []string{"a", "b", "c", "d", "e"}
	counts := map[string]int{}
	for grant := range 200 {
		for flow, n := range serveBacklogged(t, q, 1, names...) {
			counts[flow] += n
		}
		least, most := math.MaxInt, 0
		for _, flow := range names {
			least, most = min(least, counts[flow]), max(most, counts[flow])
		}
		if most-least > 1 {
			t.Fatalf("after %d grants: %v", grant+1, counts)
		}
	}
}

// serveBacklogged grants n requests of cost 1. Before each grant, two requests of each flow wait.
func serveBacklogged(t *testing.T, q *FairRequestQueue, n int, flows ...string) map[string]int {
	t.Helper()
	var audit audit
	served := map[string]int{}
	for range n {
		for _, flow := range flows {
			for waiting(q, flow) < 2 {
				mustPush(t, q, &Request{Flow: flow, Cost: 1})
			}
		}
		served[popNext(q).Flow]++
		audit.check(t, q)
	}
	return served
}

func waiting(q *FairRequestQueue, flow string) int {
	if f := q.top.classes[0].flows.find(flow); f != nil {
		return f.queued
	}
	return 0
}

// Quiet flows, each with one request at a time, wait beside a flood for at most one grant of the flood between arrival
// and grant. With NewcomerFirst they wait for none, unless another flow was served since the flood.
func TestQuietFlowWaitsForOneGrant(t *testing.T) {
	for _, tieBreak := range tieBreaks {
		q, random := unlimited(t, nil, tieBreak), rand.New(rand.NewPCG(8, uint64(tieBreak)))
		for range 5000 {
			mustPush(t, q, &Request{Flow: "flood", Cost: 1})
		}
		most, before := map[string]int{}, map[string]int{} // by quiet flow that waits: what it may wait for, and has
		after, waited := "flood", 0                        // the flow served last; the waits for a grant in all
		for range 4000 {
			for _, flow := range []string{"a", "b", "c"} {
				if waiting(q, flow) == 0 && random.IntN(6) == 0 {
					mustPush(t, q, &Request{Flow: flow, Cost: 1})
					most[flow], before[flow] = 1, 0
					if tieBreak == NewcomerFirst && after == "flood" {
						most[flow] = 0
					}
				}
			}
			if after = popNext(q).Flow; after != "flood" {
				waited += before[after]
				delete(before, after)
				continue
			}
			for flow := range before {
				if before[flow]++; before[flow] > most[flow] {
					t.Fatalf("tie-break %d: %d grants to the flood before that to %s", tieBreak, before[flow], flow)
				}
			}
		}
		if waited == 0 {
			t.Errorf("tie-break %d: nobody waited for a grant: this shows nothing", tieBreak)
		}
	}
}

// Flows that leave and return at once, and so are always newcomers, get no more than a flow that stays: one grant each
// per round.
func TestNewcomersWaitTheirTurn(t *testing.T) {
	q := unlimited(t, nil, NewcomerFirst)
	returning := []string{"a", "b", "c"}
	for range 200 {
		mustPush(t, q, &Request{Flow: "flood", Cost: 1})
	}
	counts := map[string]int{}
	for grant := range 400 {
		for _, flow := range returning {
			if waiting(q, flow) == 0 {
				mustPush(t, q, &Request{Flow: flow, Cost: 1})
			}
		}
		counts[popNext(q).Flow]++
		for _, flow := range returning {
			if d := counts[flow] - counts["flood"]; d < -1 || d > 1 {
				t.Fatalf("after %d grants: %v", grant+1, counts)
			}
		}
	}
}

// For two flows that are backlogged throughout an interval, |W_f/w_f − W_g/w_g| <= l_f/w_f + l_g/w_g, where W is the
// cost served in the interval and l the largest cost. This is checked on every interval, with random weights, costs and
// arrivals, so that flows become idle and return.
func TestFairnessBound(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 2))
		names := []string{"a", "b", "c", "d"}
		weights := map[string]Weight{}
		for _, name := range names {
			weights[name] = Weight(100_000 + random.IntN(8_000_000))
		}
		q := unlimited(t, weights, tieBreaks[seed%2])
		pairs := map[[2]string]*interval{}
		for i, f := range names {
			for _, g := range names[i+1:] {
				pairs[[2]string{f, g}] = &interval{f: f, g: g, weights: weights}
			}
		}
		largest := map[string]Cost{}
		for range 1000 {
			for _, name := range names {
				if random.IntN(3) == 0 && waiting(q, name) < 8 || waiting(q, name) == 0 && random.IntN(4) == 0 {
					r := &Request{Flow: name, Cost: Cost(1 + random.IntN(50))}
					largest[name] = max(largest[name], r.Cost)
					mustPush(t, q, r)
				}
			}
			backlogged := map[string]bool{}
			for _, name := range names {
				backlogged[name] = waiting(q, name) > 0
			}
			r := popNext(q)
			if r == nil {
				continue
			}
			for _, p := range pairs {
				p.served(r, backlogged[p.f] && backlogged[p.g])
				bound := p.normal(p.f, largest[p.f]) + p.normal(p.g, largest[p.g])
				if difference := p.most - p.least; difference > bound+0.01 {
					t.Fatalf("sequence %d: flows %s and %s differ by %g on an interval, the bound is %g",
						seed, p.f, p.g, difference, bound)
				}
			}
		}
	}
}

// interval follows W_f/w_f − W_g/w_g while both flows are backlogged. The largest difference over any part of the
// interval is that between the highest and the lowest value seen.
type interval struct {
	f, g                 string
	weights              map[string]Weight
	balance, least, most float64
}

func (p *interval) served(r *Request, both bool) {
	switch {
	case !both:
		p.balance, p.least, p.most = 0, 0, 0
	case r.Flow == p.f:
		p.balance += p.normal(p.f, r.Cost)
	case r.Flow == p.g:
		p.balance -= p.normal(p.g, r.Cost)
	}
	p.least, p.most = min(p.least, p.balance), max(p.most, p.balance)
}

func (p *interval) normal(flow string, c Cost) float64 {
	return float64(c) / float64(p.weights[flow]) * 1e6
}
