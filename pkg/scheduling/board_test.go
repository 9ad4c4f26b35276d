package scheduling

import (
	"slices"
	"testing"
)

// A lease outlives its endpoint's stay in the pool, and counts again when the address returns.
func TestLeavingAndReturning(t *testing.T) {
	a, c := ready(0, "10.0.0.1:80"), ready(1, "10.0.0.2:80")
	b := poolOf(t, mustNew(t), a, c)
	q := prepare(t, b, Ask{})
	wantPlaced(t, b, q, BelowUpper, 0, 1, 0, 1, 0)

	b.SetSnapshot(NewSnapshot(2, []Endpoint{c}))
	checkInvariants(t, b)
	if b.Stock(0) != 3 || b.Stock(1) != 2 || b.Total() != 5 {
		t.Fatalf("%d, %d, %d in flight", b.Stock(0), b.Stock(1), b.Total())
	}
	release(t, b, 0)
	b.SetSnapshot(NewSnapshot(3, []Endpoint{c})) // the absent endpoint's count survives more changes
	release(t, b, 1)

	setPool(b, 4, a, c)
	checkInvariants(t, b)
	if b.Stock(0) != 2 || b.Stock(1) != 1 {
		t.Fatalf("%d and %d in flight", b.Stock(0), b.Stock(1))
	}
	wantPlaced(t, b, q, BelowUpper, 1) // its old leases count against the endpoint that came back

	b.SetSnapshot(NewSnapshot(5, nil))
	release(t, b, 0, 0, 1, 1)
	if b.Total() != 0 || len(b.gone) != 0 {
		t.Fatalf("%d in flight, %d kept", b.Total(), len(b.gone))
	}
}

func TestReleaseOfNothingPanics(t *testing.T) {
	for name, id := range map[string]EndpointID{"in the pool": 0, "unknown": 7} {
		t.Run(name, func(t *testing.T) {
			b := poolOf(t, mustNew(t), ready(0, "10.0.0.1:80"))
			defer wantPanic(t)
			r := Reserved(id)
			b.Release(&r)
		})
	}
}

func TestCanServeAndPlaceAt(t *testing.T) {
	b := poolOf(t, mustNew(t), ready(0, "10.0.0.1:80", "a"), unready(1, "10.0.0.2:80", "a"), ready(2, "10.0.0.3:80", "b"))
	q := prepare(t, b, Ask{Model: "a"})
	for id, want := range map[EndpointID]bool{0: true, 1: false, 2: false, 3: false, NoEndpoint: false} {
		if got := b.CanServe(q, id); got != want {
			t.Errorf("CanServe(%d) = %v", id, got)
		}
	}
	b.PlaceAt(q, 0)
	checkInvariants(t, b)
	if address, _ := q.Chosen(); b.Stock(0) != 1 || address != "10.0.0.1:80" {
		t.Errorf("%d in flight, chosen %q", b.Stock(0), address)
	}
	defer wantPanic(t)
	b.PlaceAt(q, 2)
}

// A waiting request uses the current pool, even if it was prepared on an empty pool, or on a newer snapshot than the
// board's.
func TestQueriesFollowTheBoard(t *testing.T) {
	s := mustNew(t)
	b := NewBoard(s, nil)
	early := prepare(t, b, Ask{Model: "a"})
	confined := prepare(t, b, subsetOf("10.0.0.2"))
	if b.HasReady(early, nil) {
		t.Error("ready in an empty pool")
	}
	wantPlaced(t, b, early, BelowLower, NoEndpoint)

	next := NewSnapshot(1, []Endpoint{ready(0, "10.0.0.1:80", "b"), ready(1, "10.0.0.2:80", "a")})
	ahead, err := s.Prepare(next, Ask{Model: "a"})
	if err != nil {
		t.Fatal(err)
	}
	wantPlaced(t, b, ahead, BelowLower, NoEndpoint)

	setPool(b, 1, ready(0, "10.0.0.1:80", "b"), ready(1, "10.0.0.2:80", "a"))
	wantPlaced(t, b, early, BelowUpper, 1)
	wantPlaced(t, b, ahead, BelowUpper, 1)
	wantPlaced(t, b, confined, BelowUpper, 1)
	// early's lane was named "" before any endpoint listed models. It is still confined to the endpoints that serve its
	// model, and so subject to their band.
	wantPlaced(t, b, early, BelowUpper, NoEndpoint)

	// The board also notices other values in a snapshot of the same version, and other bounds.
	b.SetSnapshot(changed(next, func(e *Endpoint) { e.Slots++ }))
	wantPlaced(t, b, early, BelowUpper, NoEndpoint)
	if !b.SetBounds(1, 0, 9*Millionths) || b.SetBounds(7, 0, 9*Millionths) {
		t.Error("endpoint 1 is in the pool, 7 is not")
	}
	wantPlaced(t, b, early, BelowUpper, 1)
}

