package scheduling

import (
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

func three(t testing.TB, s *Scheduler) *Board {
	t.Helper()
	return poolOf(t, s, ready(0, "10.0.0.1:80"), ready(1, "10.0.0.2:80"), ready(2, "10.0.0.3:80"))
}

// Picking and reserving are one step: the second pick counts the first, and the least loaded endpoint comes first.
func TestPicksSeeEachOther(t *testing.T) {
	b := three(t, mustNew(t))
	q := prepare(t, b, Ask{})
	wantPlaced(t, b, q, BelowLower, 0, 1, 2, 0, 1, 2)
	release(t, b, 1, 1)
	wantPlaced(t, b, q, BelowLower, 1, 1) // both beat the others' two
}

func TestTieBreak(t *testing.T) {
	t.Run("rotate goes on after the last picked, in ring order", func(t *testing.T) {
		b := three(t, mustNew(t))
		q := prepare(t, b, Ask{})
		for _, want := range []EndpointID{0, 1, 2, 0, 1} {
			wantPlaced(t, b, q, BelowLower, want)
			release(t, b, want)
		}
	})
	t.Run("rotate survives the loss of the last picked", func(t *testing.T) {
		b := three(t, mustNew(t))
		q := prepare(t, b, Ask{})
		wantPlaced(t, b, q, BelowLower, 0, 1)
		release(t, b, 0, 1)
		setPool(b, 2, ready(0, "10.0.0.1:80"), ready(2, "10.0.0.3:80"))
		wantPlaced(t, b, q, BelowLower, 2, 0)
	})
	t.Run("first", func(t *testing.T) {
		b := three(t, mustNew(t, func(c *Config) { c.TieBreak = TieFirst }))
		q := prepare(t, b, Ask{})
		for range 3 {
			wantPlaced(t, b, q, BelowLower, 0)
			release(t, b, 0)
		}
	})
	t.Run("random is even, and repeats with its seed", func(t *testing.T) {
		s := mustNew(t, func(c *Config) { c.TieBreak = TieRandom })
		run := func() (picks []EndpointID, counts [3]int) {
			b := NewBoard(s, rand.New(rand.NewPCG(1, 2)))
			b.SetSnapshot(three(t, mustNew(t)).Snapshot())
			q := prepare(t, b, Ask{})
			for range 3000 {
				id := b.Place(q, BelowLower, nil).Endpoint()
				give(b, id)
				picks, counts[id] = append(picks, id), counts[id]+1
			}
			return picks, counts
		}
		picks, counts := run()
		for id, n := range counts {
			if n < 900 || n > 1100 {
				t.Errorf("endpoint %d was picked %d times of 3000", id, n)
			}
		}
		if again, _ := run(); !slices.Equal(picks, again) {
			t.Error("another sequence out of the same seed")
		}
	})
	t.Run("random without a source panics", func(t *testing.T) {
		defer wantPanic(t)
		NewBoard(mustNew(t, func(c *Config) { c.TieBreak = TieRandom }), nil)
	})
}

// Among endpoints that are all full by tokens, the choice follows the usual order, in the pool, in a large lane and in
// a small one. An endpoint that is not full comes before full ones, whatever its other merits.
func TestChoiceAmongFullEndpoints(t *testing.T) {
	const n = 3 * few
	for name, ask := range map[string]Ask{
		"the pool":     {},
		"a large lane": {Subset: Subset{Set: true, Entries: addresses(n)[1:]}},
		"a small lane": {Subset: Subset{Set: true, Entries: addresses(n)[1:9]}},
	} {
		t.Run(name, func(t *testing.T) {
			s := mustNew(t, func(c *Config) { c.TieBreak = TieRandom })
			b := NewBoard(s, rand.New(rand.NewPCG(1, 2)))
			pool := make([]Endpoint, n)
			for i, address := range addresses(n) {
				pool[i] = Endpoint{ID: EndpointID(i), Address: address, Ready: true, Labels: map[string]string{"likes": []string{"all", "odd"}[i%2]}}
			}
			setPool(b, 1, pool...)
			for i := range pool {
				b.SetTokenBounds(EndpointID(i), 10, 10)
				b.AddTokens(EndpointID(i), 10)
			}
			places := func(ask Ask) EndpointID {
				t.Helper()
				r := b.Place(liking(t, b, ask), AnyReady, nil)
				if r.Empty() {
					t.Fatal("nothing is placed")
				}
				give(b, r.Endpoint())
				return r.Endpoint()
			}
			q := prepare(t, b, ask)
			if b.HasRoom(q, Unbounded, nil) || !b.HasRoom(q, AnyReady, nil) || !b.Place(q, Unbounded, nil).Empty() {
				t.Error("all are full")
			}
			seen := map[EndpointID]bool{}
			for range 40 * n {
				seen[places(ask)] = true
			}
			if len(seen) != len(q.reach.ready) {
				t.Errorf("%d of %d equals are picked", len(seen), len(q.reach.ready))
			}
			ask.Model = "odd"
			for range 100 {
				if e := places(ask); e%2 == 0 {
					t.Fatalf("placed at %d, and it likes odd ones", e)
				}
			}
			b.AddTokens(4, -1)
			if e := places(ask); e != 4 {
				t.Errorf("placed at %d: the fifth is not full", e)
			}
		})
	}
}

// An endpoint with room goes before one without, whatever their sizes.
func TestUnequalBounds(t *testing.T) {
	small, large := ready(0, "10.0.0.1:80"), ready(1, "10.0.0.2:80")
	b := poolOf(t, mustNew(t), small, large)
	b.SetBounds(0, 0, 2*Millionths)
	b.SetBounds(1, 0, 8*Millionths)
	q := prepare(t, b, Ask{})
	for range 10 {
		b.Place(q, BelowUpper, nil)
		checkInvariants(t, b)
	}
	if b.Stock(0) != 2 || b.Stock(1) != 8 {
		t.Fatalf("%d and %d in flight, want 2 and 8", b.Stock(0), b.Stock(1))
	}
}

// least-stock orders exactly as the rational number (held + 1) / bound does.
func TestLeastStockIsMonotone(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	random := func() (bound int64, n int) {
		bound = []int64{0, 1, 999_999, 1_800_000, 2_200_000, 256 * Millionths, maxBound}[r.IntN(7)]
		return bound, []int{0, 1, 2, 3, 7, 1000, 1 << 20}[r.IntN(7)]
	}
	load := func(bound int64, n int) *big.Rat {
		if bound == 0 {
			bound = Millionths
		}
		return big.NewRat(int64(n)+1, bound)
	}
	rated := func(bound int64, n int) Standing { return leastStock(Load{Held: n, UpperBound: bound}) }
	for range 20_000 {
		a, n := random()
		b, m := random()
		x, y := rated(a, n), rated(b, m)
		if x < 0 || x > MostStanding {
			t.Fatalf("score %d", x)
		}
		switch order := load(a, n).Cmp(load(b, m)); {
		case order < 0 && x < y, order > 0 && x > y, order == 0 && x != y:
			t.Fatalf("bound %d with %d in flight scores %d, bound %d with %d %d", a, n, x, b, m, y)
		}
	}
	// With equal bounds fewer requests are strictly better, up to counts far beyond any endpoint's.
	for n := range 100_000 {
		if rated(2_200_000, n) <= rated(2_200_000, n+1) {
			t.Fatalf("%d in flight is not better than %d", n, n+1)
		}
	}
}

func TestLaneBand(t *testing.T) {
	// Two endpoints: lower bound 3.6, upper bound 4.4. The third is outside the lane.
	t.Run("a lane fills up to its bound, rounded up", func(t *testing.T) {
		b := three(t, mustNew(t))
		q := prepare(t, b, subsetOf("10.0.0.1", "10.0.0.2"))
		wantPlaced(t, b, q, BelowLower, 0, 1, 0, 1, NoEndpoint)
		wantPlaced(t, b, q, BelowUpper, 0, NoEndpoint)
		release(t, b, 0)
		wantPlaced(t, b, q, BelowLower, NoEndpoint) // 4 is not below 3.6
		release(t, b, 0)
		wantPlaced(t, b, q, BelowLower, 0)
	})
	t.Run("the edge is exact", func(t *testing.T) {
		b := poolOf(t, mustNew(t), ready(0, "10.0.0.1:80"), ready(1, "10.0.0.2:80"))
		b.SetBounds(0, 2*Millionths, 2*Millionths+1)
		q := prepare(t, b, subsetOf("10.0.0.1"))
		wantPlaced(t, b, q, BelowLower, 0, 0, NoEndpoint)
		wantPlaced(t, b, q, BelowUpper, 0, NoEndpoint)
	})
	t.Run("the lane counts all leases there", func(t *testing.T) {
		b := three(t, mustNew(t))
		wantPlaced(t, b, prepare(t, b, Ask{}), BelowLower, 0, 1, 2, 0, 1, 2)
		wantPlaced(t, b, prepare(t, b, subsetOf("10.0.0.1")), BelowLower, NoEndpoint)
	})
	t.Run("the whole pool's sum is the ledger's, each endpoint's bound is here", func(t *testing.T) {
		b := three(t, mustNew(t))
		q := prepare(t, b, Ask{})
		wantPlaced(t, b, q, BelowLower, 0, 1, 2, 0, 1, 2, 0, 1, 2, NoEndpoint) // 3 of 2.2 each
		wantPlaced(t, b, q, Unbounded, 0)
		wantPlaced(t, b, q, AnyReady, 1)
	})
	t.Run("an endpoint above its own bound leaves the others theirs", func(t *testing.T) {
		b := three(t, mustNew(t))
		for range 9 {
			b.PlaceAt(prepare(t, b, Ask{}), 0)
		}
		wantPlaced(t, b, prepare(t, b, subsetOf("10.0.0.1", "10.0.0.2")), BelowLower, 1, 1, NoEndpoint) // 2 of 1.8
		wantPlaced(t, b, prepare(t, b, Ask{}), BelowUpper, 2, 2, 1, 2, NoEndpoint)
	})
	t.Run("an idle lane can always be placed", func(t *testing.T) {
		b := poolOf(t, mustNew(t), ready(0, "10.0.0.1:80"), ready(1, "10.0.0.2:80"))
		b.SetBounds(0, 0, 0)
		q := prepare(t, b, subsetOf("10.0.0.1"))
		wantPlaced(t, b, q, BelowLower, 0, NoEndpoint)
		wantPlaced(t, b, q, BelowUpper, NoEndpoint)
		release(t, b, 0)
		wantPlaced(t, b, q, BelowLower, 0)
	})
	t.Run("only ready endpoints lend their bounds and their stock", func(t *testing.T) {
		b := three(t, mustNew(t))
		q := prepare(t, b, subsetOf("10.0.0.1", "10.0.0.2"))
		wantPlaced(t, b, q, BelowLower, 0, 1, 0)
		b.SetSnapshot(NewSnapshot(2, []Endpoint{unready(0, "10.0.0.1:80"), ready(1, "10.0.0.2:80"), ready(2, "10.0.0.3:80")}))
		wantPlaced(t, b, q, BelowLower, 1, NoEndpoint) // 1 of 1.8, then 2
	})
	t.Run("bounds beyond any sense do not wrap around", func(t *testing.T) {
		b := poolOf(t, mustNew(t), ready(0, "10.0.0.1:80"), ready(1, "10.0.0.1:81"), ready(2, "10.0.0.2:80"))
		for id := range EndpointID(3) {
			b.SetBounds(id, 1<<63-1, 1<<63-1)
		}
		wantPlaced(t, b, prepare(t, b, subsetOf("10.0.0.1")), BelowLower, 0, 1, 0, 1)
	})
}

func TestMaxInFlight(t *testing.T) {
	e := ready(0, "10.0.0.1:80")
	e.MaxInFlight = 2
	f := ready(1, "10.0.0.2:80")
	f.MaxInFlight = 1
	b := poolOf(t, mustNew(t), e, f)
	q := prepare(t, b, Ask{})
	wantPlaced(t, b, q, BelowUpper, 0, 1, 0, NoEndpoint)
	if !b.HasReady(q, nil) || !b.CanServe(q, 0) {
		t.Error("a full endpoint is still ready: a preemptor may take over there")
	}
	release(t, b, 1)
	wantPlaced(t, b, q, BelowUpper, 1, NoEndpoint)
}

func TestFallbacks(t *testing.T) {
	pool := []Endpoint{
		ready(0, "10.0.0.1:80"), ready(1, "10.0.0.2:80"), unready(2, "10.0.0.3:80"), ready(3, "10.0.0.4:80"), ready(4, "[::1]:80"),
	}
	pool[3].MaxInFlight = 2
	b := poolOf(t, mustNew(t), pool...)
	q := prepare(t, b, Ask{})
	want := func(q *Query, address string, fallbacks ...string) {
		t.Helper()
		if a, f := q.Chosen(); a != address || !slices.Equal(f, fallbacks) {
			t.Fatalf("chosen %s, then %q, want %s, then %q", a, f, address, fallbacks)
		}
	}
	want(q, "")
	b.Place(q, BelowUpper, nil)
	want(q, "10.0.0.1:80", "10.0.0.2:80", "10.0.0.4:80") // equals in ring order, the unready one left out
	b.Place(q, BelowUpper, nil)
	want(q, "10.0.0.2:80", "10.0.0.4:80", "[::1]:80")
	b.PlaceAt(q, 3)
	b.PlaceAt(q, 3)
	want(q, "10.0.0.4:80", "[::1]:80", "10.0.0.1:80") // the idle one before those with one
	b.Place(q, BelowUpper, nil)
	want(q, "[::1]:80", "10.0.0.1:80", "10.0.0.2:80")
	b.PlaceAt(q, 4)
	b.PlaceAt(q, 4)
	want(q, "[::1]:80", "10.0.0.1:80", "10.0.0.2:80") // 3 is at its limit

	confined := prepare(t, b, subsetOf("10.0.0.1", "10.0.0.3"))
	b.Place(confined, BelowUpper, nil)
	want(confined, "10.0.0.1:80") // never out of the lane
	if got := confined.Destinations([]string{"x"}); !slices.Equal(got, []string{"x", "10.0.0.1:80"}) {
		t.Fatalf("%q", got)
	}

	b.SetScheduler(mustNew(t, func(c *Config) { c.Fallbacks = 0 }))
	b.Place(q, BelowUpper, nil)
	if _, fallbacks := q.Chosen(); len(fallbacks) != 0 {
		t.Fatalf("%q", fallbacks)
	}
	b.SetScheduler(mustNew(t, func(c *Config) { c.Fallbacks = MaxFallbacks }))
	b.Place(q, BelowUpper, nil)
	if _, fallbacks := q.Chosen(); len(fallbacks) != 2 {
		t.Fatalf("%q", fallbacks)
	}
}

// A failed placement leaves no old choice behind. A choice outlives its endpoint.
func TestChoice(t *testing.T) {
	b := three(t, mustNew(t))
	q := prepare(t, b, subsetOf("10.0.0.1"))
	wantPlaced(t, b, q, BelowLower, 0, 0)
	b.SetSnapshot(NewSnapshot(2, nil))
	if b.HasReady(q, nil) || b.CanServe(q, 0) {
		t.Error("ready in an empty pool")
	}
	if address, _ := q.Chosen(); address != "10.0.0.1:80" {
		t.Errorf("chosen %q", address)
	}
	wantPlaced(t, b, q, BelowLower, NoEndpoint)
	if address, _ := q.Chosen(); address != "" {
		t.Errorf("chosen %q after a failure", address)
	}
}

func wantPanic(t testing.TB) {
	t.Helper()
	if recover() == nil {
		t.Error("no panic")
	}
}

// Calls under the lock do not allocate.
func TestPlaceAllocates(t *testing.T) {
	b := three(t, mustNew(t))
	q := prepare(t, b, subsetOf("10.0.0.1", "10.0.0.3"))
	allocs := testing.AllocsPerRun(100, func() {
		if r := b.Place(q, BelowLower, nil); !r.Empty() && b.HasReady(q, nil) && b.CanServe(q, r.Endpoint()) {
			b.Release(&r)
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

// A preemptor takes over its victim's place if the lane has room for it once the victim is gone.
func TestCanTakeOver(t *testing.T) {
	b := poolOf(t, mustNew(t), ready(0, "10.0.0.1:80"), ready(1, "10.0.0.2:80"), unready(2, "10.0.0.3:80"), ready(3, "10.0.0.4:80"))
	q := prepare(t, b, subsetOf("10.0.0.1", "10.0.0.2", "10.0.0.3")) // an upper bound of 4.4
	wantPlaced(t, b, q, BelowUpper, 0, 1, 0, 1, 0, NoEndpoint)
	for id, want := range []bool{true, true, false, false} { // 4 of 4.4
		if b.CanTakeOver(q, EndpointID(id)) != want {
			t.Errorf("with one too many, the place at %d can be taken: %t", id, !want)
		}
	}
	r := b.PlaceAt(q, 1)
	if b.CanTakeOver(q, 0) || b.CanTakeOver(q, 1) {
		t.Error("5 of 4.4 remain, and a place can be taken")
	}
	if b.Release(&r); !b.CanTakeOver(q, 0) {
		t.Error("a released request still counts")
	}
	if all := prepare(t, b, Ask{}); !b.CanTakeOver(all, 3) || b.CanTakeOver(all, 2) {
		t.Error("the whole pool has no band here, but an unready endpoint takes a request")
	}
}
