package scheduling

import (
	"slices"
	"testing"
)

// A query made from its recording gets the same answers as the original, before and after a change of the pool, in
// small lanes and in large ones, which are cached.
func TestRecalledQueryGetsTheSame(t *testing.T) {
	newBoard := func() *Board {
		return NewBoard(mustNew(t, func(c *Config) { c.Fallbacks = 2 }), nil)
	}
	const n = 200
	pool := make([]Endpoint, n)
	for i, address := range addresses(n) {
		pool[i] = ready(EndpointID(i), address, "any", []string{"even", "odd"}[i%2])
		if i%7 == 0 {
			pool[i].Labels = map[string]string{"likes": "odd"}
		}
	}
	confined := func(model string, from, to int) Ask {
		ask := subsetOf(addresses(n)[from:to]...)
		ask.Model = model
		return ask
	}
	asks := []Ask{
		{},
		{Model: "odd"},
		{Model: "any"},
		confined("", 0, n),
		confined("", 0, 90),
		confined("", 100, n),
		confined("odd", 0, n-2),
		confined("even", 0, n-2),
		confined("odd", 10, 20),
		subsetOf("10.9.9.9", addresses(n)[3]),
	}
	a, b := newBoard(), newBoard()
	snapshot := NewSnapshot(1, pool)
	a.SetSnapshot(snapshot)
	b.SetSnapshot(snapshot)
	for i := range pool {
		a.SetBounds(EndpointID(i), Millionths/20, 4*Millionths)
		b.SetBounds(EndpointID(i), Millionths/20, 4*Millionths)
	}
	var originals, recalled []*Query
	for _, ask := range asks {
		q := liking(t, a, ask)
		originals, recalled = append(originals, q), append(recalled, q.Recalled().Query())
	}
	liked := 0
	for round := range 40 {
		if round == 20 {
			next := NewSnapshot(2, pool[1:])
			a.SetSnapshot(next)
			b.SetSnapshot(next)
		}
		for i, q := range originals {
			again := recalled[i]
			if q.Lane() != again.Lane() {
				t.Fatalf("%+v is in lane %q, and recalled in %q", asks[i], q.Lane(), again.Lane())
			}
			for _, bound := range []Bound{BelowLower, BelowUpper} {
				if a.HasRoom(q, bound, nil) != b.HasRoom(again, bound, nil) {
					t.Fatalf("%+v in round %d has room: %t, and recalled it has not", asks[i], round, a.HasRoom(q, bound, nil))
				}
			}
			bound := []Bound{BelowLower, Unbounded}[round%2]
			want, got := a.Place(q, bound, nil), b.Place(again, bound, nil)
			if got != want || !slices.Equal(q.Destinations(nil), again.Destinations(nil)) {
				t.Fatalf("%+v in round %d is at %v, and recalled at %v", asks[i], round, q.Destinations(nil), again.Destinations(nil))
			}
			if asks[i].Model == "odd" && want.Endpoint()%7 == 0 && !want.Empty() {
				liked++
			}
		}
	}
	if liked < 40 {
		t.Errorf("%d requests are where they prefer to be: the run is too tame", liked)
	}
}
