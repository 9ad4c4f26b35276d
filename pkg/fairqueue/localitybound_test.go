package fairqueue

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// A flow that comes back after each grant shares evenly with one that always matches, and one of weight 100 gets a hundred
// times as much: the service differs by the bound, of which the quantum is a part, however long it goes on.
func TestAdversaryThatComesBack(t *testing.T) {
	for _, d := range withFlows {
		for _, weights := range [][2]Weight{{WeightOne, WeightOne}, {100 * WeightOne, WeightOne}, {WeightOne, 100 * WeightOne}, {WeightOne / 100, WeightOne / 100}} {
			for _, quantum := range []Cost{0, 50, 20_000} {
				cfg := matchingConfig(d, Locality, quantum)
				cfg.Weights = map[string]Weight{"back": weights[0], "match": weights[1]}
				q := queue(t, cfg)
				served := map[string]float64{}
				for range 20_000 {
					for waiting(q, "match") < 20 {
						mustPush(t, q, &Request{Flow: "match", Owner: "match", Cost: 100})
					}
					if waiting(q, "back") == 0 {
						mustPush(t, q, &Request{Flow: "back", Owner: "back", Cost: 100})
					}
					r := popMatch(q, start, "match")
					ends(q, r, r.Cost)
					served[r.Flow] += float64(r.Cost) * float64(WeightOne) / float64(cfg.weight(r.Flow))
				}
				least := float64(min(weights[0], weights[1])) / float64(WeightOne)
				bound := 3 * 100 / least // wfq: what it has waits until its turn, of which each is behind by its own cost
				if gap := served["match"] - served["back"]; gap > bound+float64(quantum)/least || -gap > bound+float64(quantum)/least {
					t.Errorf("discipline %d, weights %v, quantum %d: served %v, apart by %.0f, want %.0f",
						d, weights, quantum, served, gap, bound+float64(quantum)/least)
				}
			}
		}
	}
}

// The bound in locality.go holds over random workloads in which any flow, or all requests of a kind, match for a while: from
// the moment when both wait, no flow gets more than l_f + l_g + Q/w_f + 2E above another; over any interval both quanta count.
func TestBoundOfMatches(t *testing.T) {
	for _, d := range withFlows {
		reached := 0.0
		for seed := range seeds(200) {
			r, err := boundOfMatches(t, d, seed)
			if err != nil {
				t.Fatalf("discipline %d, sequence %d: %v", d, seed, err)
			}
			reached = max(reached, r)
		}
		if reached < 0.6 {
			t.Errorf("discipline %d: the adversaries come to %.2f of the bound only", d, reached)
		}
	}
}

func boundOfMatches(t *testing.T, d Discipline, seed uint64) (reached float64, err error) {
	random := rand.New(rand.NewPCG(seed, 77))
	flows := []string{"a", "b", "c", "d"}[:2+random.IntN(3)]
	cfg := matchingConfig(d, []Order{FCFS, Locality}[random.IntN(2)], []Cost{0, 40, 300, 2000}[random.IntN(4)])
	cfg.FairShare.WaitBonus, cfg.FairShare.Threshold = 0, millionth // they have bounds of their own
	cfg.Weights = map[string]Weight{}
	for _, f := range flows {
		cfg.Weights[f] = []Weight{WeightOne, WeightOne / 100, 100 * WeightOne, 3 * WeightOne}[random.IntN(4)*random.IntN(2)]
	}
	q := queue(t, cfg)
	weight := func(f string) float64 { return float64(cfg.weight(f)) / float64(WeightOne) }
	largest := map[string]float64{}
	type pair struct{ f, g string }
	lead, least, most := map[pair]float64{}, map[pair]float64{}, map[pair]float64{}
	favourite := flows[0]
	var audit audit
	for step := range 3000 {
		if random.IntN(150) == 0 {
			favourite = flows[random.IntN(len(flows))]
		}
		for _, f := range flows {
			for waiting(q, f) < 10 {
				cost := Cost(1 + random.IntN(100))
				largest[f] = max(largest[f], float64(cost)/weight(f))
				mustPush(t, q, &Request{Flow: f, Owner: f, Cost: cost})
			}
		}
		r := popMatch(q, start, favourite)
		ends(q, r, r.Cost)
		if step%100 == 0 {
			audit.check(t, q)
		}
		for _, f := range flows {
			for _, g := range flows {
				if f == g || r.Flow != f && r.Flow != g {
					continue
				}
				p, by := pair{f, g}, float64(r.Cost)/weight(r.Flow)
				if r.Flow == g {
					by = -by
				}
				lead[p] += by
				least[p], most[p] = min(least[p], lead[p]), max(most[p], lead[p])
				lf, lg := largest[f], largest[g]
				if d == WFQ && cfg.Order == Locality {
					lf, lg = 2*lf, 2*lg
				}
				aheadF, aheadG := float64(cfg.LocalityQuantum)/weight(f), float64(cfg.LocalityQuantum)/weight(g)
				// Both wait from the start, and all the time. What they paid for in advance is in l.
				if lead[p] > lf+lg+aheadF+0.01 {
					return 0, fmt.Errorf("%s is %.2f above %s, and may be %.2f", f, lead[p], g, lf+lg+aheadF)
				}
				if apart := most[p] - least[p]; apart > lf+lg+aheadF+aheadG+0.01 {
					return 0, fmt.Errorf("%s and %s move apart by %.2f, and may by %.2f", f, g, apart, lf+lg+aheadF+aheadG)
				}
				if cfg.LocalityQuantum >= 300 {
					reached = max(reached, (most[p]-least[p])/(lf+lg+aheadF+aheadG))
				}
			}
		}
	}
	return reached, nil
}

// A flow that comes back after each grant, each time with another cost, has less service than one that always waits, since
// vtc takes its return for lateness. Where the other one always matches, it has no less than that, but for the quantum.
func TestMatchesCostNothingToThoseWhoComeBack(t *testing.T) {
	share := func(n int, quantum Cost) float64 {
		random := rand.New(rand.NewPCG(1, 77))
		flows := []string{"back", "match", "other"}[:n]
		q := queue(t, matchingConfig(VTC, FCFS, quantum))
		served := map[string]float64{}
		for range 50_000 {
			for i, f := range flows {
				for waiting(q, f) == 0 || i > 0 && waiting(q, f) < 10 {
					mustPush(t, q, &Request{Flow: f, Owner: f, Cost: Cost(1 + random.IntN(100))})
				}
			}
			r := popMatch(q, start, "match")
			ends(q, r, r.Cost)
			served[r.Flow] += float64(r.Cost)
		}
		return served["back"] / served["match"]
	}
	for _, n := range []int{2, 3} {
		without := share(n, 0)
		for _, quantum := range []Cost{40, 300, 2000} {
			if with := share(n, quantum); with < without-0.002 {
				t.Errorf("%d flows, quantum %d: it gets %.3f of the other's service, and %.3f without", n, quantum, with, without)
			}
		}
	}
}

// A request that took a turn and is requeued is where it was, and so are the others.
func TestMatchComesBack(t *testing.T) {
	for _, d := range withFlows {
		q := queue(t, matchingConfig(d, Locality, 100))
		pushNamed(t, q, "a", "a1", "a2", "a3")
		pushNamed(t, q, "b", "b1", "b2")
		before := may(q, start)
		for _, name := range []string{"a3", "b2"} {
			r := popMatch(q, start, name)
			if r.Owner != name {
				t.Fatalf("%v goes, want %s", r.Owner, name)
			}
			q.Requeue(r)
			wantMay(t, q, start, before)
		}
	}
}
