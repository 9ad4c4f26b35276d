package scheduling

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
)

// working returns an endpoint that is ready and does this work.
func working(id EndpointID, work Work) Endpoint {
	e := ready(id, fmt.Sprintf("10.0.0.%d:80", id+1))
	e.Work = work
	return e
}

// long returns a query for a prompt of so many tokens, of which the listed prefill engines have a part cached.
func long(t testing.TB, b *Board, ask Ask, prompt int64, cached ...Cached) *Query {
	t.Helper()
	q := prepare(t, b, ask)
	q.Rate(&Ratings{Prompt: prompt})
	q.RatePrefill(&Ratings{Prompt: prompt, Above: cached})
	return q
}

// wantPrefill places a request and checks the engine that reads its prompt; NoEndpoint: none.
func wantPrefill(t testing.TB, b *Board, q *Query, want EndpointID) Reservation {
	t.Helper()
	r := b.Place(q, BelowUpper, nil)
	if r.Empty() {
		t.Fatal("not placed")
	}
	if id, _ := q.Prefill(); id != want || r.In(Prefilling) != want {
		t.Fatalf("prefill engine %d, reserved %d, want %d", id, r.In(Prefilling), want)
	}
	return r
}

func apartPool(t testing.TB, change ...func(*Config)) *Board {
	t.Helper()
	b := poolOf(t, mustNew(t, change...), working(0, WorkDecode), working(1, WorkPrefill), working(2, WorkPrefill))
	b.SetBounds(0, 64*Millionths, 64*Millionths)
	return b
}

// The chosen prefill engine has the least sum of 4 times the uncached tokens before a prompt and the prompt's own. Each
// line has the tokens before it at one engine, and the cached part of its own 10,000, that make this engine as good as
// the other one, which has neither. One token more or less decides.
func TestFourTimesTheTokensBefore(t *testing.T) {
	for _, equal := range []struct{ before, cached int64 }{{1000, 4000}, {2000, 8000}, {2499, 9996}} {
		for _, c := range []struct {
			more int64
			want EndpointID
		}{{-1, 2}, {1, 1}} {
			b := apartPool(t, func(c *Config) { c.PrefillThreshold = 1 })
			wantPrefill(t, b, long(t, b, Ask{}, equal.before), 1)
			wantPrefill(t, b, long(t, b, Ask{}, 10_000, Cached{ID: 1, Tokens: equal.cached + c.more}), c.want)
		}
	}
	b := apartPool(t)
	for _, want := range []EndpointID{1, 2, 1, 2} { // among equals the next in turn
		r := wantPrefill(t, b, long(t, b, Ask{}, 9000), want)
		b.Release(&r)
	}
}

// Prompts of the threshold's length are long. A prefill engine at its bound is full.
func TestPrefillLimits(t *testing.T) {
	b := apartPool(t, func(c *Config) { c.PrefillThreshold, c.PrefillTokens = 5000, 10_000 })
	wantPrefill(t, b, long(t, b, Ask{}, 4999), NoEndpoint)
	wantPrefill(t, b, long(t, b, Ask{}, 5000), 1)
	wantPrefill(t, b, long(t, b, Ask{}, 10_000), 2)
	second := wantPrefill(t, b, long(t, b, Ask{}, 5000), 1)
	waits := long(t, b, Ask{}, 5000)
	if b.HasRoom(waits, BelowUpper, nil) || !b.Place(waits, BelowUpper, nil).Empty() {
		t.Error("placed although both prefill engines are at their bound")
	}
	if !b.HasRoom(long(t, b, Ask{}, 4999), BelowUpper, nil) || !b.HasRoom(prepare(t, b, Ask{}), BelowUpper, nil) {
		t.Error("no room for a short prompt")
	}
	b.ReleaseIn(&second, Prefilling)
	if second.Endpoint() != 0 || b.Stock(0) != 4 || b.Stock(1) != 1 {
		t.Errorf("left %v; %d at the decode engine, %d at the prefill engine", second, b.Stock(0), b.Stock(1))
	}
	wantPrefill(t, b, waits, 1)

	unlimited := apartPool(t, func(c *Config) { c.PrefillTokens = 0 })
	for range 20 {
		wantPrefill(t, unlimited, long(t, unlimited, Ask{}, 9000, Cached{ID: 1, Tokens: 9000}, Cached{ID: 2, Tokens: 0}), 1)
	}
}

