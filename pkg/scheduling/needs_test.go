package scheduling

import (
	"errors"
	"slices"
	"testing"
)

// lacking returns a ready endpoint that lacks some needs.
func lacking(lacks Needs, id EndpointID, address string, models ...string) Endpoint {
	e := ready(id, address, models...)
	e.Lacks = lacks
	return e
}

// A need that no endpoint of the model meets, ready or not, is an error at once, with its tag. It is none if an
// endpoint that is not ready meets it or states nothing, or if the pool is empty: an endpoint may come.
func TestUnmetNeeds(t *testing.T) {
	text := lacking(AllNeeds, 0, "10.0.0.1:80", "a")
	images := lacking(AllNeeds&^NeedImage, 1, "10.0.0.2:80", "a")
	forms := lacking(AllNeeds&^NeedStructured, 2, "10.0.0.3:80", "a")
	silent := ready(3, "10.0.0.4:80", "a")
	other := ready(4, "10.0.0.5:80", "b")
	later := images
	later.Ready = false
	prefill := lacking(0, 5, "10.0.0.6:80", "a")
	prefill.Work = WorkPrefill
	for _, test := range []struct {
		name  string
		pool  []Endpoint
		ask   Ask
		needs Needs // of the error; 0: there is none
		tag   string
	}{
		{name: "no needs", pool: []Endpoint{text}, ask: Ask{Model: "a"}},
		{name: "an image", pool: []Endpoint{text}, ask: Ask{Model: "a", Needs: NeedImage}, needs: NeedImage, tag: "modality_not_supported"},
		{name: "without a model", pool: []Endpoint{text}, ask: Ask{Needs: NeedAudio}, needs: NeedAudio, tag: "modality_not_supported"},
		{name: "embeddings", pool: []Endpoint{text}, ask: Ask{Needs: NeedEmbeddings}, needs: NeedEmbeddings, tag: "modality_not_supported"},
		{name: "a form", pool: []Endpoint{text, images}, ask: Ask{Model: "a", Needs: NeedStructured}, needs: NeedStructured, tag: "structured_output_not_supported"},
		{name: "one that meets it", pool: []Endpoint{text, images}, ask: Ask{Model: "a", Needs: NeedImage}},
		{name: "one that is not ready", pool: []Endpoint{text, later}, ask: Ask{Model: "a", Needs: NeedImage}},
		{name: "one that states nothing", pool: []Endpoint{text, silent}, ask: Ask{Model: "a", Needs: AllNeeds}},
		{name: "one that serves another model", pool: []Endpoint{text, other}, ask: Ask{Model: "a", Needs: NeedImage}, needs: NeedImage, tag: "modality_not_supported"},
		{name: "that model", pool: []Endpoint{text, other}, ask: Ask{Model: "b", Needs: NeedImage}},
		{name: "both, by no single one", pool: []Endpoint{images, forms}, ask: Ask{Model: "a", Needs: NeedImage | NeedStructured}, needs: NeedImage | NeedStructured, tag: "modality_not_supported"},
		{name: "both, one by nobody", pool: []Endpoint{text, images}, ask: Ask{Model: "a", Needs: NeedImage | NeedStructured}, needs: NeedStructured, tag: "structured_output_not_supported"},
		{name: "outside of the subset", pool: []Endpoint{text, images}, ask: Ask{Model: "a", Needs: NeedImage, Subset: subsetOf("10.0.0.1").Subset}, needs: NeedImage, tag: "modality_not_supported"},
		{name: "a prefill engine answers nothing", pool: []Endpoint{text, prefill}, ask: Ask{Model: "a", Needs: NeedImage}, needs: NeedImage, tag: "modality_not_supported"},
		{name: "an empty pool", ask: Ask{Model: "a", Needs: AllNeeds}},
		{name: "bits that are no needs", pool: []Endpoint{silent}, ask: Ask{Model: "a", Needs: ^AllNeeds}},
	} {
		t.Run(test.name, func(t *testing.T) {
			q, err := mustNew(t).Prepare(NewSnapshot(1, test.pool), test.ask)
			unmet := new(UnmetError)
			if errors.Is(err, ErrNeedsUnmet) != (test.needs != 0) || (q == nil) != (test.needs != 0) {
				t.Fatalf("query %v, error %v", q, err)
			}
			if errors.As(err, &unmet); unmet.Needs != test.needs || unmet.Needs.Tag() != test.tag {
				t.Errorf("unmet are %q, tag %q: want %q, %q", unmet.Needs, unmet.Needs.Tag(), test.needs, test.tag)
			}
		})
	}
	// The error of a model without endpoints ranks before that of a need.
	if _, err := mustNew(t).Prepare(NewSnapshot(1, []Endpoint{text}), Ask{Model: "c", Needs: NeedImage}); !errors.Is(err, ErrModelUnknown) {
		t.Error(err)
	}
}

