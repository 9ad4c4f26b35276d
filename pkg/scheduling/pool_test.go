package scheduling

import (
	"testing"
)

// The words that the tests are written in.

// ready is a ready endpoint with a band of 1.8 to 2.2 requests, the seed's.
func ready(id EndpointID, address string, models ...string) Endpoint {
	return Endpoint{ID: id, Address: address, Models: models, Ready: true, LowerBound: 1_800_000, UpperBound: 2_200_000}
}

func unready(id EndpointID, address string, models ...string) Endpoint {
	e := ready(id, address, models...)
	e.Ready = false
	return e
}

func subsetOf(entries ...string) Ask { return Ask{Subset: Subset{Set: true, Entries: entries}} }

func mustNew(t testing.TB, change ...func(*Config)) *Scheduler {
	t.Helper()
	config := DefaultConfig()
	config.Fallbacks = 2
	for _, c := range change {
		c(&config)
	}
	s, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// poolOf is a board whose endpoints are the given ones.
func poolOf(t testing.TB, s *Scheduler, endpoints ...Endpoint) *Board {
	t.Helper()
	b := NewBoard(s, nil)
	b.SetSnapshot(NewSnapshot(1, endpoints))
	return b
}

func prepare(t testing.TB, b *Board, ask Ask) *Query {
	t.Helper()
	q, err := b.scheduler.Prepare(b.Snapshot(), ask)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// wantPlaced places q once for each wanted ID, NoEndpoint included.
func wantPlaced(t testing.TB, b *Board, q *Query, bound Bound, want ...EndpointID) {
	t.Helper()
	for i, id := range want {
		if got := b.Place(q, bound); got != id {
			t.Fatalf("placement %d is at %d, want %d", i, got, id)
		}
		checkInvariants(t, b)
	}
}

func release(t testing.TB, b *Board, ids ...EndpointID) {
	t.Helper()
	for _, id := range ids {
		b.Release(id)
		checkInvariants(t, b)
	}
}

// checkInvariants holds a board against what doc.go promises.
func checkInvariants(t testing.TB, b *Board) {
	t.Helper()
	sum := 0
	for p, s := range b.spots {
		m := &b.snap.members[p]
		if s.inFlight < 0 {
			t.Fatalf("endpoint %d has %d in flight", m.ID, s.inFlight)
		}
		if _, twice := b.gone[m.ID]; twice {
			t.Fatalf("endpoint %d is in the pool and gone", m.ID)
		}
		var total Total
		for _, w := range b.scheduler.live {
			total += w.of(w.live(&m.Endpoint, s.inFlight))
		}
		if s.total != total {
			t.Fatalf("endpoint %d has a stale total", m.ID)
		}
		sum += s.inFlight
	}
	for id, n := range b.gone {
		if n <= 0 {
			t.Fatalf("endpoint %d is gone with %d in flight", id, n)
		}
		sum += n
	}
	if sum != b.total {
		t.Fatalf("the counts sum up to %d, the total is %d", sum, b.total)
	}
}
