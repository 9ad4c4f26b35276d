package scheduling

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestPrepareErrors(t *testing.T) {
	pool := []Endpoint{ready(0, "10.0.0.1:80", "a"), unready(1, "10.0.0.2:80", "b"), ready(2, "[::1]:80", "a", "b")}
	withAny := append([]Endpoint{ready(9, "10.0.0.9:80")}, pool...)
	in := func(member, model string) Ask {
		return Ask{Model: model, Subset: Subset{Set: true, Entries: []string{member}}}
	}
	cases := []struct {
		name string
		pool []Endpoint
		ask  Ask
		want error
		says string
	}{
		{name: "no subset is everything", pool: pool},
		{name: "an empty subset is nothing", pool: pool, ask: subsetOf(), want: ErrSubsetEmpty},
		{name: "a blank subset is nothing", pool: pool, ask: subsetOf(" ", ""), want: ErrSubsetEmpty},
		{name: "also in an empty pool", ask: subsetOf(), want: ErrSubsetEmpty},
		{name: "a member with its port", pool: pool, ask: subsetOf("10.0.0.1:80")},
		{name: "a member without", pool: pool, ask: subsetOf("10.0.0.1")},
		{name: "IPv6", pool: pool, ask: subsetOf("[0::1]:80")},
		{name: "IPv6 without a port", pool: pool, ask: subsetOf("::1")},
		{name: "the port counts", pool: pool, ask: subsetOf("10.0.0.1:81"), want: ErrSubsetForeign, says: "10.0.0.1:81"},
		{name: "a stranger", pool: pool, ask: subsetOf("10.9.9.9"), want: ErrSubsetForeign, says: "10.9.9.9"},
		{name: "one member is enough", pool: pool, ask: subsetOf("10.9.9.9", "10.0.0.2")},
		{name: "an unready member waits", pool: pool, ask: subsetOf("10.0.0.2:80")},
		{name: "an unready model waits", pool: pool, ask: Ask{Model: "b"}},
		{name: "an unknown model", pool: pool, ask: Ask{Model: "c"}, want: ErrModelUnknown, says: `"c"`},
		{name: "a model unknown inside the subset", pool: pool, ask: in("10.0.0.1", "b"), want: ErrModelElsewhere, says: `"b"`},
		{name: "a model unknown inside and outside the subset", pool: pool, ask: in("10.0.0.1", "c"), want: ErrModelUnknown, says: `"c"`},
		{name: "outside, one without a list", pool: withAny, ask: in("10.0.0.1", "c"), want: ErrModelElsewhere},
		{name: "a stranger comes before the model", pool: pool, ask: in("10.9.9.9", "c"), want: ErrSubsetForeign},
		{name: "an endpoint without a list serves any model", pool: withAny, ask: Ask{Model: "c"}},
		{name: "no lists, any model", pool: []Endpoint{ready(0, "10.0.0.1:80")}, ask: Ask{Model: "c"}},
		{name: "an empty pool waits", ask: Ask{Model: "c"}},
		{name: "an empty pool waits, with a subset", ask: subsetOf("10.9.9.9")},
	}
	s := mustNew(t)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			q, err := s.Prepare(NewSnapshot(1, c.pool), c.ask)
			if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
				t.Fatalf("error %v, want %v", err, c.want)
			}
			if (q == nil) != (err != nil) {
				t.Fatalf("query %v beside error %v", q, err)
			}
			if err != nil && !strings.Contains(err.Error(), c.says) {
				t.Fatalf("%q does not say %s", err, c.says)
			}
		})
	}
}

// A model whose last endpoint has left, scaled to zero, is not unknown. It does not wait either: another endpoint may
// come, or not.
func TestDepartedModels(t *testing.T) {
	s := mustNew(t)
	a, b := ready(0, "10.0.0.1:80", "a"), ready(1, "10.0.0.2:80", "b", "b-adapter")
	prepare := func(snap *Snapshot, model string, want error) {
		t.Helper()
		if _, err := s.Prepare(snap, Ask{Model: model}); !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("version %d, model %s: %v, want %v", snap.Version(), model, err, want)
		}
	}
	snap := NewSnapshot(0, nil).Next(1, []Endpoint{a})
	prepare(snap, "b", ErrModelUnknown) // not yet
	snap = snap.Next(2, []Endpoint{a, b})
	prepare(snap, "b", nil)
	for version := range uint64(5) {
		snap = snap.Next(3+version, []Endpoint{a})
		for _, model := range []string{"b", "b-adapter"} {
			prepare(snap, model, ErrModelDeparted)
		}
		prepare(snap, "c", ErrModelUnknown) // however often a client asks
	}
	snap = snap.Next(8, nil)
	prepare(snap, "b", nil) // an empty pool waits for any
	snap = snap.Next(9, []Endpoint{b})
	prepare(snap, "b", nil)
	prepare(snap, "a", ErrModelDeparted)
	if snap.HasListed("b") || !snap.HasListed("a") {
		t.Error("b is there and a is not")
	}
	// Preparation in a subset gives the same.
	in := Ask{Model: "a", Subset: Subset{Set: true, Entries: []string{"10.0.0.2"}}}
	if _, err := s.Prepare(snap, in); !errors.Is(err, ErrModelDeparted) {
		t.Error(err)
	}
}

