package scheduling

import "testing"

// A request's regret at its endpoint is the number of cached tokens that the best ready endpoint of its lane has more.
// Without room there is no endpoint, and without ratings no regret.
func TestRegret(t *testing.T) {
	s, err := New(DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	b := NewBoard(s, nil)
	snap := NewSnapshot(1, []Endpoint{
		{ID: 0, Address: "a:1", Ready: true}, {ID: 1, Address: "b:1", Ready: true}, {ID: 2, Address: "c:1"},
	})
	b.SetSnapshot(snap)
	for id := range EndpointID(2) {
		b.SetBounds(id, Millionths, Millionths)
	}
	query := func(r *Ratings) *Query {
		q, err := s.Prepare(snap, Ask{})
		if err != nil {
			t.Fatal(err)
		}
		q.Rate(r)
		return q
	}
	b.PlaceAt(query(nil), 1) // so the next goes to endpoint 0
	for _, c := range []struct {
		of   *Ratings
		want int64
	}{
		{nil, 0},
		{&Ratings{Prompt: 5000, Floor: 4000}, 0},
		{&Ratings{Prompt: 5000, Above: []Cached{{0, 4000}}}, 0},
		{&Ratings{Prompt: 5000, Above: []Cached{{1, 4000}}}, 4000},
		{&Ratings{Prompt: 5000, Floor: 500, Above: []Cached{{0, 1000}, {1, 4000}}}, 3000},
		{&Ratings{Prompt: 5000, Above: []Cached{{1, 1000}, {2, 4000}}}, 1000}, // endpoint 2 is not ready
		{&Ratings{Prompt: 5000, Above: []Cached{{2, 4000}}}, 0},
		{&Ratings{Prompt: 5000, Above: []Cached{{1, 9000}}}, 4999}, // the last token is always read
	} {
		if got, ok := b.Regret(query(c.of), BelowLower, nil); got != c.want || !ok {
			t.Errorf("%+v: %d, %t, want %d", c.of, got, ok, c.want)
		}
	}
	b.PlaceAt(query(nil), 0)
	if _, ok := b.Regret(query(&Ratings{Prompt: 5000, Above: []Cached{{1, 4000}}}), BelowLower, nil); ok {
		t.Error("without room it has a place")
	}
}
