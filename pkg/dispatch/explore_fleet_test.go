package dispatch

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// fleet is the Placer of the exploration: it picks the ready endpoint of the lane with the fewest requests, and
// knows the lanes' own bounds as the real one does.
type fleet struct {
	scene    *scene
	slots    []int // 0: not ready
	reserved [2]int
	foreign  [2]int   // foreign requests
	tokens   [2]int64 // of ours
	lower    [2]int   // the bounds of requests, rounded up
	upper    [2]int
	least    [2]int64 // the bounds of tokens; 0: none
	most     [2]int64
	changed  []Endpoint // the result of TakeChanges
	sick     bool       // panics at every placement
	lost     reach      // it panics whenever it is asked for the lane of this one; "": of none
	level    int        // of the listed models
	regroups *Regrouping
	prompts  // being read
}

// set sets the slots.
func (f *fleet) set(slots []int) {
	for e, n := range slots {
		if len(f.slots) <= e || f.slots[e] != n {
			f.changed = append(f.changed, Endpoint(e))
		}
		if n == 0 {
			f.foreign[e] = 0
		}
	}
	f.slots = slices.Clone(slots)
	f.retell()
}

// held returns the number of requests at an endpoint, own and foreign.
func (f *fleet) held(e Endpoint) int { return f.reserved[e] + f.foreign[e] }

// SetForeign is called by the machine.
func (f *fleet) SetForeign(e Endpoint, n int, _ int64) bool {
	f.foreign[e] = n
	return true
}

// SetBounds is called by the machine, in one test also for endpoints outside the fleet.
func (f *fleet) SetBounds(e Endpoint, lower, upper int64) bool {
	in := int(e) < len(f.upper)
	if in {
		f.lower[e], f.upper[e] = stock.Micro(lower).Ceil(), stock.Micro(upper).Ceil()
	}
	return in
}

// room reports whether an endpoint is below its own bound.
func (f *fleet) room(e Endpoint, bound Bound) bool {
	own := f.upper[e]
	if bound == BelowLower {
		own = f.lower[e]
	}
	return own == 0 || f.held(e) < own
}

// SetTokenBounds is called by the machine, in one test also for endpoints outside the fleet.
func (f *fleet) SetTokenBounds(e Endpoint, lower, upper int64) bool {
	in := int(e) < len(f.most)
	if in {
		f.least[e], f.most[e] = lower, upper
	}
	return in
}

// BelowTokens checks every ready endpoint.
func (f *fleet) BelowTokens(bound Bound) bool {
	return slices.ContainsFunc(f.ready(reach("")), func(e Endpoint) bool {
		if bound == BelowLower {
			return f.least[e] == 0 || f.tokens[e] < f.least[e]
		}
		return f.TakesTokens(e, 0)
	})
}

// AddTokens is called by the machine.
func (f *fleet) AddTokens(e Endpoint, by int64) { f.tokens[e] += by }

// TakesTokens is below the bound.
func (f *fleet) Times() bool { return false }

func (f *fleet) Completed(Endpoint, time.Duration, int64) {}

func (f *fleet) TakesTokens(e Endpoint, change int64) bool {
	return f.most[e] == 0 || f.tokens[e]+change < f.most[e]
}

// SetSignals ignores the signals.
func (f *fleet) SetSignals(Endpoint, Signals) bool { return true }

func (f *fleet) Held(e Endpoint) int { return f.held(e) }

func (f *fleet) ready(p Placement) (ready []Endpoint) {
	for e, n := range f.slots {
		if n > 0 && f.has(p.(reach), Endpoint(e)) {
			ready = append(ready, Endpoint(e))
		}
	}
	return ready
}

// below reports whether the lane is below a bound, with its stock changed by change. The whole pool's lane always is:
// its band is the ledger's.
func (f *fleet) below(p Placement, bound Bound, change int) bool {
	if bound >= Unbounded || p.(reach).whole() || f.scene.upper == 0 {
		return true
	}
	if change == 0 {
		return slices.ContainsFunc(f.ready(p), func(e Endpoint) bool { return f.room(e, bound) })
	}
	// Without one of them, an endpoint within its bound has room.
	return len(f.ready(p)) > 0
}

