package scheduling

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// A regrouping between two pools says for every lane of the first pool's requests whether it stays, and otherwise the
// lane of its requests in the second pool. The order of the changes does not matter. The board reports the regrouping,
// and every request's lane.
func TestRegrouping(t *testing.T) {
	names := []string{"a", "b", "c", "d", "*", "a b", `a" model=b`, "e", "f"}
	hosts := addresses(4)
	lacking := false
	pool := func(random *rand.Rand) []Endpoint {
		var all []Endpoint
		lacks := lacking && random.IntN(3) > 0
		for i, address := range hosts {
			if random.IntN(8) == 0 {
				continue
			}
			e := ready(EndpointID(i), address)
			if random.IntN(12) > 0 {
				for _, name := range names {
					if random.IntN(2) == 0 {
						e.Models = append(e.Models, name)
					}
				}
			}
			if lacks && random.IntN(2) == 0 {
				e.Lacks = Needs(random.IntN(4))
			}
			all = append(all, e)
		}
		return all
	}
	var asks []Ask
	for _, model := range append([]string{"", "nobody's"}, names...) {
		for _, entries := range [][]string{nil, {hosts[0]}, {hosts[1], hosts[2]}, {`odd " entry`, hosts[0]}, {"odd model=a"}} {
			asks = append(asks, Ask{Model: model, Subset: Subset{Set: entries != nil, Entries: entries}})
			asks = append(asks, Ask{Model: model, Subset: Subset{Set: entries != nil, Entries: entries}, Needs: Needs(len(asks)%3 + 1)})
		}
	}
	moved := 0
	for seed := range uint64(400) {
		random := rand.New(rand.NewPCG(seed, 5))
		lacking = seed%3 == 2
		s := mustNew(t)
		b := NewBoard(s, nil)
		first := NewSnapshot(1, pool(random))
		b.SetSnapshot(first)
		b.TakeRegrouping()
		var queries []*Query
		for _, ask := range asks {
			q := &Query{constraint: constraint{model: ask.Model, confined: ask.Subset.Set, entries: ask.Subset.canonical(), needs: ask.Needs}}
			if q.confined {
				q.text = subsetLane(q.entries)
			}
			b.refresh(q)
			queries = append(queries, q)
		}
		second := first.Next(2, pool(random))
		switch seed % 4 {
		case 1:
			second = NewSnapshot(2, pool(random))
		case 2:
			b.SetSnapshot(first.Next(2, pool(random)))
		case 3:
			b.SetScheduler(mustNew(t, func(c *Config) { c.Filters = []string{FilterReady, FilterModel} }))
		}
		b.SetSnapshot(second)
		g := b.TakeRegrouping()
		if b.TakeRegrouping() != nil {
			t.Fatal("a regrouping is reported twice")
		}
		for i, q := range queries {
			was, now := q.Lane(), b.Lane(q)
			b.refresh(q)
			if q.Lane() != now {
				t.Fatalf("%+v is in lane %q, and will be in %q", asks[i], now, q.Lane())
			}
			if g == nil {
				if was != now {
					t.Fatalf("seed %d: %+v was in lane %q, and is in %q: not reported", seed, asks[i], was, now)
				}
				continue
			}
			heirs, known, changed := g.Heirs(was)
			goesOn := !changed
			if goesOn && was != now || known && !goesOn && !slices.Contains(heirs, now) || !slices.IsSorted(heirs) {
				t.Fatalf("seed %d: %+v was in lane %q, and is in %q; it goes on: %t, known %t: %q", seed, asks[i], was, now, goesOn,
					known, heirs)
			}
			if known && !goesOn && !asks[i].Subset.Set && !slices.Contains(g.Regrouped(), was) {
				t.Fatalf("seed %d: lane %q is not among %q", seed, was, g.Regrouped())
			}
			if was != now {
				moved++
			}
		}
	}
	if moved < 1000 {
		t.Errorf("only %d requests have another lane", moved)
	}
}

// One more or one less endpoint of the same models, or a change of readiness, regroups nothing, for any number of
// models.
func TestScalingRegroupsNothing(t *testing.T) {
	var models []string
	for i := range 1000 {
		models = append(models, fmt.Sprint("adapter-", i))
	}
	pool := func(n int) (all []Endpoint) {
		for i, address := range addresses(n) {
			all = append(all, ready(EndpointID(i), address, models...))
		}
		all[0].Ready = n > 5
		return all
	}
	snap := NewSnapshot(1, pool(5))
	for _, n := range []int{4, 6, 6, 3} {
		next := snap.Next(snap.Version()+1, pool(n))
		if next.regrouping != nil {
			t.Errorf("%d endpoints: %+v", n, next.regrouping)
		}
		snap = next
	}
}

// An adapter that one endpoint unloads gets a lane of its own. The lane of the others keeps its name.
func TestUnloadedAdapterDividesItsLane(t *testing.T) {
	pool := []Endpoint{ready(0, "10.0.0.1:1", "a", "b", "c"), ready(1, "10.0.0.2:1", "a", "b", "c")}
	snap := NewSnapshot(1, pool)
	next := snap.Next(2, []Endpoint{pool[0], ready(1, "10.0.0.2:1", "a", "b")})
	heirs, known, changed := next.regrouping.Heirs("model=a")
	if want := []string{"model=a", "model=c"}; !known || !changed || !slices.Equal(heirs, want) {
		t.Errorf("the lane's requests are in %q now, known %t, changed %t; want %q", heirs, known, changed, want)
	}
	if b, c := next.laneOf("b"), next.laneOf("c"); b != "model=a" || c != "model=c" {
		t.Errorf("b has the lane %q, c has %q", b, c)
	}
	subset := subsetLane(subsetOf("10.0.0.1:1").Subset.canonical())
	heirs, known, changed = next.regrouping.Heirs(subset + " model=a")
	if want := []string{subset + " model=a", subset + " model=c"}; !known || !changed || !slices.Equal(heirs, want) {
		t.Errorf("within a subset they are in %q now, known %t, changed %t; want %q", heirs, known, changed, want)
	}
}

// A lane depends on a trait only if a configured filter reads it: otherwise a model rules out no endpoint.
func TestTraitsFollowTheFilters(t *testing.T) {
	for _, test := range []struct {
		filter string
		ask    Ask
		want   int // an endpoint's address, or a model and any model
	}{
		{FilterModel, Ask{Model: "a"}, 2},
		{FilterModel, Ask{}, 0},
		{FilterModel, subsetOf("10.0.0.1:1"), 0},
		{FilterSubset, Ask{Model: "a"}, 0},
		{FilterSubset, subsetOf("10.0.0.1:1"), 1},
	} {
		b := poolOf(t, mustNew(t, func(c *Config) { c.Filters = []string{FilterReady, test.filter} }), ready(0, "10.0.0.1:1", "a"))
		if got := b.Traits(prepare(t, b, test.ask), nil); len(got) != test.want {
			t.Errorf("%s, %+v: traits %+v, want %d", test.filter, test.ask, got, test.want)
		}
	}
}
