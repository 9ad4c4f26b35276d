package scheduling

import (
	"errors"
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