// A new configuration applies to waiting requests too.
func TestSetScheduler(t *testing.T) {
	b := poolOf(t, mustNew(t), ready(0, "10.0.0.1:80", "a"), ready(1, "10.0.0.2:80", "b"))
	q := prepare(t, b, Ask{Model: "b"})
	wantPlaced(t, b, q, BelowLower, 1)
	b.SetScheduler(mustNew(t, func(c *Config) { c.Filters = []string{FilterReady} }))
	wantPlaced(t, b, q, BelowLower, 0)
	b.SetScheduler(mustNew(t, func(c *Config) { c.Policy = PolicyNone }))
	wantPlaced(t, b, q, BelowLower, 1)
}

// A request goes to an endpoint with its cached prompt. Without cached prompts, requests go as if nothing were known.
func TestCachedPromptDecides(t *testing.T) {
	has := ready(2, "10.0.0.3:80")
	has.Labels = map[string]string{"likes": "a"}
	b := poolOf(t, mustNew(t), ready(0, "10.0.0.1:80"), ready(1, "10.0.0.2:80"), has)
	wantPlaced(t, b, liking(t, b, Ask{Model: "a"}), BelowUpper, 2, 2, 2)
	wantPlaced(t, b, liking(t, b, Ask{Model: "b"}), BelowUpper, 0, 1, 0)
}

// Reach returns the endpoints of a request's lane, ready or not, with any numbers. A request for the whole pool needs
// no list, however the pool changes.
func TestReach(t *testing.T) {
	b := poolOf(t, mustNew(t), ready(3, "10.0.0.1:80", "a"), unready(5, "10.0.0.2:80", "a"), ready(7, "10.0.0.3:80", "b"))
	ofA, pinned, all := prepare(t, b, Ask{Model: "a"}), prepare(t, b, subsetOf("10.0.0.2:80", "10.0.0.3:80")), prepare(t, b, Ask{})
	want := func(q *Query, whole bool, ids ...EndpointID) {
		t.Helper()
		got, full := b.Reach(q, nil)
		if full != whole || !slices.Equal(got, ids) {
			t.Errorf("reach %v, whole %t: want %v, %t", got, full, ids, whole)
		}
	}
	want(ofA, false, 3, 5)
	want(pinned, false, 5, 7)
	want(all, true)
	b.SetSnapshot(NewSnapshot(2, []Endpoint{ready(3, "10.0.0.1:80", "a"), ready(5, "10.0.0.2:80", "a")}))
	want(ofA, true)
	want(pinned, false, 5)
	want(all, true)
	if got, _ := b.Reach(pinned, []EndpointID{9}); !slices.Equal(got, []EndpointID{9, 5}) {
		t.Errorf("appended to 9: %v", got)
	}
}

// Shares returns the requests in flight at each endpoint, in the snapshot's order, and, if it is ready, its foreign
// stock and bounds. Other endpoints do not count.
func TestShares(t *testing.T) {
	s := mustNew(t)
	b := poolOf(t, s, ready(0, "10.0.0.1:80"), ready(1, "10.0.0.2:80"), unready(2, "10.0.0.3:80"))
	wantPlaced(t, b, prepare(t, b, Ask{}), BelowUpper, 0, 1, 0)
	b.SetForeign(1, 7, 70)
	b.SetForeign(2, 8, 80)
	b.AddTokens(0, 20)
	b.SetTokenBounds(1, 90, 100)
	want := []Share{{InFlight: 9}, {2, 0, 1_800_000, 2_200_000, 20, 0, 0, 0, false}, {1, 7, 1_800_000, 2_200_000, 0, 70, 100, 0, false}, {}}
	if got := b.Shares([]Share{{InFlight: 9}}); !slices.Equal(got, want) {
		t.Errorf("appended to 9: %+v", got)
	}
	b.SetBounds(0, 1e9*Millionths, 1e9*Millionths)
	if got := b.Shares(nil); !got[0].Unbounded || got[1].Unbounded {
		t.Errorf("with one unbounded: %+v", got)
	}
}

// There are no fallbacks unless configured: agentgateway parses the header as one address.
func TestNoFallbacksByDefault(t *testing.T) {
	if n := DefaultConfig().Fallbacks; n != 0 {
		t.Errorf("%d fallbacks", n)
	}
}
