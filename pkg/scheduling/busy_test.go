package scheduling

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// Golden of parity/dynamo.md, section 4: more than 10 tokens, or more than half of the most in a step.
func TestBusyEndpoint(t *testing.T) {
	both := BusyRule{PrefillTokens: new(int64(10)), PrefillFraction: new(int64(Millionths / 2))}
	for _, test := range []struct {
		rule             BusyRule
		prompts, batched int64
		want             bool
	}{
		{both, 11, 10_000_000, true},
		{both, 6, 10, true},
		{both, 5, 10, false},
		{both, 10, 0, false}, // the fraction is never exceeded if the most in a step is unknown
		{both, 11, 0, true},
		{BusyRule{PrefillFraction: new(int64(Millionths / 2))}, 1 << 40, 0, false},
		{BusyRule{PrefillFraction: new(int64(0))}, 1, 10, true},
		{BusyRule{PrefillFraction: new(int64(0))}, 0, 10, false},
		{BusyRule{PrefillTokens: new(int64(0))}, 1, 0, true},
		{BusyRule{PrefillTokens: new(int64(0))}, 0, 0, false},
		{BusyRule{PrefillFraction: new(int64(MaxBusyFraction))}, 1 << 40, 1 << 30, true},
		{BusyRule{PrefillFraction: new(int64(MaxBusyFraction))}, 1 << 40, 1 << 31, false},
		{BusyRule{}, 1 << 40, 1, false},
	} {
		if got := test.rule.busyAt(test.prompts, test.batched); got != test.want {
			t.Errorf("%d tokens of at most %d in a step: busy %t", test.prompts, test.batched, got)
		}
	}
}

// Golden of section 4: the ratio of busy endpoints that makes the lane busy. Without an endpoint it is not.
func TestBusyPool(t *testing.T) {
	for _, test := range []struct {
		ratio  int64
		n, of  int
		expect bool
	}{
		{950_000, 121, 128, false},
		{950_000, 122, 128, true},
		{950_000, 1, 2, false},
		{950_000, 2, 2, true},
		{0, 1, 2, false},
		{0, 2, 2, true},
		{500_000, 1, 2, true},
		{1, 0, 2, false},
		{950_000, 0, 0, false},
	} {
		rule := BusyRule{PrefillTokens: new(int64(1)), WorkerRatio: test.ratio}
		if got := rule.busy(test.n, test.of); got != test.expect {
			t.Errorf("%d of %d with ratio %d: busy %t", test.n, test.of, test.ratio, got)
		}
	}
}

func TestValidateBusyRule(t *testing.T) {
	for _, test := range []struct {
		rule BusyRule
		want string
	}{
		{BusyRule{}, ""},
		{BusyRule{PrefillTokens: new(int64(0)), PrefillFraction: new(int64(0)), WorkerRatio: 1}, ""},
		{BusyRule{PrefillTokens: new(int64(-1))}, "PrefillTokens: -1: must be from 0 to 1099511627776"},
		{BusyRule{PrefillFraction: new(int64(-1))}, "PrefillFraction: -1e-06: must be from 0 to 1000"},
		{BusyRule{PrefillTokens: new(int64(1)), WorkerRatio: 16 * Millionths}, "WorkerRatio: 16: must be above 0 and at most 1"},
		{BusyRule{WorkerRatio: Millionths}, "WorkerRatio: 1: needs PrefillTokens or PrefillFraction"},
	} {
		got := ""
		if err := test.rule.Validate(); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%+v: got %q, want %q", test.rule, got, test.want)
		}
	}
}

// reading is a request on a board, with its part of the prompts at its endpoint.
type reading struct {
	q    *Query
	held Reservation
	at   EndpointID
	adds int64
}

