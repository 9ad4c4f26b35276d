package scheduling

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

// withAdapters returns a board of n ready endpoints whose bounds are 4 requests.
func withAdapters(t testing.TB, n int) *Board {
	t.Helper()
	b := NewBoard(mustNew(t), nil)
	var pool []Endpoint
	for id := range n {
		pool = append(pool, Endpoint{ID: EndpointID(id), Address: fmt.Sprintf("10.0.%d.%d:80", id/250, id%250), Ready: true})
	}
	b.SetSnapshot(NewSnapshot(1, pool))
	for id := range n {
		b.SetBounds(EndpointID(id), 4*Millionths, 4*Millionths)
	}
	return b
}

// lora returns a query for an adapter.
func lora(t testing.TB, b *Board, name string) *Query {
	t.Helper()
	return prepare(t, b, Ask{Model: name, Adapter: true})
}

// placed places a request for an adapter, and returns its endpoint.
func placed(t testing.TB, b *Board, name string) (*Query, Reservation) {
	t.Helper()
	q := lora(t, b, name)
	r := b.Place(q, BelowUpper, nil)
	if r.Empty() {
		t.Fatal("no endpoint takes ", name)
	}
	return q, r
}

// A request goes to an endpoint with its adapter, unless that is much fuller. The adapter stays there after the last
// request.
func TestAdapterAttracts(t *testing.T) {
	b := withAdapters(t, 3)
	_, first := placed(t, b, "a")
	for range 3 {
		if _, r := placed(t, b, "a"); r.Endpoint() != first.Endpoint() {
			t.Fatalf("at %d, though %d has the adapter", r.Endpoint(), first.Endpoint())
		}
	}
	if _, r := placed(t, b, "a"); r.Endpoint() == first.Endpoint() {
		t.Fatal("a full endpoint was chosen")
	}
	b = withAdapters(t, 3)
	q, r := placed(t, b, "a")
	was := r.Endpoint()
	b.ReleaseFor(q, &r)
	if _, r := placed(t, b, "b"); r.Endpoint() == was {
		t.Fatal("ties do not rotate")
	}
	if _, r := placed(t, b, "a"); r.Endpoint() != was {
		t.Fatalf("at %d, though %d had the adapter last", r.Endpoint(), was)
	}
	if got, want := b.AdapterTotals(), (AdapterTotals{Requests: 3, Loads: 2}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// A model that is not an adapter, or is an unknown one, leaves no trace and changes no choice.
func TestNoAdapterNoDifference(t *testing.T) {
	b := withAdapters(t, 3)
	for i := range 9 {
		q := prepare(t, b, Ask{Model: "a"})
		if r := b.Place(q, BelowUpper, nil); r.Endpoint() != EndpointID(i%3) {
			t.Fatalf("request %d at %d", i, r.Endpoint())
		}
	}
	if len(b.adapters.engines) > 0 || b.AdapterTotals() != (AdapterTotals{}) {
		t.Errorf("%+v", b.adapters)
	}
}

// Foreign adapters count as long as their engine states them, and an engine without free places costs more.
func TestAdaptersOfOthers(t *testing.T) {
	b := withAdapters(t, 2)
	cost := func(name string) (costs [2]int64) {
		for i, c := range b.Explain(lora(t, b, name)).Candidates {
			costs[i] = c.Loading
		}
		return costs
	}
	say := func(id EndpointID, s *AdapterState) {
		t.Helper()
		if !b.SetSignals(id, Signals{Known: true, Adapters: s}) || b.AdapterState(id) != s {
			t.Fatal("not taken")
		}
	}
	want := func(name string, at0, at1 int64) {
		t.Helper()
		if got := cost(name); got != [2]int64{at0, at1} {
			t.Fatalf("%s costs %v, want %d and %d", name, got, at0, at1)
		}
	}
	want("a", 4000, 4000)
	say(0, &AdapterState{Places: 2, Loaded: []string{"a", "b"}})
	want("a", 0, 4000)
	want("c", 8000, 4000) // two in use
	say(0, &AdapterState{Places: 2, Loaded: []string{"b"}})
	want("a", 0, 4000) // it is idle, and stays until its place is needed
	want("c", 6000, 4000)
	b.PlaceAt(lora(t, b, "c"), 0)
	want("a", 8000, 4000)
	say(0, nil)
	want("b", 0, 4000)
	b.SetSnapshot(NewSnapshot(2, []Endpoint{{ID: 0, Address: "10.0.0.0:80"}, {ID: 1, Address: "10.0.0.1:80", Ready: true}}))
	want("b", 4000, 4000) // after a restart the engine has only the adapters of Weir's requests in flight
	want("c", 0, 4000)
}

// If no engine has its adapter, a waiter's regret is the cost of loading it.
func TestAdapterRegret(t *testing.T) {
	b := withAdapters(t, 2)
	b.PlaceAt(lora(t, b, "a"), 1)
	regret := func(name string, r *Ratings, except ...EndpointID) int64 {
		t.Helper()
		q := lora(t, b, name)
		q.Rate(r)
		var full *EndpointSet
		if len(except) > 0 {
			full = &EndpointSet{}
			for _, id := range except {
				full.Add(id)
			}
		}
		tokens, ok := b.Regret(q, BelowUpper, full)
		if !ok {
			t.Fatal("no place")
		}
		return tokens
	}
	for _, c := range []struct {
		name   string
		rated  *Ratings
		except []EndpointID
		want   int64
	}{
		{"a", nil, nil, 0},
		{"a", nil, []EndpointID{1}, 4000},
		{"b", nil, nil, 0}, // it has to be loaded anywhere
		{"a", &Ratings{Prompt: 9000, Above: []Cached{{0, 3000}}}, nil, 1000}, // at an idle engine
		{"a", &Ratings{Prompt: 9000, Above: []Cached{{0, 3000}}}, []EndpointID{1}, 1000},
		{"a", &Ratings{Prompt: 9000, Above: []Cached{{0, 6000}}}, []EndpointID{0}, 2000},
		{"b", &Ratings{Prompt: 9000, Above: []Cached{{0, 6000}}}, []EndpointID{0}, 6000},
	} {
		if got := regret(c.name, c.rated, c.except...); got != c.want {
			t.Errorf("%s with %+v, without %v: %d, want %d", c.name, c.rated, c.except, got, c.want)
		}
	}
}

// Each choice has the least cost by the formula, in searched and in large lanes. The board's memory is bounded by the
// requests in flight and the places, for any number of adapters.
func TestAdaptersAgainstFormula(t *testing.T) {
	for _, size := range []int{1, 5, 3 * few} {
		for seed := range uint64(6) {
			t.Run(fmt.Sprintf("%d endpoints, %d", size, seed), func(t *testing.T) { adapterRun(t, size, seed) })
		}
	}
}

// flight is a request of adapterRun.
type flight struct {
	q *Query
	r Reservation
}

func adapterRun(t *testing.T, size int, seed uint64) {
	lot := rand.New(rand.NewPCG(seed, uint64(size)))
	b := withAdapters(t, size)
	var flights []flight
	names := []int{4, 30, 1000}[seed%3]
	for step := range 1500 {
		switch n := lot.IntN(10); {
		case n == 0:
			s := &AdapterState{Places: lot.IntN(6)}
			for range lot.IntN(4) {
				s.Loaded = append(s.Loaded, fmt.Sprint("a", lot.IntN(names)))
			}
			b.SetSignals(EndpointID(lot.IntN(size)), Signals{Known: true, Running: int32(step), Adapters: s})
		case n == 1 && step%7 == 0:
			pool := make([]Endpoint, 0, size)
			for id := range size {
				if lot.IntN(8) > 0 {
					pool = append(pool, Endpoint{ID: EndpointID(id), Address: fmt.Sprintf("10.0.%d.%d:80", id/250, id%250), Ready: lot.IntN(6) > 0})
				}
			}
			b.SetSnapshot(NewSnapshot(uint64(step), pool))
			for id := range size {
				b.SetBounds(EndpointID(id), 4*Millionths, int64(1+lot.IntN(8))*Millionths)
			}
		case n < 5 && len(flights) > 0:
			i := lot.IntN(len(flights))
			b.ReleaseFor(flights[i].q, &flights[i].r)
			flights = slices.Delete(flights, i, i+1)
		default:
			q := lora(t, b, fmt.Sprint("a", lot.IntN(names)))
			if lot.IntN(2) == 0 {
				rated := &Ratings{Prompt: 1 + lot.Int64N(9000)}
				for id := range size {
					if lot.IntN(4) == 0 && len(rated.Above) < MaxAbove {
						rated.Above = append(rated.Above, Cached{EndpointID(id), 1 + lot.Int64N(rated.Prompt)})
					}
				}
				q.Rate(rated)
			}
			least := leastCost(b, q)
			r := b.Place(q, BelowUpper, nil)
			if (least == nil) != r.Empty() {
				t.Fatalf("step %d: the least cost is %v, placed %v", step, least, !r.Empty())
			}
			if least == nil {
				continue
			}
			// The board rounds costs down to a 65,536th of a token for each token.
			if cost := costAt(b, q, r.Endpoint(), true); new(big.Rat).Sub(cost, least).Cmp(big.NewRat(1, 4)) > 0 {
				t.Fatalf("step %d: it went where it costs %v, and the least is %v", step, cost, least)
			}
			flights = append(flights, flight{q, r})
		}
		checkAdapters(t, b, flights)
	}
	for i := range flights {
		b.ReleaseFor(flights[i].q, &flights[i].r)
	}
	checkAdapters(t, b, nil)
	checkInvariants(t, b)
}

// costAt is the formula of doc.go with the board's state of an endpoint. With before, the request itself, which is
// already there, does not count.
func costAt(b *Board, q *Query, id EndpointID, there bool) *big.Rat {
	p, _ := b.ring.position(id)
	s := &b.spots[p]
	held := int64(s.held())
	tokens := int64(1000)
	if q.ratings != nil {
		tokens = max(1, q.ratings.Prompt-q.ratings.Cached(id))
	}
	tokens += loadingBefore[id]
	if there {
		held--
	}
	return big.NewRat(tokens*(1+held)*64*Millionths, s.upper)
}

// loadingBefore returns the cost of loading the adapter at each endpoint before the request is placed.
var loadingBefore map[EndpointID]int64

// leastCost returns the least cost of the endpoints that may take the request; nil if none may.
func leastCost(b *Board, q *Query) (least *big.Rat) {
	loadingBefore = map[EndpointID]int64{}
	for _, c := range b.Explain(q).Candidates {
		loadingBefore[c.ID] = c.Loading
		if len(c.Failed) > 0 {
			continue
		}
		if cost := costAt(b, q, c.ID, false); least == nil || cost.Cmp(least) < 0 {
			least = cost
		}
	}
	return least
}

// checkAdapters checks that the board has the adapters of the requests in flight, and few others.
func checkAdapters(t *testing.T, b *Board, flights []flight) {
	t.Helper()
	inFlight := map[EndpointID]map[string]int32{}
	for _, f := range flights {
		if inFlight[f.r.Endpoint()] == nil {
			inFlight[f.r.Endpoint()] = map[string]int32{}
		}
		inFlight[f.r.Endpoint()][f.q.model]++
	}
	pairs := 0
	for id, l := range b.adapters.engines {
		busy, others := 0, 0
		for _, r := range l.list {
			if r.requests != inFlight[id][r.name] {
				t.Fatalf("endpoint %d has %d requests for %s, want %d", id, r.requests, r.name, inFlight[id][r.name])
			}
			if delete(inFlight[id], r.name); r.inUse() {
				busy++
			}
			if r.others {
				others++
			}
			if !slices.Contains(b.adapters.at[r.name], id) {
				t.Fatalf("endpoint %d is not listed for %s", id, r.name)
			}
		}
		if len(inFlight[id]) > 0 || busy != l.busy || len(l.list) > max(l.room(), busy) {
			t.Fatalf("endpoint %d: %d adapters, %d in use (%d) of %d places, without %v", id, len(l.list), l.busy, busy, l.places, inFlight[id])
		}
		if p, known := b.ring.position(id); known && b.spots[p].adapters != l || !known && busy == 0 {
			t.Fatalf("endpoint %d has others' adapters, or is gone (%t)", id, !known)
		}
		pairs += len(l.list)
	}
	for name, on := range b.adapters.at {
		if !slices.IsSorted(on) || len(on) == 0 {
			t.Fatalf("%s is at %v", name, on)
		}
		pairs -= len(on)
	}
	if pairs != 0 {
		t.Fatalf("%d adapters too many or too few are listed", pairs)
	}
}

// BenchmarkPlaceAdapter places requests for one of many adapters, with as many in flight as places.
func BenchmarkPlaceAdapter(b *testing.B) {
	for _, names := range []int{20, 1000} {
		for _, size := range []int{64, 500} {
			b.Run(fmt.Sprintf("%d adapters, %d endpoints", names, size), func(b *testing.B) {
				board := withAdapters(b, size)
				for id := range size {
					board.SetBounds(EndpointID(id), 64*Millionths, 64*Millionths)
					board.SetSignals(EndpointID(id), Signals{Known: true, Adapters: &AdapterState{Places: 4}})
				}
				queries := make([]*Query, names)
				for i := range queries {
					queries[i] = lora(b, board, fmt.Sprint("adapter-", i))
				}
				flights := make([]flight, 8*size)
				for i := range flights {
					q := queries[i%names]
					flights[i] = flight{q, board.Place(q, BelowUpper, nil)}
				}
				i := 0
				for b.Loop() {
					f := &flights[i%len(flights)]
					board.ReleaseFor(f.q, &f.r)
					f.r = board.Place(f.q, BelowUpper, nil)
					i++
				}
			})
		}
	}
}
