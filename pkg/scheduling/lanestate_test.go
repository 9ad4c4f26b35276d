package scheduling

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// many returns a board with n endpoints. Endpoints with odd numbers have the model odd, and a third of all have third.
func many(s *Scheduler, random *rand.Rand, n int) *Board {
	endpoints := make([]Endpoint, n)
	for i, address := range addresses(n) {
		endpoints[i] = ready(EndpointID(i), address, "any", []string{"even", "odd"}[i%2], []string{"third", "x", "x"}[i%3])
	}
	b := NewBoard(s, random)
	setPool(b, 1, endpoints...)
	return b
}

// A random pick is uniform among the best, in lanes of any size and with any exceptions. Asking for room draws nothing,
// so the same source gives the same picks.
func TestRandomIsEvenAndAskingDrawsNothing(t *testing.T) {
	s := mustNew(t, func(c *Config) { c.TieBreak = TieRandom })
	for _, endpoints := range []int{32, 300} {
		var except EndpointSet
		for id := range EndpointID(endpoints / 2) {
			except.Add(id)
		}
		for name, c := range map[string]struct {
			ask    Ask
			except *EndpointSet
			among  int
		}{
			"whole":           {among: endpoints},
			"model":           {ask: Ask{Model: "odd"}, among: endpoints / 2},
			"shared model":    {ask: Ask{Model: "any"}, among: endpoints},
			"except":          {except: &except, among: endpoints / 2},
			"model, except":   {ask: Ask{Model: "odd"}, except: &except, among: endpoints / 4},
			"subset":          {ask: subsetOf(addresses(endpoints)[10:20]...), among: 10},
			"a subset of all": {ask: subsetOf(addresses(endpoints)...), among: endpoints},
		} {
			t.Run(fmt.Sprintf("%s of %d", name, endpoints), func(t *testing.T) {
				run := func(ask bool) (picks []EndpointID) {
					b := many(s, rand.New(rand.NewPCG(1, 2)), endpoints)
					q := prepare(t, b, c.ask)
					for range 200 * c.among {
						if ask && (!b.HasRoom(q, BelowUpper, c.except) || !b.HasReady(q, c.except)) {
							t.Fatal("no room")
						}
						r := b.Place(q, BelowUpper, c.except)
						picks = append(picks, r.Endpoint())
						b.Release(&r)
					}
					return picks
				}
				picks := run(false)
				counts := map[EndpointID]int{}
				for _, id := range picks {
					if counts[id]++; c.except != nil && c.except.Has(id) {
						t.Fatalf("endpoint %d was picked", id)
					}
				}
				for id, n := range counts {
					if n < 120 || n > 280 {
						t.Errorf("endpoint %d was picked %d times, of 200 on average", id, n)
					}
				}
				if len(counts) != c.among {
					t.Errorf("%d endpoints were picked, want %d", len(counts), c.among)
				}
				if !slices.Equal(picks, run(true)) {
					t.Error("asking changed the picks")
				}
			})
		}
	}
}

// More lanes than the cache holds are still right, and memory does not grow.
func TestManyLanes(t *testing.T) {
	b := many(mustNew(t), nil, 200)
	r := rand.New(rand.NewPCG(3, 4))
	var queries []*Query
	for i := range 3 * maxLanes / 2 {
		at := addresses(200)
		r.Shuffle(len(at), func(i, j int) { at[i], at[j] = at[j], at[i] })
		queries = append(queries, prepare(t, b, subsetOf(at[:few+1+i%20]...)))
	}
	for range 3000 {
		q := queries[r.IntN(len(queries))]
		b.Place(q, BelowUpper, nil)
		var stock int
		for _, p := range q.reach.ready {
			stock += int(b.spots[p].inFlight)
		}
		if got := b.Explain(q).Stock; got != stock {
			t.Fatalf("%d in flight in the lane, want %d", got, stock)
		}
		if len(b.lanes) > maxLanes || len(b.spare) > maxLanes {
			t.Fatalf("%d lanes, %d spare", len(b.lanes), len(b.spare))
		}
	}
	checkInvariants(t, b)
}

