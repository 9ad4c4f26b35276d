package fairqueue

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// unfair is vtc, except for one flow, which always goes first, or gets a twentieth.
type unfair struct {
	vtc
	favours, neglects string
}

func (d unfair) tag(_ *level, s *share, _ *Request) VirtualTime {
	if s.flow.key == d.favours {
		return s.start - largestStep
	}
	return s.start
}

func (d unfair) charge(l *level, s *share, r *Request, tag VirtualTime, p *receipt) bool {
	d.vtc.charge(l, s, r, tag, p)
	if s.flow.key == d.neglects {
		s.start += 19 * p.charged
	}
	return true
}

// serves runs flows with weights and wrong estimates for a while, and returns the largest ratio of the gap to its
// bound, and the last one.
func serves(t *testing.T, seed uint64, change func(q *FairRequestQueue)) (ratio float64, last Fairness) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 31))
	q := counting(t, tieBreaks[seed%2], func(c *Config) {
		c.Weights = map[string]Weight{"b": 3 * WeightOne, "c": WeightOne / 2}
	})
	change(q)
	inFlight := 1 + random.IntN(20)
	var flying []*Request
	for step := range 6000 {
		for _, flow := range []string{"a", "b", "c"} {
			for waiting(q, flow) < 3 {
				mustPush(t, q, &Request{Flow: flow, Cost: Cost(10 + random.IntN(100))})
			}
		}
		if random.IntN(10) == 0 {
			r := &Request{Flow: fmt.Sprint(random.IntN(30)), Cost: Cost(1 + random.IntN(500)), Lane: []Lane{"", "", "x"}[random.IntN(3)]}
			mustPush(t, q, r)
			if r.AloneInLane() && random.IntN(2) == 0 {
				q.ParkFlow(r)
			}
		}
		if random.IntN(30) == 0 {
			q.UnparkFlow(0, fmt.Sprint(random.IntN(30)))
		}
		if r := popNext(q); r != nil {
			flying = append(flying, r)
		}
		if len(flying) > inFlight {
			i := random.IntN(len(flying))
			r := flying[i]
			flying[i] = flying[len(flying)-1]
			flying = flying[:len(flying)-1]
			actual := max(1, r.Cost*Cost(1+random.IntN(30))/10)
			if random.IntN(5) == 0 {
				q.Completed(r)
				q.TrueUp(start, r, actual)
			} else {
				ends(q, r, actual)
			}
		}
		if step%100 == 99 {
			if last = q.Fairness()[0]; last.Gap > 0 {
				ratio = max(ratio, last.Gap/last.Bound)
			}
		}
	}
	return ratio, last
}

// The gap stays within the bound for any estimates, and is far beyond it if a flow is favoured or neglected.
func TestFairnessGap(t *testing.T) {
	for seed := range uint64(30) {
		if ratio, last := serves(t, seed, func(*FairRequestQueue) {}); ratio > 1 || last.Gap <= 0 {
			t.Errorf("sequence %d: the gap is up to %.2f of the bound, and in the end %+v", seed, ratio, last)
		}
	}
	for _, d := range []unfair{{favours: "a"}, {neglects: "a"}} {
		ratio, last := serves(t, 1, func(q *FairRequestQueue) { q.top.classes[0].discipline = d })
		if ratio < 1.5 {
			t.Errorf("%+v: the gap is up to %.2f of the bound, and in the end %+v", d, ratio, last)
		}
	}
}

// unfairShare is fairshare, except for one flow, which gets a twentieth.
type unfairShare struct {
	fairShare
	neglects string
}

func (d unfairShare) charge(l *level, s *share, r *Request, tag VirtualTime, p *receipt) bool {
	d.fairShare.charge(l, s, r, tag, p)
	if s.flow.key == d.neglects {
		s.start += 19 * p.charged
	}
	return true
}

// The gap of flows in fair shares stays within their bound, with wait bonuses, while one of them has now and then used most of the
// window, at other engines; and is far beyond it if a flow is neglected.
func TestFairnessGapOfFairShare(t *testing.T) {
	heavy := 0
	serves := func(seed uint64, change func(q *FairRequestQueue)) (ratio float64) {
		random := rand.New(rand.NewPCG(seed, 41))
		q := truingUp(t, FairShare, tieBreaks[seed%2], func(c *Config) {
			c.Weights = map[string]Weight{"b": 2 * WeightOne}
			c.FairShare.Window, c.FairShare.WaitBonus = 20*time.Second, []int64{0, 100_000, millionth}[seed%3]
			c.QueueTTL = time.Minute
		})
		change(q)
		now := start
		var flying []*Request
		for step := range 4000 {
			now = now.Add(time.Duration(random.IntN(200)) * time.Millisecond)
			expire(q, now)
			if step/200%2 == 0 {
				r := &Request{Flow: "heavy", Lane: "x", Cost: 200}
				q.Bypassed(now, r)
				q.CompletedAt(now, r)
			}
			for _, flow := range []string{"a", "b", "heavy"} {
				for waiting(q, flow) < 3 {
					if _, err := q.Push(now, &Request{Flow: flow, Cost: Cost(10 + random.IntN(100))}); err != nil {
						t.Fatal(err)
					}
				}
			}
			c := q.Peek(now, Allowed{Tiers: AllTiers})
			q.Pop(c)
			flying = append(flying, c.Request)
			if len(flying) > 4 {
				r := flying[0]
				flying = flying[1:]
				q.TrueUp(now, r, max(1, r.Cost*Cost(1+random.IntN(30))/10))
				q.CompletedAt(now, r)
			}
			if v, _ := q.Shares(now, 10); step%10 == 9 {
				for _, u := range v.Users {
					heavy += int(one(u.Factor < millionth && u.Queued > 0))
				}
				if f := q.Fairness()[0]; f.Gap > 0 {
					ratio = max(ratio, f.Gap/f.Bound)
				}
			}
		}
		return ratio
	}
	for seed := range uint64(12) {
		if ratio := serves(seed, func(*FairRequestQueue) {}); ratio > 1 || ratio == 0 {
			t.Errorf("sequence %d: the gap is up to %.2f of the bound", seed, ratio)
		}
	}
	if heavy < 1000 {
		t.Errorf("a flow that waits was above the threshold only %d times", heavy)
	}
	if ratio := serves(1, func(q *FairRequestQueue) { q.top.classes[0].discipline = unfairShare{neglects: "a"} }); ratio < 1.5 {
		t.Errorf("a flow is neglected, and the gap is up to %.2f of the bound", ratio)
	}
}

