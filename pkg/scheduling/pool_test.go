package scheduling

import (
	"testing"
)

// Setup and checks for the tests.

func ready(id EndpointID, address string, models ...string) Endpoint {
	return Endpoint{ID: id, Address: address, Models: models, Ready: true}
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

// poolOf returns a board with the given endpoints, each with the seed's band.
func poolOf(t testing.TB, s *Scheduler, endpoints ...Endpoint) *Board {
	t.Helper()
	b := NewBoard(s, nil)
	setPool(b, 1, endpoints...)
	return b
}

// setPool changes the pool to the given endpoints, each with the seed's band: 1.8 to 2.2 requests.
func setPool(b *Board, version uint64, endpoints ...Endpoint) {
	b.SetSnapshot(NewSnapshot(version, endpoints))
	for _, e := range endpoints {
		b.SetBounds(e.ID, 1_800_000, 2_200_000)
	}
}

// changed returns a snapshot of the same endpoints, each changed.
func changed(s *Snapshot, change func(*Endpoint)) *Snapshot {
	endpoints := make([]Endpoint, s.Len())
	for i := range endpoints {
		endpoints[i] = s.At(i)
		change(&endpoints[i])
	}
	return NewSnapshot(s.Version(), endpoints)
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
		if got := b.Place(q, bound, nil).Endpoint(); got != id {
			t.Fatalf("placement %d is at %d, want %d", i, got, id)
		}
		checkInvariants(t, b)
	}
}

func release(t testing.TB, b *Board, ids ...EndpointID) {
	t.Helper()
	for _, id := range ids {
		give(b, id)
		checkInvariants(t, b)
	}
}

// give releases one reservation of an endpoint.
func give(b *Board, id EndpointID) {
	r := Reserved(id)
	b.Release(&r)
}

// liking is a query whose prompt is cached, but for one token, at the endpoints of its model with the label likes.
func liking(t testing.TB, b *Board, ask Ask) *Query {
	t.Helper()
	q := prepare(t, b, ask)
	r := &Ratings{Prompt: 1 << 20}
	for i := range b.Snapshot().Len() {
		if e := b.Snapshot().At(i); ask.Model != "" && e.Labels["likes"] == ask.Model && len(r.Above) < MaxAbove {
			r.Above = append(r.Above, Cached{e.ID, r.Prompt})
		}
	}
	q.Rate(r)
	return q
}

// checkInvariants checks the invariants of doc.go.
func checkInvariants(t testing.TB, b *Board) {
	t.Helper()
	sum, ofReady := 0, sums{}
	for p, s := range b.spots {
		m := &b.snap.members[p]
		if s.inFlight < 0 {
			t.Fatalf("endpoint %d has %d in flight", m.ID, s.inFlight)
		}
		if _, twice := b.gone[m.ID]; twice {
			t.Fatalf("endpoint %d is in the pool and gone", m.ID)
		}
		if s.foreign < 0 || s.foreign > 0 && !m.Ready {
			t.Fatalf("endpoint %d has %d of others, ready: %t", m.ID, s.foreign, m.Ready)
		}
		if b.ring.ids[p] != m.ID || s.vital != vitalOf(&m.Endpoint) {
			t.Fatalf("endpoint %d is not up to date", m.ID)
		}
		fresh := s
		if fresh.rate(b.scheduler.by); s.total != fresh.total {
			t.Fatalf("endpoint %d has a stale total", m.ID)
		}
		leaf := s.total
		switch byTokens := s.tokens.upper > 0 && s.tokens.own+s.tokens.foreign >= s.tokens.upper; {
		case byTokens:
		case s.upper > 0 && int64(s.inFlight+s.foreign)*Millionths >= s.upper:
			leaf += fullByRequests
		default:
			leaf += notFull
		}
		if !m.Ready || m.MaxInFlight > 0 && int(s.inFlight+s.foreign) >= m.MaxInFlight {
			leaf = out
		}
		if b.pool.of(p) != leaf {
			t.Fatalf("endpoint %d has %d in the tournament, want %d", m.ID, b.pool.of(p), leaf)
		}
		sum += int(s.inFlight)
		if m.Ready {
			sumUp(&ofReady, &s)
		}
	}
	if b.ofReady != ofReady {
		t.Fatalf("the ready ones have %+v, want %+v", b.ofReady, ofReady)
	}
	checkTournament(t, &b.pool)
	for _, l := range b.lanes {
		l.follow(b)
		var want sums
		for i, p := range l.reach.ready {
			sumUp(&want, &b.spots[p])
			if l.tree.of(i) != b.pool.of(int(p)) {
				t.Fatalf("position %d has %d in its lane, %d in the pool", p, l.tree.of(i), b.pool.of(int(p)))
			}
		}
		if l.sums != want {
			t.Fatalf("a lane has %+v, want %+v", l.sums, want)
		}
		checkTournament(t, &l.tree)
	}
	for id, left := range b.gone {
		if left.inFlight <= 0 {
			t.Fatalf("endpoint %d is gone with %d in flight", id, left.inFlight)
		}
		sum += int(left.inFlight)
	}
	if sum != b.total {
		t.Fatalf("the counts sum up to %d, the total is %d", sum, b.total)
	}
}

// sumUp adds a ready endpoint. Its requests count up to the first whole number that is not below its bound.
func sumUp(x *sums, s *spot) {
	held := int64(s.inFlight + s.foreign)
	x.held += held
	x.whole.lower += max(0, s.lower/Millionths-held)
	x.whole.upper += max(0, s.upper/Millionths-held)
	if held*Millionths > s.lower && s.lower%Millionths > 0 {
		x.filled.lower++
	}
	if held*Millionths > s.upper && s.upper%Millionths > 0 {
		x.filled.upper++
	}
	x.rest.lower += s.lower % Millionths
	x.rest.upper += s.upper % Millionths
	x.bounds.lower += s.lower
	x.bounds.upper += s.upper
}

// checkTournament checks that each node has the better total of its children, and the number of entrants that have it.
func checkTournament(t testing.TB, tree *tournament) {
	t.Helper()
	for n := 1; n < tree.leaves; n++ {
		left, right := tree.best[2*n], tree.best[2*n+1]
		if tree.best[n] != max(left, right) {
			t.Fatalf("node %d has %d of %d and %d", n, tree.best[n], left, right)
		}
		if tree.ties == nil {
			continue
		}
		want := int32(0)
		for _, child := range []int{2 * n, 2*n + 1} {
			if tree.best[child] == tree.best[n] {
				want += tree.ties[child]
			}
		}
		if tree.ties[n] != want {
			t.Fatalf("node %d counts %d, want %d", n, tree.ties[n], want)
		}
	}
}
