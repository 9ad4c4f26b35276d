package fairqueue

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// ledger follows, in the test's own numbers, what two flows may differ by: for each pair the counters' difference while
// both wait, and the largest error of their requests in flight so far.
type ledger struct {
	q       *FairRequestQueue
	flows   []string
	flying  []*lease
	largest map[string]float64 // cost over weight, so far
	error   map[string]float64 // now: Σ |actual − charged|/weight of the flow's requests in flight
	pairs   map[[2]string]*spread
	expects bool // costs are taken for less in flight, rightly or not
}

// lease is a request in flight: until its cost is corrected for good.
type lease struct {
	r               *Request
	weight          float64
	charged, actual float64
	completed       bool
}

// spread is the range of S_f − S_g, and of the difference of the service dispatched, while both flows wait.
type spread struct {
	both                bool
	errors              float64 // the largest sum of errors so far
	least, most         float64 // of the counters' difference, in this interval
	served              float64 // service of f less that of g, in this interval
	leastServed, mostly float64
}

func newLedger(q *FairRequestQueue, flows ...string) *ledger {
	l := &ledger{q: q, flows: flows, largest: map[string]float64{}, error: map[string]float64{}, pairs: map[[2]string]*spread{}}
	for i, f := range flows {
		for _, g := range flows[i+1:] {
			l.pairs[[2]string{f, g}] = &spread{}
		}
	}
	return l
}

func (l *ledger) weight(flow string) float64 {
	return float64(l.q.config.weight(flow)) / float64(WeightOne)
}

// dispatched notes that r has gone, and will cost actual.
func (l *ledger) dispatched(r *Request, actual Cost) {
	w := l.weight(r.Flow)
	l.flying = append(l.flying, &lease{r: r, weight: w, charged: float64(r.Cost), actual: float64(actual)})
	l.largest[r.Flow] = max(l.largest[r.Flow], float64(r.Cost)/w)
	for pair, s := range l.pairs {
		if s.both && pair[0] == r.Flow {
			s.served += float64(actual) / w
		} else if s.both && pair[1] == r.Flow {
			s.served -= float64(actual) / w
		}
	}
}

// corrects makes a random correction: a raise, a lower expectation, the end, with its cost or without, or the cost after the end.
func (l *ledger) corrects(random *rand.Rand) {
	if len(l.flying) == 0 {
		return
	}
	i := random.IntN(len(l.flying))
	x := l.flying[i]
	if random.IntN(3) == 0 && x.actual > x.charged+1 && !x.completed {
		to := x.charged + 1 + math.Floor(random.Float64()*(x.actual-x.charged-1))
		l.q.Adjust(start, x.r, Cost(to))
		x.charged = to
		return
	}
	if l.expects && x.charged > 1 && !x.completed && random.IntN(4) == 0 {
		to := 1 + math.Floor(random.Float64()*(x.charged-1))
		l.q.TrueUp(start, x.r, Cost(to))
		x.charged = to
		return
	}
	if random.IntN(3) == 0 && !x.completed {
		x.completed = true
		l.q.Completed(x.r)
		return
	}
	l.q.TrueUp(start, x.r, Cost(x.actual))
	l.q.Completed(x.r)
	l.flying = append(l.flying[:i], l.flying[i+1:]...)
}

// settle ends a request that is in flight with its actual cost.
func (l *ledger) settle(r *Request) {
	i := slices.IndexFunc(l.flying, func(x *lease) bool { return x.r == r })
	ends(l.q, r, Cost(l.flying[i].actual))
	l.flying = slices.Delete(l.flying, i, i+1)
}