// The bound is that of vtc and the wait bonus of the longest wait for each of two flows; three times that of vtc where one was
// above the threshold.
func TestFairnessBoundOfFairShare(t *testing.T) {
	for _, heavy := range []bool{false, true} {
		q := truingUp(t, FairShare, ByArrival, func(c *Config) { c.QueueTTL = 50 * time.Second })
		if heavy {
			r := &Request{Flow: "a", Cost: 1000, Lane: "x"}
			q.Bypassed(start, r)
			q.Completed(r)
		}
		keep(t, q, "a", 10, 5)
		keep(t, q, "b", 10, 5)
		first := popNext(q)
		ends(q, first, 10)
		want := 20.0 + 10 + 2*5 // two largest costs, one that was in flight, and 0.1 a second, for 50 seconds each
		if heavy {
			want = 3*(20+10) + 2*5
		}
		if got := q.Fairness()[0]; got.Gap != 10 || got.Bound != want {
			t.Errorf("above the threshold %t: %+v, want a bound of %v", heavy, got, want)
		}
	}
}

// The gap is over the waiting flows: cost served over weight. A flow without service counts; a flow that does not wait
// does not.
func TestFairnessGapCounts(t *testing.T) {
	q := counting(t, ByArrival, func(c *Config) { c.Weights = map[string]Weight{"b": 2 * WeightOne} })
	keep(t, q, "a", 10, 5)
	keep(t, q, "b", 10, 5)
	keep(t, q, "idle", 10, 1)
	if got := q.Fairness(); len(got) != 1 || got[0].Gap != 0 {
		t.Errorf("nothing is served: %+v", got)
	}
	var gone []*Request
	for len(gone) < 7 {
		gone = append(gone, popNext(q))
	}
	for _, r := range gone {
		cost := map[string]Cost{"a": 50, "b": 40, "idle": 1000}[r.Flow]
		ends(q, r, cost)
	}
	served := map[string]float64{}
	for _, r := range gone {
		served[r.Flow] += map[string]float64{"a": 50, "b": 20}[r.Flow]
	}
	want := served["a"] - served["b"]
	if want < 0 {
		want = -want
	}
	if got := q.Fairness()[0]; got.Gap != want || got.Bound <= 0 {
		t.Errorf("%+v, want a gap of %.0f of %v", got, want, served)
	}
	if wfq := unlimited(t, nil, ByArrival); wfq.Fairness() != nil {
		t.Error("wfq has a gap of what it does not know")
	}
}

// The bound is, for each of the two flows its largest cost, and as much again for each of its
// requests in flight, with twice the error of their estimates. The largest cost is that of the estimate or of the usage.
func TestFairnessBoundCounts(t *testing.T) {
	for _, c := range []struct {
		name               string
		estimate, used     Cost
		inFlight           int
		largest, errorEach float64
	}{
		{"exact", 10, 10, 1, 10, 0},
		{"exact, three in flight", 10, 10, 3, 10, 0},
		{"estimated at ten times the usage", 100, 10, 2, 100, 90},
		{"estimated at a tenth", 10, 100, 2, 100, 90},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := counting(t, ByArrival, func(*Config) {})
			keep(t, q, "a", c.estimate, 20)
			keep(t, q, "b", c.estimate, 20)
			var gone []*Request
			for len(gone) < 2*c.inFlight {
				gone = append(gone, popNext(q))
			}
			for _, r := range gone {
				if r.Flow == "a" { // b has attained nothing yet
					ends(q, r, c.used)
				}
			}
			slack := func(largest, wrong float64) float64 {
				return largest + float64(c.inFlight)*(largest+2*wrong)
			}
			want := slack(c.largest, c.errorEach) + slack(float64(c.estimate), 0)
			if got := q.Fairness()[0]; got.Gap != float64(c.used)*float64(c.inFlight) || got.Bound != want {
				t.Errorf("%+v, want a bound of %.0f", got, want)
			}
		})
	}
}

// Flows are compared only with flows that wait for the same model servers.
func TestFairnessGapOfLanes(t *testing.T) {
	q := counting(t, ByArrival, func(*Config) {})
	for range 5 {
		mustPush(t, q, &Request{Flow: "a", Cost: 10, Lane: "x"})
		mustPush(t, q, &Request{Flow: "b", Cost: 10, Lane: "y"})
	}
	r := popNext(q)
	ends(q, r, 1000)
	if got := q.Fairness()[0]; got.Gap != 0 {
		t.Errorf("two flows that cannot take each other's turn have a gap of %.0f", got.Gap)
	}
	for range 2 {
		mustPush(t, q, &Request{Flow: "c", Cost: 10, Lane: r.Lane})
	}
	if got := q.Fairness()[0]; got.Gap != 0 {
		t.Errorf("a flow that has just come has a gap of %.0f", got.Gap)
	}
}