// Needs make a lane only if an endpoint of the model lacks one of them.
func TestLanesOfNeeds(t *testing.T) {
	const both = NeedImage | NeedStructured
	plain := []Endpoint{ready(0, "10.0.0.1:80"), ready(1, "10.0.0.2:80")}
	stated := []Endpoint{
		lacking(NeedImage, 0, "10.0.0.1:80", "a"), ready(1, "10.0.0.2:80", "a"), ready(2, "10.0.0.3:80", "b"),
		lacking(NeedImage|NeedAudio, 3, "10.0.0.4:80", "b"),
	}
	unlisted := []Endpoint{lacking(NeedImage, 0, "10.0.0.1:80"), ready(1, "10.0.0.2:80")}
	for _, test := range []struct {
		name string
		pool []Endpoint
		ask  Ask
		want string
	}{
		{"nobody states anything", plain, Ask{Model: "a", Needs: AllNeeds}, ""},
		{"no needs", stated, Ask{Model: "a"}, "model=a"},
		{"a need that all meet", stated, Ask{Model: "a", Needs: NeedStructured}, "model=a"},
		{"a need that all of the model meet", stated, Ask{Model: "a", Needs: NeedAudio}, "model=a"},
		{"an image", stated, Ask{Model: "a", Needs: NeedImage}, "model=a needs=image"},
		{"an image, and what all meet", stated, Ask{Model: "a", Needs: both}, "model=a needs=image"},
		{"both count", stated, Ask{Model: "b", Needs: NeedImage | NeedAudio}, "model=b needs=image,audio"},
		{"without a model", stated, Ask{Needs: NeedAudio}, "needs=audio"},
		{"no lists", unlisted, Ask{Model: "a", Needs: NeedImage}, "needs=image"},
		{"within a subset", stated, Ask{Model: "a", Needs: NeedImage, Subset: subsetOf("10.0.0.1", "10.0.0.2").Subset}, "subset=10.0.0.1,10.0.0.2 model=a needs=image"},
	} {
		q, err := mustNew(t).Prepare(NewSnapshot(1, test.pool), test.ask)
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		if q.Lane() != test.want {
			t.Errorf("%s: lane %q, want %q", test.name, q.Lane(), test.want)
		}
	}
}

// A request goes only to an engine that meets its needs, however busy that is. A request without needs goes to the
// engine with the fewest.
func TestNeedsArePlacedWhereTheyAreMet(t *testing.T) {
	for _, n := range []int{2, 3 * few} {
		pool := make([]Endpoint, n)
		for i, address := range addresses(n) {
			pool[i] = lacking(NeedImage|NeedAudio, EndpointID(i), address, "a")
		}
		pool[1].Lacks = NeedAudio
		b := poolOf(t, mustNew(t, func(c *Config) { c.TieBreak = TieFirst }), pool...)
		for id := range n {
			b.SetBounds(EndpointID(id), 100*Millionths, 100*Millionths)
		}
		image := prepare(t, b, Ask{Model: "a", Needs: NeedImage})
		wantPlaced(t, b, image, BelowLower, 1, 1, 1)
		wantPlaced(t, b, prepare(t, b, Ask{Model: "a"}), BelowLower, 0)
		for _, c := range b.Explain(image).Candidates {
			want := []Failure{{Filter: "needs", Reason: "does not support image", Tag: "modality_not_supported"}}
			if c.ID == 1 {
				want = nil
			}
			if !slices.Equal(c.Failed, want) {
				t.Fatalf("endpoint %d fails %+v", c.ID, c.Failed)
			}
		}
		// The lane's band is that of its engines: it is full when they are, even if others are idle.
		b.SetBounds(1, 3*Millionths, 3*Millionths)
		wantPlaced(t, b, image, BelowLower, NoEndpoint)
	}
}

// A waiting request follows the endpoints' statements: it goes to an endpoint once that meets its need.
func TestNeedsFollowTheEndpoints(t *testing.T) {
	b := poolOf(t, mustNew(t), lacking(NeedImage, 0, "10.0.0.1:80", "a"), unready(1, "10.0.0.2:80", "a"))
	q := prepare(t, b, Ask{Model: "a", Needs: NeedImage})
	b.TakeRegrouping()
	b.TakeChanges(nil)
	wantPlaced(t, b, q, BelowLower, NoEndpoint)
	next := b.Snapshot().Next(2, []Endpoint{ready(0, "10.0.0.1:80", "a"), unready(1, "10.0.0.2:80", "a")})
	b.SetSnapshot(next)
	if changed, _ := b.TakeChanges(nil); !slices.Contains(changed, 0) {
		t.Error("the endpoint that states something else has not changed")
	}
	if g := b.TakeRegrouping(); g == nil || b.Lane(q) != "model=a" {
		t.Errorf("regrouping %+v, lane %q", g, b.Lane(q))
	}
	wantPlaced(t, b, q, BelowLower, 0)
}