// check checks the bound for every pair.
func (l *ledger) check() error {
	clear(l.error)
	for _, x := range l.flying {
		l.error[x.r.Flow] += math.Abs(x.actual-x.charged) / x.weight
	}
	for pair, s := range l.pairs {
		f, g := pair[0], pair[1]
		s.errors = max(s.errors, l.error[f]+l.error[g])
		if waiting(l.q, f) == 0 || waiting(l.q, g) == 0 {
			s.both = false
			continue
		}
		level := &l.q.top.classes[0].siblings
		now := float64(int64(level.flows.find(f).start-level.flows.find(g).start)) / (1 << virtualBits)
		if !s.both {
			*s = spread{both: true, errors: s.errors, least: now, most: now}
		}
		s.least, s.most = min(s.least, now), max(s.most, now)
		s.leastServed, s.mostly = min(s.leastServed, s.served), max(s.mostly, s.served)
		bound := l.largest[f] + l.largest[g] + 2*s.errors
		ahead, behind := l.largest[f], l.largest[g] // vtc: whoever went is ahead by its own charge
		if l.q.config.Discipline == FairShare {     // and by what it was ahead, while the other one is above the threshold
			bound += 2*(ahead+behind) + 2*s.errors
			ahead, behind = 2*ahead+behind+s.errors, 2*behind+ahead+s.errors
		}
		if moved := s.most - s.least; moved > bound+0.01 {
			return fmt.Errorf("the counters of %s and %s move apart by %.2f, the bound is %.2f", f, g, moved, bound)
		}
		if l.q.config.Discipline == WFQ {
			ahead, behind = behind, ahead // it went because the other one's charge is larger than what it is ahead with its own
		}
		if now > ahead+s.errors+0.01 || -now > behind+s.errors+0.01 {
			return fmt.Errorf("the counters of %s and %s differ by %.2f, with charges of %.2f and %.2f and errors of %.2f",
				f, g, now, l.largest[f], l.largest[g], s.errors)
		}
		if served := s.mostly - s.leastServed; served > bound+2*s.errors+0.01 {
			return fmt.Errorf("%s and %s are served with a difference of %.2f, the bound is %.2f", f, g, served, bound+2*s.errors)
		}
	}
	return nil
}

// Flows come and go, with random weights that also change. In half of the sequences costs are known, in the others they
// turn out to be up to ten times as large, or small. Of any two flows that wait, the counters' movements differ by at
// most l_f + l_g + 2E in any interval, with fairshare by three times that, and so does the service, but for what is in flight.
// With wfq, weights are fixed.
func TestBoundOfTrueUps(t *testing.T) {
	for _, d := range trueUps {
		for seed := range seeds(250) {
			if err := randomCosts(t, d, seed); err != nil {
				t.Fatalf("discipline %d, sequence %d: %v", d, seed, err)
			}
		}
	}
}

// trueUps are the disciplines that correct charges.
var trueUps = []Discipline{WFQ, VTC, FairShare}

func randomCosts(t *testing.T, d Discipline, seed uint64) error {
	random := rand.New(rand.NewPCG(seed, 21))
	flows := []string{"a", "b", "c", "d", "e"}[:2+random.IntN(4)]
	weights := func() map[string]Weight {
		w := map[string]Weight{}
		for _, f := range flows {
			w[f] = WeightOne / 4 * Weight(1+random.IntN(16))
		}
		return w
	}
	cfg := DefaultConfig()
	cfg.CapacityMode, cfg.TotalCapacity, cfg.FlowCapacity, cfg.Weights = Shared, 1_000_000, 1_000_000, weights()
	cfg.Discipline, cfg.TieBreak = d, tieBreaks[seed%2]
	q := queue(t, cfg)
	l := newLedger(q, flows...)
	inFlight, exact := 1+random.IntN(8), random.IntN(2) == 0
	l.expects = !exact && seed%2 == 1
	actual := func(r *Request) Cost {
		if exact {
			return r.Cost
		}
		return min(MaxCost, max(1, r.Cost*Cost(1+random.IntN(100))/10))
	}
	var audit audit
	for step := range 1500 {
		for range random.IntN(3) {
			r := &Request{Flow: flows[random.IntN(len(flows))], Cost: Cost(1 + random.IntN(1+random.IntN(200)))}
			if q.Len() == 0 && random.IntN(2) == 0 {
				if q.Bypassed(start, r); d != WFQ { // in wfq it leaves no tag
					l.dispatched(r, actual(r))
				}
			} else if waiting(q, r.Flow) < 20 {
				mustPush(t, q, r)
				l.largest[r.Flow] = max(l.largest[r.Flow], float64(r.Cost)/l.weight(r.Flow))
			}
		}
		if err := l.check(); err != nil {
			return err
		}
		if len(l.flying) < inFlight {
			if r := popNext(q); r != nil {
				l.dispatched(r, actual(r))
			}
		} else {
			l.corrects(random)
		}
		if err := l.check(); err != nil {
			return err
		}
		if d != WFQ && random.IntN(200) == 0 {
			cfg.Weights = weights()
			reconfigure(t, q, cfg)
		}
		if step%50 == 0 {
			audit.check(t, q)
		}
	}
	return nil
}