// The prompts at a prefill engine stay while it is away. An engine of both roles needs no other one.
func TestPrefillEnginesComeAndGo(t *testing.T) {
	b := apartPool(t, func(c *Config) { c.PrefillTokens = 9000 })
	first := wantPrefill(t, b, long(t, b, Ask{}, 9000), 1)
	second := wantPrefill(t, b, long(t, b, Ask{}, 9000), 2)
	setPool(b, 2, working(0, WorkDecode))
	wantPrefill(t, b, long(t, b, Ask{}, 9000), NoEndpoint)
	b.Release(&first)
	setPool(b, 3, working(0, WorkDecode), working(1, WorkPrefill), working(2, WorkPrefill))
	wantPrefill(t, b, long(t, b, Ask{}, 9000), 1)
	if q := long(t, b, Ask{}, 9000); b.HasRoom(q, BelowUpper, nil) {
		t.Error("the prompt at 2 is forgotten")
	}
	b.Release(&second)
	wantPrefill(t, b, long(t, b, Ask{}, 9000), 2)

	// While both are full, another engine that reads its own prompts takes a long one.
	setPool(b, 4, working(0, WorkDecode), working(1, WorkPrefill), working(2, WorkPrefill), working(3, WorkAll))
	b.SetBounds(3, 64*Millionths, 64*Millionths)
	for range 10 {
		q := long(t, b, Ask{}, 9000)
		if wantPrefill(t, b, q, NoEndpoint); q.Placed() != 3 {
			t.Fatalf("placed at %d, want 3", q.Placed())
		}
	}
}

// A model that only prefill engines list cannot be served, and neither can a subset of prefill engines.
func TestPrefillEnginesServeNothing(t *testing.T) {
	only := func(e Endpoint, models ...string) Endpoint {
		e.Models = models
		return e
	}
	b := poolOf(t, mustNew(t), only(working(0, WorkDecode), "m"), only(working(1, WorkPrefill), "m", "other"), only(working(2, WorkNone), "media"))
	snap := b.Snapshot()
	for _, c := range []struct {
		ask  Ask
		want error
	}{
		{Ask{Model: "m"}, nil},
		{Ask{Model: "other"}, ErrModelUnknown},
		{Ask{Model: "media"}, ErrModelUnknown},
		{subsetOf("10.0.0.2:80"), ErrSubsetForeign},
		{subsetOf("10.0.0.2:80", "10.0.0.3"), ErrSubsetForeign},
		{subsetOf("10.0.0.1:80", "10.0.0.2:80"), nil},
	} {
		if _, err := b.Scheduler().Prepare(snap, c.ask); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v, want %v", c.ask, err, c.want)
		}
	}
	if snap.Lists("other") {
		t.Error("lists a model that nothing serves")
	}
	alone := NewSnapshot(9, []Endpoint{working(1, WorkPrefill)})
	if q, err := b.Scheduler().Prepare(alone, Ask{Model: "m"}); err != nil {
		t.Errorf("a pool of prefill engines: %v, want a request that waits as in an empty pool", err)
	} else if b.SetSnapshot(alone); b.HasReady(q, nil) {
		t.Error("a prefill engine is ready to serve")
	}
}

// Prefill engines that no request may use change no placement in a pool without roles.
func TestRolesBesideChangeNothing(t *testing.T) {
	plain, beside := []Endpoint{}, []Endpoint{}
	for id := range EndpointID(5) {
		e := working(id, WorkAll)
		plain, beside = append(plain, e), append(beside, e)
	}
	beside = append(beside, working(5, WorkPrefill), working(6, WorkNone))
	a, b := poolOf(t, mustNew(t), plain...), poolOf(t, mustNew(t), beside...)
	random := rand.New(rand.NewPCG(1, 2))
	for id := range EndpointID(5) {
		bound := int64(4+random.IntN(30)) * Millionths
		a.SetBounds(id, bound, bound)
		b.SetBounds(id, bound, bound)
	}
	var held [][2]Reservation
	for i := range 2000 {
		if n := len(held); n > 0 && random.IntN(2) == 0 {
			at := random.IntN(n)
			a.Release(&held[at][0])
			b.Release(&held[at][1])
			held[at] = held[n-1]
			held = held[:n-1]
			continue
		}
		r := &Ratings{Prompt: random.Int64N(20_000)}
		if random.IntN(2) == 0 && r.Prompt > 0 {
			r.Above = []Cached{{ID: EndpointID(random.IntN(5)), Tokens: random.Int64N(r.Prompt)}}
		}
		p, q := prepare(t, a, Ask{}), prepare(t, b, Ask{})
		p.Rate(r)
		q.Rate(r)
		x, y := a.Place(p, BelowUpper, nil), b.Place(q, BelowUpper, nil)
		if x != y {
			t.Fatalf("pick %d: %v without roles, %v beside them", i, x, y)
		}
		if !x.Empty() {
			held = append(held, [2]Reservation{x, y})
		}
	}
}

func TestWorkOf(t *testing.T) {
	for role, want := range map[string]Work{
		"": WorkAll, "both": WorkAll, "prefill-decode": WorkAll, "encode-prefill-decode": WorkAll, "all": WorkAll,
		"decode": WorkDecode, "encode-decode": WorkDecode, "prefill": WorkPrefill, "encode-prefill": WorkPrefill, "encode": WorkNone,
	} {
		if got, known := WorkOf(role); got != want || !known {
			t.Errorf("%q: %v, %t, want %v", role, got, known, want)
		}
	}
	for _, role := range []string{"Prefill", "prefill ", "decoder", "none"} {
		if got, known := WorkOf(role); got != WorkNone || known {
			t.Errorf("%q: %v, %t, want no work, unknown", role, got, known)
		}
	}
}