// Regret is the whole prompt if the endpoint with the cached prompt is ready, but another one would be picked.
func (f *fleet) Regret(p Placement, bound Bound, except *EndpointSet) (int64, bool) {
	cached := p.(reach).cached()
	if !slices.Contains(f.ready(p), cached) {
		return 0, true
	}
	switch f.pick(p, bound, except) {
	case NoEndpoint:
		return 0, false
	case cached:
		return 0, true
	}
	return cachedPrompt, true
}

// cachedPrompt is the length of a cached prompt.
const cachedPrompt = 1000

func (f *fleet) pick(p Placement, bound Bound, except *EndpointSet) Endpoint {
	best := NoEndpoint
	if !f.below(p, bound, 0) {
		return best
	}
	for _, e := range f.ready(p) {
		switch {
		case f.scene.limit > 0 && f.held(e) >= f.scene.limit, bound < Unbounded && !f.room(e, BelowUpper):
		case bound != AnyReady && !f.TakesTokens(e, 0), except.Has(e):
		case best == NoEndpoint || f.held(e) < f.held(best):
			best = e
		}
	}
	return best
}

// isPoison reports whether the placer panics for a placement.
func (f *fleet) isPoison(p Placement) bool {
	return f.scene.poison != "" && string(p.(reach)) == f.scene.poison
}

func (f *fleet) ask(p Placement) {
	if f.sick || f.isPoison(p) {
		panic("poison")
	}
}

func (f *fleet) Place(p Placement, bound Bound, except *EndpointSet) Reservation {
	f.ask(p)
	e := f.pick(p, bound, except)
	if e == NoEndpoint {
		return Reservation{}
	}
	return f.reserve(e)
}

func (f *fleet) HasRoom(p Placement, bound Bound, except *EndpointSet) bool {
	f.ask(p)
	return f.pick(p, bound, except) != NoEndpoint
}

func (f *fleet) PlaceAt(p Placement, e Endpoint) Reservation {
	if !f.CanServe(p, e) {
		panic("placed where it cannot be")
	}
	return f.reserve(e)
}

func (f *fleet) Release(_ Placement, r *Reservation) {
	e := r.Endpoint()
	f.PromptRead(r)
	if f.reserved[e]--; f.reserved[e] < 0 {
		panic("released more than was reserved")
	}
}

func (f *fleet) HasReady(p Placement, except *EndpointSet) bool {
	return slices.ContainsFunc(f.ready(p), func(e Endpoint) bool { return !except.Has(e) })
}

func (f *fleet) Meets(p Placement, set *EndpointSet) bool {
	return slices.ContainsFunc(f.ready(p), set.Has)
}

// Known also counts endpoints that are not ready.
func (f *fleet) Known(p Placement) (n int) {
	for e := range f.slots {
		if f.has(p.(reach), Endpoint(e)) {
			n++
		}
	}
	return n
}

func (f *fleet) CanServe(p Placement, e Endpoint) bool { return slices.Contains(f.ready(p), e) }

// Reach is also called for the poison, so it answers.
func (f *fleet) Reach(p Placement, some []Endpoint) ([]Endpoint, bool) {
	if p.(reach).whole() {
		return nil, true
	}
	if r := p.(reach); r.isModel() {
		all := f.scene.lists[f.level].reach[r]
		if whole := len(all) == len(f.slots); whole {
			return some, true
		}
		return append(some, all...), false
	}
	return []Endpoint{Endpoint(p.(reach)[0] - '0')}, false
}

// Traits: only models have traits, since no endpoint joins the fleet.
func (f *fleet) Traits(p Placement, some []scheduling.Trait) []scheduling.Trait {
	if r := p.(reach); r.isModel() {
		return append(some, f.scene.lists[f.level].traits[r]...)
	}
	return some
}

func (f *fleet) TraitsOf(e Endpoint, some []scheduling.Trait) ([]scheduling.Trait, bool) {
	if f.scene.lists != nil {
		some = append(some, f.scene.lists[f.level].traitsOf[e]...)
	}
	return some, int(e) < len(f.slots)
}