// The number of models that have left is bounded, and the last ones to leave stay: adapters come and go.
func TestDepartedModelsAreBounded(t *testing.T) {
	snap := NewSnapshot(0, nil)
	stays := ready(0, "10.0.0.1:80", "stays")
	const all = 3 * MaxDeparted
	for i := range all {
		snap = snap.Next(uint64(i+1), []Endpoint{stays, ready(1, "10.0.0.2:80", fmt.Sprint("m", i))})
	}
	before := snap.departed
	for i := range 3 { // changes without a moved model share the list
		changed := ready(1, "10.0.0.2:80", fmt.Sprint("m", all-1))
		changed.Slots = i
		snap = snap.Next(uint64(all+1+i), []Endpoint{stays, changed})
	}
	if snap.departed != before {
		t.Error("departed models are counted anew without a change of models")
	}
	if n := len(snap.departed.order); n != MaxDeparted || len(snap.departed.set) != n {
		t.Errorf("%d are kept", n)
	}
	for i := range all {
		if got, want := snap.HasListed(fmt.Sprint("m", i)), i >= all-1-MaxDeparted && i < all-1; got != want {
			t.Fatalf("model %d is kept: %v", i, got)
		}
	}
	// One endpoint with more models than the bound replaces them by its own first ones, in order of name.
	many := make([]string, 2*MaxDeparted)
	for i := range many {
		many[i] = fmt.Sprintf("adapter%04d", i)
	}
	snap = snap.Next(1_000_000, []Endpoint{stays, ready(2, "10.0.0.3:80", many...)}).Next(1_000_001, []Endpoint{stays})
	if snap.HasListed(many[MaxDeparted-1]) || !snap.HasListed(many[MaxDeparted]) || !snap.HasListed(many[len(many)-1]) {
		t.Error("other adapters are kept than the last ones")
	}
}

func TestPrepareErrorIsBounded(t *testing.T) {
	_, err := mustNew(t).Prepare(NewSnapshot(1, []Endpoint{ready(0, "10.9.9.9:80")}), subsetOf(addresses(100)...))
	if !errors.Is(err, ErrSubsetForeign) || len(err.Error()) > 300 || !strings.Contains(err.Error(), "97 more") {
		t.Fatalf("%v", err)
	}
}

func TestLane(t *testing.T) {
	plain := []Endpoint{ready(0, "10.0.0.1:80"), ready(1, "10.0.0.2:80")}
	listed := []Endpoint{ready(0, "10.0.0.1:80", "a"), ready(1, "10.0.0.2:80")}
	alike := []Endpoint{ready(0, "10.0.0.1:80", "z", "b", "a"), unready(1, "10.0.0.2:80", "b")}
	star := []Endpoint{ready(0, "10.0.0.1:80", "*"), ready(1, "10.0.0.2:80", "b subset=x")}
	both := func(model string, entries ...string) Ask {
		return Ask{Model: model, Subset: Subset{Set: true, Entries: entries}}
	}
	cases := []struct {
		name string
		pool []Endpoint
		ask  Ask
		want string
	}{
		{"the whole pool", plain, Ask{}, ""},
		{"no lists: the model does not matter", plain, Ask{Model: "a"}, ""},
		{"lists: it does", listed, Ask{Model: "a"}, "model=a"},
		{"a model on no list", listed, Ask{Model: "b"}, "model=*"},
		{"a model of the same endpoints as one before it", alike, Ask{Model: "z"}, "model=a"},
		{"a model of one endpoint more", alike, Ask{Model: "b"}, "model=b"},
		{"a model with a listed star", star, Ask{Model: "*"}, `model="*"`},
		{"no model", listed, Ask{}, ""},
		{"a model with odd letters", star, Ask{Model: "b subset=x"}, `model="b subset=x"`},
		{"a subset", plain, subsetOf("10.0.0.2:80"), "subset=10.0.0.2:80"},
		{"sorted, canonical", plain, subsetOf(" 10.0.0.2 ", "[0::1]:80", "10.0.0.1:80", "10.0.0.2:80"), "subset=10.0.0.1:80,10.0.0.2,[::1]:80"},
		{"odd entries", plain, subsetOf("10.0.0.1", "x,y"), `subset=10.0.0.1,"x,y"`},
		{"both", listed, both("a", "10.0.0.1"), "subset=10.0.0.1 model=a"},
		{"both, of the same endpoints as one before it", alike, both("z", "10.0.0.1"), "subset=10.0.0.1 model=a"},
		{"both, no lists", plain, both("a", "10.0.0.1"), "subset=10.0.0.1"},
	}
	s := mustNew(t)
	for _, c := range cases {
		q, err := s.Prepare(NewSnapshot(1, c.pool), c.ask)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if q.Lane() != c.want {
			t.Errorf("%s: lane %q, want %q", c.name, q.Lane(), c.want)
		}
	}
}

// A filter that is not configured is not applied, and makes no lanes.
func TestFiltersLeftOut(t *testing.T) {
	s := mustNew(t, func(c *Config) { c.Filters = []string{FilterReady} })
	b := poolOf(t, s, ready(0, "10.0.0.1:80", "a"), ready(1, "10.0.0.2:80", "b"))
	q := prepare(t, b, Ask{Model: "zzz", Subset: Subset{Set: true, Entries: []string{"10.9.9.9"}}})
	if q.Lane() != "" {
		t.Fatalf("lane %q", q.Lane())
	}
	wantPlaced(t, b, q, BelowLower, 0, 1, 0, 1)
}

// In the common case Prepare allocates only the query.
func TestPrepareAllocates(t *testing.T) {
	s := mustNew(t)
	for _, endpoints := range [][]Endpoint{{ready(0, "10.0.0.1:80")}, {ready(0, "10.0.0.1:80", "a")}} {
		snap := NewSnapshot(1, endpoints)
		allocs := testing.AllocsPerRun(100, func() {
			if _, err := s.Prepare(snap, Ask{Model: "a"}); err != nil {
				t.Fatal(err)
			}
		})
		if allocs > 1 {
			t.Errorf("%v allocations", allocs)
		}
	}
}
