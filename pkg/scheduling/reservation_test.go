package scheduling

import (
	"maps"
	"testing"
)

// A reservation lists its endpoints, and is released once, whole or in part.
func TestReservation(t *testing.T) {
	b := three(t, mustNew(t))
	q := prepare(t, b, Ask{})
	r := b.Place(q, BelowLower, nil)
	other := b.PlaceAt(q, 2)
	if r != Reserved(0) || other != Reserved(2) {
		t.Fatalf("%+v and %+v", r, other)
	}
	both := r.with(other.Endpoint(), 0)
	if got := maps.Collect(both.All()); !maps.Equal(got, map[Role]EndpointID{Serving: 0, Prefilling: 2}) {
		t.Fatalf("holds %v", got)
	}
	if !holds(both, 0) || !holds(both, 2) || holds(both, 1) || holds(both, NoEndpoint) || both.In(Prefilling) != 2 || both.In(7) != NoEndpoint {
		t.Errorf("%+v", both)
	}
	for range 2 { // the second time there is nothing to release
		b.ReleaseIn(&both, Serving)
		if b.Stock(0) != 0 || b.Stock(2) != 1 || both.Empty() || both.Endpoint() != NoEndpoint {
			t.Fatalf("%d and %d in flight, %+v", b.Stock(0), b.Stock(2), both)
		}
	}
	for range 2 {
		if b.Release(&both); b.Total() != 0 || !both.Empty() || holds(both, 0) {
			t.Fatalf("%d in flight, %+v", b.Total(), both)
		}
	}
	checkInvariants(t, b)
}

// holds reports whether the reservation holds the endpoint in any role.
func holds(r Reservation, id EndpointID) bool {
	for _, held := range r.All() {
		if held == id {
			return true
		}
	}
	return false
}