// Random requests arrive, answer and end at endpoints that come and go. The prompts at each endpoint, the busy
// endpoints and the newly busy ones are equal to a count one by one.
func TestBusyLikeCounting(t *testing.T) {
	for seed := range uint64(24) {
		random := rand.New(rand.NewPCG(seed, 4))
		size := []int{3, 100}[seed%2]
		s, err := New(DefaultConfig())
		if err != nil {
			t.Fatal(err)
		}
		b := NewBoard(s, nil)
		rules := []BusyRule{
			{PrefillTokens: new(int64(40))},
			{PrefillTokens: new(int64(200)), PrefillFraction: new(int64(Millionths / 2)), WorkerRatio: Millionths / 3},
			{PrefillFraction: new(int64(Millionths)), WorkerRatio: 900_000},
		}
		b.SetBusyRules(rules)
		pool := make([]Endpoint, size)
		for i := range pool {
			pool[i] = Endpoint{ID: EndpointID(i), Address: fmt.Sprintf("10.0.%d.%d:1", i/250, i%250+1), Ready: true, MaxBatchedTokens: 50}
			if i%3 > 0 {
				pool[i].Models = []string{"m"}
			}
		}
		b.SetSnapshot(NewSnapshot(1, pool))
		var all []*reading
		busyAt := func(r *BusyRule, e *Endpoint, live []*reading) bool {
			sum := int64(0)
			for _, x := range live {
				if x.at == e.ID {
					sum += x.adds
				}
			}
			if sum != b.Prompts(e.ID) {
				t.Fatalf("seed %d: %d tokens at %d, want %d", seed, b.Prompts(e.ID), e.ID, sum)
			}
			return e.Ready && (r.PrefillTokens != nil && sum > *r.PrefillTokens ||
				r.PrefillFraction != nil && e.MaxBatchedTokens > 0 && float64(sum) > float64(*r.PrefillFraction)/Millionths*float64(e.MaxBatchedTokens))
		}
		was := map[string]bool{}
		for step := range 250 {
			switch n := random.IntN(12); {
			case n < 6 || len(all) == 0:
				x := &reading{}
				ask := Ask{Model: []string{"m", "other"}[random.IntN(2)]}
				if x.q, err = s.Prepare(b.Snapshot(), ask); err != nil {
					continue
				}
				r := &Ratings{Prompt: 1 + random.Int64N(60)}
				if e := EndpointID(random.IntN(size)); random.IntN(2) == 0 {
					r.Above = []Cached{{e, random.Int64N(r.Prompt + 1)}}
				}
				if random.IntN(9) > 0 {
					x.q.Rate(r)
				} else {
					r = nil // not rated: unknown length
				}
				if x.held = b.Place(x.q, AnyReady, nil); x.held.Empty() {
					continue
				}
				if x.at = x.held.Endpoint(); r != nil {
					x.adds = max(1, r.Prompt-r.Cached(x.at))
				}
				if x.held.Reads() != (r != nil) {
					t.Fatalf("seed %d: reads: %t", seed, x.held.Reads())
				}
				all = append(all, x)
			case n < 8:
				x := all[random.IntN(len(all))]
				b.PromptRead(&x.held)
				x.adds = 0
			case n < 11:
				i := random.IntN(len(all))
				b.Release(&all[i].held)
				all = slices.Delete(all, i, i+1)
			default:
				e := &pool[random.IntN(size)]
				if random.IntN(2) == 0 {
					e.Ready = !e.Ready
				} else {
					e.MaxBatchedTokens = random.Int64N(3) * 50
				}
				next := slices.Clone(pool)
				if random.IntN(3) == 0 { // it leaves, and returns with its requests
					next = slices.DeleteFunc(next, func(o Endpoint) bool { return o.ID == e.ID })
					b.SetSnapshot(b.Snapshot().Next(b.Snapshot().Version()+1, next))
					b.TakeTurned(nil)
					next = slices.Clone(pool)
					for i := range rules { // a change of the pool
						was[fmt.Sprint(i, e.ID)] = busyAt(&rules[i], e, nil)
					}
					all = slices.DeleteFunc(all, func(x *reading) bool {
						if x.at == e.ID {
							b.Release(&x.held)
						}
						return x.at == e.ID
					})
				}
				b.SetSnapshot(b.Snapshot().Next(b.Snapshot().Version()+1, next))
			}
			turned := b.TakeTurned(nil)
			for i := range rules {
				for _, model := range []string{"m", "other", ""} {
					n, of := 0, 0
					for p := range pool {
						e := &pool[p]
						busy := busyAt(&rules[i], e, all)
						key := fmt.Sprint(i, e.ID)
						if was[key] != busy && !slices.Contains(turned, e.ID) {
							t.Fatalf("seed %d, step %d: endpoint %d is busy: %t, and has not turned", seed, step, e.ID, busy)
						}
						was[key] = busy
						if e.Ready && e.Serves(model) {
							of++
							if busy {
								n++
							}
						}
					}
					ratio := rules[i].WorkerRatio
					if ratio == 0 {
						ratio = Millionths
					}
					q, err := s.Prepare(b.Snapshot(), Ask{Model: model})
					if err != nil {
						continue
					}
					if got, want := b.Busy(q, i), of > 0 && float64(n) >= float64(ratio)/Millionths*float64(of); got != want {
						t.Fatalf("seed %d, step %d, model %q, rule %d: %d of %d are busy: %t", seed, step, model, i, n, of, got)
					}
				}
			}
		}
	}
}