// Rotation visits all endpoints of the lane, wherever its last endpoint is in the pool, with and without exceptions and
// a comparison.
func TestRotationGoesRound(t *testing.T) {
	for _, policy := range []string{PolicyNone, PolicyCost} {
		for _, n := range []int{20, 300} {
			for _, model := range []string{"", "even", "odd"} {
				for _, except := range [][]EndpointID{nil, {0}, {1, 2, EndpointID(n - 1)}} {
					b := many(mustNew(t, func(c *Config) { c.Policy = policy }), nil, n)
					q := prepare(t, b, Ask{Model: model})
					var want, got []EndpointID
					for id := range EndpointID(n) {
						if (model == "" || model == []string{"even", "odd"}[id%2]) && !slices.Contains(except, id) {
							want = append(want, id)
						}
					}
					want = append(want, want...)
					for range want {
						r := b.Place(q, BelowUpper, setOf(except...))
						got = append(got, r.Endpoint())
						b.Release(&r)
					}
					if !slices.Equal(got, want) {
						t.Errorf("%d endpoints, model %q, except %v, policy %v: %v", n, model, except, policy, got)
					}
				}
			}
		}
	}
}

// A set of endpoints outside a large lane removes nothing from it.
func TestSetBesideLargeLane(t *testing.T) {
	b := many(mustNew(t), nil, 300)
	q := prepare(t, b, Ask{Model: "odd"})
	var set EndpointSet
	for id := EndpointID(0); id < 300; id += 2 {
		set.Add(id)
	}
	if b.Meets(q, &set) || !b.HasReady(q, &set) || !b.HasRoom(q, BelowLower, &set) {
		t.Error("the even endpoints are taken for odd ones")
	}
	if set.Add(299); !b.Meets(q, &set) || !b.HasReady(q, &set) {
		t.Error("the set meets the lane at its last endpoint")
	}
	for id := EndpointID(1); id < 300; id += 2 {
		set.Add(id)
	}
	if b.HasReady(q, &set) || b.HasRoom(q, BelowLower, &set) || !b.Meets(q, &set) {
		t.Error("the whole pool is in the set")
	}
}

// Requests with the same subset and different models are in different lanes, also when the lanes are large.
func TestSameSubsetOtherModel(t *testing.T) {
	b := many(mustNew(t), nil, 300)
	ask := subsetOf(addresses(300)[1:]...)
	for _, model := range []string{"odd", "even", "odd", "even"} {
		ask.Model = model
		q := prepare(t, b, ask)
		before := b.Explain(q).Stock
		for range 10 {
			b.Place(q, Unbounded, nil)
			if at, _ := q.Chosen(); !slices.Contains(b.Snapshot().At(int(b.last)).Models, model) {
				t.Fatalf("a request for %s is at %s", model, at)
			}
		}
		if got := b.Explain(q).Stock; got != before+10 {
			t.Fatalf("%d in flight in the lane of %s, want %d", got, model, before+10)
		}
	}
	if len(b.lanes) != 2 {
		t.Errorf("%d lanes are cached for two models and one subset", len(b.lanes))
	}
	if odd, even := b.Stock(1), b.Stock(0); odd != 1 || even != 0 { // endpoint 0 is not in the subset
		t.Errorf("%d and %d in flight at 1 and 0", odd, even)
	}
}

