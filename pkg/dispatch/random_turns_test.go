package dispatch_test

import (
	"math"
	"slices"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// turns checks that classes share their tier by their quanta, and weighted tiers the pool by their weights, while both of
// two could go at each release: their releases over quantum, or over weight, differ by no more than a constant. It looks at
// scenes in which all requests cost the same and estimates are exact, so that what a class or tier has saved for its next
// head is not cut when another head takes its place, and nothing is corrected.
//
//   - Of classes with cursor stay each has between 0 and cost + quantum saved, and has earned one quantum more or less than
//     the other: 1 + (c + Q)/Q + (c + R)/R.
//   - Of n weighted tiers each is owed between −n·c and n·c: n·(c/v + c/w), doubled for what both are owed when it begins.
type turns struct {
	run     *run
	cost    float64 // of each request; 0: they differ
	windows []*turn
	spoilt  map[int]bool // tiers of which a request went out of turn, or came back
}

// turn is an interval in which two classes of a tier could go, or two tiers.
type turn struct {
	tier    int
	a, b    string
	classes bool
	from    [2]float64 // the divisors: quanta or weights
	lead    float64    // of a
	least   float64
	most    float64
}

func newTurns(x *run) *turns {
	t := &turns{run: x, spoilt: map[int]bool{}, cost: float64(x.scene.loads[0].cost)}
	for _, l := range x.scene.loads {
		if l.cost != fairqueue.Cost(t.cost) || l.spread != 1 || l.estimates != exact || l.fates != (fates{}) {
			t.cost = 0
		}
	}
	return t
}

// taken is called when r has its lease. A class of which nobody else could go then, whatever the pool's bound, has lost its
// turn, and with its last waiter what it has saved.
func (t *turns) taken(r *request) {
	goesOn := slices.ContainsFunc(t.run.waiting, func(o *request) bool {
		f := t.run.roomFor(o)
		return o.w.Tier() == r.w.Tier() && o.class == r.class && f.open && f.lower && !t.run.atCap(o) && !t.run.blocked(o)
	})
	if !goesOn {
		t.windows = slices.DeleteFunc(t.windows, func(w *turn) bool {
			return w.classes && w.tier == r.w.Tier() && (w.a == r.class || w.b == r.class)
		})
	}
}

// observe ends the intervals of classes and tiers without waiters: they lose their savings with the last one.
func (t *turns) observe() {
	t.windows = slices.DeleteFunc(t.windows, func(w *turn) bool {
		var a, b bool
		for _, o := range t.run.waiting {
			name := o.class
			if !w.classes {
				name = t.run.tierName(o.w.Tier())
			}
			if !w.classes || o.w.Tier() == w.tier {
				a, b = a || name == w.a, b || name == w.b
			}
		}
		return !a || !b
	})
}

// reset begins anew, after a reload.
func (t *turns) reset() { t.windows = nil }

// spoil: a request of the tier went out of turn, or came back.
func (t *turns) spoil(tier int) {
	t.spoilt[tier] = true
	t.windows = nil
}

// granted is a release of r, of which nothing has been counted yet. promoted tells with which bound others could have gone.
func (t *turns) granted(r *request, promoted bool) {
	q := &t.run.config.Queue
	if t.cost == 0 || len(t.spoilt) > 0 {
		return
	}
	if len(q.Classes) > 1 && q.Cursor == fairqueue.Stay {
		able := map[string]bool{}
		for _, o := range t.run.waiting {
			if o.w.Tier() == r.w.Tier() && !able[o.class] && t.couldGo(o, promoted) {
				able[o.class] = true
			}
		}
		quantum := map[string]float64{}
		for _, c := range q.Classes {
			quantum[c.Name] = float64(c.Quantum)
		}
		t.serve(r.w.Tier(), true, r.class, able, quantum)
	}
	if !t.run.strict() && len(q.Tiers) > 1 {
		able, weight := map[string]bool{}, map[string]float64{}
		own := ""
		for _, tier := range q.Tiers {
			id := t.run.named[tier.Name]
			weight[tier.Name] = 1
			if tier.Weight > 0 {
				weight[tier.Name] = float64(tier.Weight) / float64(fairqueue.WeightOne)
			}
			able[tier.Name] = slices.ContainsFunc(t.run.waiting, func(o *request) bool { return o.w.Tier() == id && t.run.mayGo(o, false) })
			if id == r.w.Tier() {
				own = tier.Name
			}
		}
		t.serve(-1, false, own, able, weight)
	}
}

// tierName is the name of a configured tier.
func (o *world) tierName(id int) string {
	for name, named := range o.named {
		if named == id {
			return name
		}
	}
	return ""
}

func (t *turns) couldGo(o *request, promoted bool) bool {
	if promoted {
		return t.run.mayBePromoted(o)
	}
	return t.run.mayGo(o, false)
}

// serve counts a release of one that could go.
func (t *turns) serve(tier int, classes bool, served string, able map[string]bool, divisor map[string]float64) {
	var names []string
	for name, may := range able {
		if may && divisor[name] > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for i, a := range names {
		for _, b := range names[:i] {
			same := func(w *turn) bool { return w.tier == tier && w.classes == classes && w.a == a && w.b == b }
			if !slices.ContainsFunc(t.windows, same) {
				t.windows = append(t.windows, &turn{tier: tier, classes: classes, a: a, b: b, from: [2]float64{divisor[a], divisor[b]}})
				t.run.counts.turns++
			}
		}
	}
	t.windows = slices.DeleteFunc(t.windows, func(w *turn) bool {
		return w.tier == tier && w.classes == classes && !(able[w.a] && able[w.b])
	})
	for _, w := range t.windows {
		if w.tier != tier || w.classes != classes {
			continue
		}
		switch served {
		case w.a:
			w.lead += t.cost / w.from[0]
		case w.b:
			w.lead -= t.cost / w.from[1]
		default:
			continue
		}
		w.least, w.most = min(w.least, w.lead), max(w.most, w.lead)
		n := float64(len(t.run.config.Queue.Tiers))
		bound := 2 * n * (t.cost/w.from[0] + t.cost/w.from[1])
		if classes {
			bound = 1 + (t.cost+w.from[0])/w.from[0] + (t.cost+w.from[1])/w.from[1]
		}
		if apart := math.Max(w.most-w.lead, w.lead-w.least); apart > bound+1e-6 {
			t.run.failf("turns: of %s and %s, by %v, one is %v ahead, and may be %v", w.a, w.b, w.from, apart, bound)
		}
	}
}
