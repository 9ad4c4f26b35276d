package dispatch_test

import (
	"math/rand/v2"
	"slices"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// rates gives some requests ratings: the cached part of their prompt at each endpoint.
func (x *run) rates(r *request) {
	random := rand.New(rand.NewPCG(x.scene.seed, uint64(r.load.id)<<32|uint64(r.number)|1<<62))
	if chance(random, 20) {
		return
	}
	known := &scheduling.Ratings{Prompt: 5000, Floor: int64(some(random, 0, 100))}
	for id := range scheduling.EndpointID(mostEndpoints) {
		if chance(random, 40) {
			known.Above = append(known.Above, scheduling.Cached{ID: id, Tokens: int64(1000 * (1 + random.IntN(4)))})
		}
	}
	known.Watched = chance(random, 60)
	r.query.Rate(known)
}

// overtakes checks the requests overtaken by a released one.
func (x *run) overtakes(r *request, promoted bool) {
	var line []*request // those before it in its line
	for _, o := range x.waiting {
		if o != r && x.oneLine(o, r) && o.w.Number() < r.w.Number() {
			line = append(line, o)
		}
	}
	inLine, turns := 0, 0
	for _, over := range x.m.Overtaken() {
		if over.By != &r.w {
			continue
		}
		o := x.owners[over.Waiter]
		hurried := o.deadline > 0 && 2*x.now.Sub(o.came) >= o.deadline
		switch {
		case o.phase != waiting || promoted || o.w.Tier() != r.w.Tier() || o.class != r.class || o.lane != r.lane:
			x.failf("match: %v overtakes %v", r, o)
		case x.config.Queue.Priorities && o.path().Strict != r.path().Strict:
			x.failf("match: %v overtakes %v of another strict priority", r, o)
		case over.Saved <= 0 || !x.gains(r, over.Saved):
			x.failf("match: %v overtakes %v for a saving of %d", r, o, over.Saved)
		case hurried:
			x.failf("match: %v overtakes %v, of which half of the deadline is over", r, o)
		}
		switch {
		case x.oneLine(o, r):
			inLine++
			o.byOwn++
			x.counts.overtakenByOwn++
			if o.byOwn > 64 || x.orderOf(r) != fairqueue.Locality && x.isConfigured(r.class) {
				x.failf("match: %v is overtaken by its own flow %d times", o, o.byOwn)
			}
		default:
			turns++
			o.byOther++
			x.counts.overtakenByOther++
			if o.byOther > 16 || x.config.Queue.LocalityQuantum == 0 || x.reserves() || o.load.flow == r.load.flow {
				x.failf("match: %v loses its turn to another flow %d times", o, o.byOther)
			}
		}
	}
	switch {
	case inLine > 7 || turns > 1:
		x.failf("match: %v overtakes %d of its flow and %d others", r, inLine, turns)
	case x.orderOf(r) == fairqueue.Locality && !x.config.Queue.Priorities && !promoted && inLine != len(line):
		x.failf("order: %v goes before %d of its flow, and overtakes %d", r, len(line), inLine)
	}
}

// gains reports whether the placement of a request can save this much: at most the possible loss of the request whose
// turn it is.
func (x *run) gains(r *request, saved int64) bool {
	known := r.query.Ratings()
	most := int64(4000)
	if known == nil {
		return saved <= most
	}
	best := known.Floor
	for _, c := range known.Above {
		if e := x.endpoint(c.ID); e != nil && x.serves(r, e) {
			best = max(best, c.Tokens)
		}
	}
	lost := best - known.Cached(r.w.Granted().Endpoint())
	return saved+lost <= most
}

// oneLine reports whether two requests wait in one line.
func (x *run) oneLine(a, b *request) bool {
	q, under := &x.config.Queue, [2][]string{}
	for i, r := range []*request{a, b} {
		for depth := range max(1, q.Levels) - 1 {
			if under[i] = append(under[i], ""); depth < len(r.path().Under) {
				under[i][depth] = r.path().Under[depth]
			}
		}
	}
	return a.w.Tier() == b.w.Tier() && a.class == b.class && a.lane == b.lane && slices.Equal(under[0], under[1]) &&
		(a.load.flow == b.load.flow || q.Discipline == fairqueue.OneFlow)
}

// isConfigured reports whether a class is configured, so its order is known.
func (x *run) isConfigured(class string) bool {
	list := x.config.Queue.Classes
	return len(list) == 0 && class == "" || slices.ContainsFunc(list, func(c fairqueue.ClassConfig) bool { return c.Name == class })
}

// reserves reports whether any tier has reserved stock.
func (x *run) reserves() bool {
	return slices.ContainsFunc(x.config.Tiers, func(t dispatch.TierConfig) bool { return t.ReservedFloor > 0 || t.ReservedPerSlot > 0 })
}