// Models served by the same endpoints share one reach and one lane, also within a subset. So a base model's adapters
// cost no more than one model.
func TestModelsOfTheSameEndpoints(t *testing.T) {
	endpoints := make([]Endpoint, 100)
	for i, address := range addresses(100) {
		endpoints[i] = ready(EndpointID(i), address, "base", fmt.Sprint("own-", i%2))
		for a := range 20 {
			endpoints[i].Models = append(endpoints[i].Models, fmt.Sprint("adapter-", a))
		}
	}
	b := poolOf(t, mustNew(t), endpoints...)
	base, adapter, own := prepare(t, b, Ask{Model: "base"}), prepare(t, b, Ask{Model: "adapter-7"}), prepare(t, b, Ask{Model: "own-1"})
	if base.reach != adapter.reach || base.reach == own.reach {
		t.Error("the sets are not shared as they are equal")
	}
	if base.Lane() != "model=adapter-0" || adapter.Lane() != base.Lane() || own.Lane() == base.Lane() {
		t.Errorf("lanes %q, %q, %q", base.Lane(), adapter.Lane(), own.Lane())
	}
	ask := subsetOf("10.0.0.1", "10.0.0.2")
	ask.Model = "base"
	within := prepare(t, b, ask).Lane()
	ask.Model = "adapter-7"
	if lane := prepare(t, b, ask).Lane(); lane != within || !strings.HasPrefix(lane, "subset=") {
		t.Errorf("lanes %q and %q within one subset", within, lane)
	}
}

// A lane without requests for a long time, or since a change of its comparison, has the same answers as a new one.
func TestLaneCatchesUp(t *testing.T) {
	s := mustNew(t)
	b := many(s, nil, 300)
	r := rand.New(rand.NewPCG(5, 6))
	all := prepare(t, b, Ask{})
	for _, changes := range []int{1, 10, 100, changeLog - 1, changeLog, changeLog + 1, 3 * changeLog} {
		odd := prepare(t, b, Ask{Model: "odd"})
		b.Place(odd, BelowUpper, nil) // its lane is kept from here on
		var held []Reservation
		for range changes {
			if len(held) > 0 && r.IntN(3) == 0 {
				i := r.IntN(len(held))
				b.Release(&held[i])
				held = slices.Delete(held, i, i+1)
			} else {
				held = append(held, b.PlaceAt(all, EndpointID(r.IntN(300))))
			}
		}
		if changes == 10 {
			b.SetScheduler(mustNew(t, func(c *Config) { c.Policy = PolicyNone }))
		}
		want, fewest := 0, 1<<30
		for id := EndpointID(1); id < 300; id += 2 {
			want += b.Stock(id)
			fewest = min(fewest, b.Stock(id))
		}
		if got := b.Explain(odd).Stock; got != want {
			t.Fatalf("after %d changes: %d in flight, want %d", changes, got, want)
		}
		b.PlaceAt(all, 298)
		got := b.Place(odd, Unbounded, nil).Endpoint()
		if b.scheduler == s && b.Stock(got)-1 != fewest {
			t.Fatalf("after %d changes: placed where %d are, not %d", changes, b.Stock(got)-1, fewest)
		}
		if b.scheduler != s && got != 299 { // with policy none all are equal: the next one in ring order
			t.Fatalf("placed at %d, want 299", got)
		}
		checkInvariants(t, b)
		b.SetScheduler(s)
	}
}

// The random source is used only if there is something to draw.
func TestNoLotForOne(t *testing.T) {
	source := rand.NewPCG(1, 2)
	before := *source
	b := NewBoard(mustNew(t, func(c *Config) { c.TieBreak = TieRandom }), rand.New(source))
	setPool(b, 1, ready(0, "10.0.0.1:80"), ready(1, "10.0.0.2:80"))
	q := prepare(t, b, Ask{})
	b.PlaceAt(q, 1)
	if b.Place(q, BelowUpper, nil) != Reserved(0) || *source != before {
		t.Error("a number was drawn for one endpoint")
	}
	if b.Place(q, BelowUpper, nil); *source == before {
		t.Error("no number was drawn for two")
	}
}

// setOf returns the set of the endpoints.
func setOf(ids ...EndpointID) *EndpointSet {
	s := &EndpointSet{}
	for _, id := range ids {
		s.Add(id)
	}
	return s
}