// Without rules nothing is counted, and the choice of endpoints is unchanged. Later rules count from then on.
func TestNoRuleCountsNothing(t *testing.T) {
	s, _ := New(DefaultConfig())
	b := NewBoard(s, nil)
	b.SetSnapshot(NewSnapshot(1, []Endpoint{{ID: 0, Address: "10.0.0.1:1", Ready: true}}))
	place := func() Reservation {
		q, err := s.Prepare(b.Snapshot(), Ask{})
		if err != nil {
			t.Fatal(err)
		}
		q.Rate(&Ratings{Prompt: 100})
		return b.Place(q, AnyReady, nil)
	}
	before := place()
	if before != Reserved(0) || b.Prompts(0) != 0 {
		t.Errorf("%+v, %d tokens", before, b.Prompts(0))
	}
	b.SetBusyRules([]BusyRule{{PrefillTokens: new(int64(50))}})
	after := place()
	b.Release(&before)
	if b.Prompts(0) != 100 || !after.Reads() || len(b.TakeTurned(nil)) != 1 || len(b.TakeTurned(nil)) != 0 {
		t.Errorf("%d tokens", b.Prompts(0))
	}
	b.Release(&after)
	if b.Prompts(0) != 0 || !after.Empty() {
		t.Errorf("%d tokens after the end", b.Prompts(0))
	}
}

// The known endpoints serve the model, ready or not, whatever the subset.
func TestKnown(t *testing.T) {
	s, _ := New(DefaultConfig())
	b := NewBoard(s, nil)
	b.SetSnapshot(NewSnapshot(1, []Endpoint{
		{ID: 0, Address: "10.0.0.1:1", Ready: true, Models: []string{"m"}},
		{ID: 1, Address: "10.0.0.2:1", Models: []string{"m"}},
		{ID: 2, Address: "10.0.0.3:1", Ready: true},
		{ID: 3, Address: "10.0.0.4:1", Ready: true, Models: []string{"n"}, Work: WorkPrefill},
	}))
	for _, test := range []struct {
		ask  Ask
		want int
	}{
		{Ask{}, 3},
		{Ask{Model: "m"}, 3},
		{Ask{Model: "n"}, 1},
		{Ask{Model: "m", Subset: Subset{Set: true, Entries: []string{"10.0.0.1:1"}}}, 3},
	} {
		q, err := s.Prepare(b.Snapshot(), test.ask)
		if err != nil {
			t.Fatalf("%+v: %v", test.ask, err)
		}
		if got := b.Known(q); got != test.want {
			t.Errorf("%+v: %d, want %d", test.ask, got, test.want)
		}
	}
}
