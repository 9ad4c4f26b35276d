package scheduling

import (
	"encoding/json"
	"reflect"
	"testing"
)

func TestExplain(t *testing.T) {
	full := ready(3, "10.0.0.4:80", "a")
	full.MaxInFlight = 1
	b := poolOf(t, mustNew(t),
		ready(0, "10.0.0.1:80", "a"), unready(1, "10.0.0.2:80", "b"), ready(2, "10.0.0.3:80"), full)
	wantPlaced(t, b, prepare(t, b, subsetOf("10.0.0.4")), BelowUpper, 3)
	q := prepare(t, b, Ask{Model: "a", Subset: Subset{Set: true, Entries: []string{"10.0.0.1", "10.0.0.4"}}})
	d := b.Explain(q)
	if d.Version != 1 || d.Lane != "subset=10.0.0.1,10.0.0.4 model=a" || d.Stock != 1 ||
		d.LowerBound != 3.6 || d.UpperBound != 4.4 || !d.BelowLower || !d.BelowUpper || d.Chosen != "" {
		t.Errorf("%+v", d)
	}
	want := [][]Failure{
		nil,
		{{FilterReady, "not ready", ""}, {FilterSubset, "not in the subset", ""}, {FilterModel, "does not serve the model a", TagModel}},
		{{FilterSubset, "not in the subset", ""}},
		{{filterMaxInFlight, "as many in flight as it may have", TagCapacity}},
	}
	for i, c := range d.Candidates {
		if !reflect.DeepEqual(c.Failed, want[i]) {
			t.Errorf("%s: %+v, want %+v", c.Address, c.Failed, want[i])
		}
		if c.Total != leastStock(Load{Held: c.Stock, UpperBound: 2_200_000}) && c.ID != 1 || c.Cached != 0 || c.Cost != 0 {
			t.Errorf("%s: %+v", c.Address, c)
		}
	}
	if before, after := b.Total(), b.last; true {
		b.Explain(q)
		if b.Total() != before || b.last != after {
			t.Error("explaining changed the board")
		}
	}
	wantPlaced(t, b, q, BelowLower, 0)
	if d = b.Explain(q); d.Chosen != "10.0.0.1:80" || d.Stock != 2 {
		t.Errorf("%+v", d)
	}
	q.Rate(&Ratings{Prompt: 1000, Floor: 100, Above: []Cached{{0, 1000}}})
	if c := b.Explain(q).Candidates; c[0].Cached != 1000 || c[2].Cached != 100 || c[0].Cost != 64*2*10/22 || c[2].Cost != 900*64*10/22 {
		t.Errorf("%+v", c)
	}
	if _, err := json.Marshal(d); err != nil {
		t.Error(err)
	}
}