// An endpoint that begins to meet a need joins the lanes of the need, with or without a model.
func TestTraitsOfNeeds(t *testing.T) {
	b := poolOf(t, mustNew(t), lacking(NeedImage, 0, "10.0.0.1:80"), ready(1, "10.0.0.2:80", "a"))
	for _, ask := range []Ask{{Needs: NeedImage}, {Model: "a", Needs: NeedImage}} {
		q := prepare(t, b, ask)
		asked := b.Traits(q, nil)
		for _, id := range []EndpointID{0, 1} {
			has, known := b.TraitsOf(id, nil)
			if !known || !slices.ContainsFunc(asked, func(t Trait) bool { return slices.Contains(has, t) }) {
				t.Errorf("%+v: endpoint %d has none of the traits %+v", ask, id, asked)
			}
		}
		if reached, whole := b.Reach(q, nil); whole || !slices.Equal(reached, []EndpointID{1}) {
			t.Errorf("%+v reaches %v, whole %t", ask, reached, whole)
		}
	}
}

// Lanes of needs get other names if engines that lack other needs begin to serve a model, or if the model's lane gets
// another name. Then all waiters are asked for their lanes.
func TestNeedsRegroup(t *testing.T) {
	one, two := "10.0.0.1:80", "10.0.0.2:80"
	before := []Endpoint{lacking(NeedImage, 0, one, "b", "c"), ready(1, two, "b"), lacking(NeedImage, 2, "10.0.0.3:80", "d")}
	for _, test := range []struct {
		name  string
		after []Endpoint
		all   bool
	}{
		{"one more like those", append(slices.Clone(before), lacking(NeedImage, 3, "10.0.0.4:80", "d")), false},
		{"another engine of b lacks it", []Endpoint{ready(0, one, "b", "c"), lacking(NeedImage, 1, two, "b"), before[2]}, true},
		{"the lane of b is called a", []Endpoint{lacking(NeedImage, 0, one, "a", "b", "c"), ready(1, two, "a", "b"), before[2]}, true},
		{"c is served like b", []Endpoint{before[0], ready(1, two, "b", "c"), before[2]}, true},
		{"nobody lists c", []Endpoint{lacking(NeedImage, 0, one, "b"), before[1], before[2]}, true},
		{"a new model", []Endpoint{before[0], before[1], lacking(NeedImage, 2, "10.0.0.3:80", "d", "e")}, true},
		{"nobody lacks anything", []Endpoint{ready(0, one, "b", "c"), ready(1, two, "b"), ready(2, "10.0.0.3:80", "d")}, true},
	} {
		g := NewSnapshot(1, before).Next(2, test.after).regrouping
		if (g != nil && g.all) != test.all {
			t.Errorf("%s: %+v", test.name, g)
		}
	}
}

// A prefill engine's own abilities do not count: a decode engine answers the prompts that it reads.
func TestNeedsOfPrefillEngines(t *testing.T) {
	prefill := lacking(AllNeeds, 2, "10.0.0.3:80", "a")
	prefill.Work = WorkPrefill
	decode, other := ready(0, "10.0.0.1:80", "a"), lacking(NeedImage, 1, "10.0.0.2:80", "a")
	decode.Work, other.Work = WorkDecode, WorkDecode
	for _, test := range []struct {
		pool []Endpoint
		lane string
	}{
		{[]Endpoint{decode, prefill}, "model=a long"},
		{[]Endpoint{decode, other, prefill}, "model=a needs=image long"},
	} {
		b := poolOf(t, mustNew(t), test.pool...)
		q := prepare(t, b, Ask{Model: "a", Needs: NeedImage})
		r := &Ratings{Prompt: 100_000}
		q.Rate(r)
		q.RatePrefill(r)
		if q.Lane() != test.lane {
			t.Errorf("lane %q, want %q", q.Lane(), test.lane)
		}
		if at := b.Place(q, BelowLower, nil); at.Endpoint() != 0 || at.In(Prefilling) != 2 {
			t.Errorf("placed at %d and %d", at.Endpoint(), at.In(Prefilling))
		}
	}
}

func TestNeedNames(t *testing.T) {
	for i, name := range NeedNames() {
		if need, known := NeedOf(name); !known || need != 1<<i || need.String() != name {
			t.Errorf("%s is %v, %t", name, need, known)
		}
	}
	if all := Needs(1<<len(NeedNames()) - 1); all != AllNeeds {
		t.Errorf("the names are those of %b, want %b", all, AllNeeds)
	}
	if _, known := NeedOf("text"); known {
		t.Error("text is no need: every engine reads it")
	}
}

// A recording keeps the needs of a query.
func TestRecalledNeeds(t *testing.T) {
	b := poolOf(t, mustNew(t), lacking(NeedImage, 0, "10.0.0.1:80"), ready(1, "10.0.0.2:80"))
	q := prepare(t, b, Ask{Needs: NeedImage})
	again := q.Recalled().Query()
	wantPlaced(t, b, again, BelowLower, 1)
	if again.Lane() != q.Lane() {
		t.Errorf("lane %q, was %q", again.Lane(), q.Lane())
	}
}