func (f *fleet) TakeChanges(some []Endpoint) ([]Endpoint, bool) {
	some, f.changed = append(some, f.changed...), nil
	return some, false
}

func (f *fleet) CanTakeOver(p Placement, e Endpoint) bool {
	return f.CanServe(p, e) && f.below(p, BelowUpper, -1)
}

// Lane is the lane named by the request, or its model's.
func (f *fleet) Lane(p Placement) string {
	if f.lost != "" && p == f.lost {
		panic("lost")
	}
	if r := p.(reach); r.isModel() {
		return f.scene.lists[f.level].lane[r]
	}
	if p.(reach).whole() {
		return ""
	}
	return string(p.(reach))
}

func (f *fleet) TakeRegrouping() *Regrouping {
	g := f.regroups
	f.regroups = nil
	return g
}

// has reports whether an endpoint is in a lane.
func (f *fleet) has(r reach, e Endpoint) bool {
	if r.isModel() {
		return slices.Contains(f.scene.lists[f.level].reach[r], e)
	}
	return r.has(e)
}

// list sets the listed models to those of this level.
func (f *fleet) list(level int) {
	if f.scene.lists == nil || f.level == level {
		return
	}
	for e := range f.slots {
		if f.scene.listed[f.level][e] != f.scene.listed[level][e] && !slices.Contains(f.changed, Endpoint(e)) {
			f.changed = append(f.changed, Endpoint(e))
		}
	}
	f.regroups = f.regroups.And(f.scene.lists[f.level].regroups[level])
	f.level = level
}

// listing has the consequences of the endpoints' listed models at one level of the pool, from a real board.
type listing struct {
	lane     map[reach]string
	reach    map[reach][]Endpoint
	traits   map[reach][]scheduling.Trait
	traitsOf [2][]scheduling.Trait
	regroups []*Regrouping // to each other level
}

// lacks returns the needs that an endpoint does not meet.
func lacks(models string) scheduling.Needs {
	if strings.HasSuffix(models, "-") {
		return scheduling.NeedImage
	}
	return 0
}

// listings gets the listing of each level from a board.
func listings(s *scene) (all []listing) {
	scheduler, err := scheduling.New(scheduling.DefaultConfig())
	if err != nil {
		panic(err)
	}
	snapshot := func(level int) *scheduling.Snapshot {
		var endpoints []scheduling.Endpoint
		for e, models := range s.listed[level] {
			endpoints = append(endpoints, scheduling.Endpoint{
				ID: Endpoint(e), Address: fmt.Sprintf("10.0.0.%d:80", e+1), Ready: true,
				Models: strings.Split(strings.TrimSuffix(models, "-"), ""), Lacks: lacks(models),
			})
		}
		return scheduling.NewSnapshot(uint64(level), endpoints)
	}
	for level := range s.listed {
		l := listing{lane: map[reach]string{}, reach: map[reach][]Endpoint{}, traits: map[reach][]scheduling.Trait{}}
		b := scheduling.NewBoard(scheduler, nil)
		b.SetSnapshot(snapshot(level))
		for _, k := range s.kinds {
			if !k.lane.isModel() {
				continue
			}
			q := scheduling.Recalled{Model: k.lane.model(), Needs: k.lane.needs()}.Query()
			l.lane[k.lane], l.traits[k.lane] = b.Lane(q), b.Traits(q, nil)
			for e, models := range s.listed[level] {
				if strings.Contains(models, k.lane.model()) && lacks(models)&k.lane.needs() == 0 {
					l.reach[k.lane] = append(l.reach[k.lane], Endpoint(e))
				}
			}
		}
		for e := range l.traitsOf {
			l.traitsOf[e], _ = b.TraitsOf(Endpoint(e), nil)
		}
		for other := range s.listed {
			b.SetSnapshot(snapshot(level))
			b.TakeRegrouping()
			b.SetSnapshot(snapshot(other))
			l.regroups = append(l.regroups, b.TakeRegrouping())
		}
		all = append(all, l)
	}
	return all
}
