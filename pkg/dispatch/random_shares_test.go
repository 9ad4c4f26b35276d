package dispatch_test

import (
	"math"
	"slices"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// shares checks that sharers have their shares: the flows of a class, and those under a flow. Two that wait for the same
// engines, and may go, throughout an interval, get service in the ratio of their weights, within
//
//	l_f + l_g + 3E + Q/w_f + Q/w_g
//
// where Q is the quantum by which a flow may be ahead because its requests take others' turns, l is the largest cost over weight of a request of each (twice that, if it was at a cap before), and E the largest sum, at any time so far, of what the
// estimates of both's requests whose cost is not known are wrong by. (The packages' bound is l_f + l_g + 2E for the
// counters; what a refund does not lower, because idle time banks nothing, is one E more for the service.) It holds
// whatever happens for other engines. What a sharer gets of other engines may count here too, or not: of the one that is
// ahead only what it gets here is counted, of the other all that it gets.
type shares struct {
	run     *run
	sharers map[sharerKey]*sharer
	order   []*sharer // as they came, since maps have no order
	windows []*window
	now     int                   // number of the present look
	before  map[sharerKey]*sharer // the last reload
}

// sharerKey is a flow in its class: depth 0, or one under it.
type sharerKey struct {
	tier                int
	class, parent, name string
	depth               int
}

// sharer is a flow or class that shares.
type sharer struct {
	key      sharerKey
	weight   float64
	all      float64 // that it was charged, with what it was charged more later
	wrong    float64 // by which the estimates of its requests are wrong, of which the cost is not known
	most     float64 // the largest value of that
	largest  float64 // cost over weight of a request
	disorder bool    // some of its requests went out of turn, to which the bound does not apply
	seats    []*seat // by lane
	waited   int     // number of the last look in which it waited anywhere, with roles
}

// seat is a sharer in a lane.
type seat struct {
	of        *sharer
	lane      string
	here, all float64 // what it was charged here, with every correction; and with those only by which it was charged more
	waits     int     // number of the last look in which it waited here and could go
	present   int     // of the last look in which it waited here
	parked    bool    // it was at a cap since it began to wait here
	elsewhere float64 // what it had been charged elsewhere when it began to wait here
}

// charge is a request's charge to one sharer.
type charge struct {
	seat   *seat
	weight float64
	cost   fairqueue.Cost // that is charged at present
	wrong  float64        // counted in sharer.wrong
}

// window is an interval in which two sharers wait for the same engines and may go.
type window struct {
	a, b   *seat
	pure   bool // neither has been charged for other engines since it began to wait here
	behind [2]float64
	least  [2]float64
}

func newShares(x *run) *shares { return &shares{run: x, sharers: map[sharerKey]*sharer{}} }

// reset starts anew at a reload, which may change weights and classes. Charges before it, at the old weights, still
// decide the order.
func (s *shares) reset() {
	before := s.sharers
	if s.before != nil {
		for key, f := range s.before {
			if g := before[key]; g == nil {
				before[key] = f
			} else {
				g.largest, g.most = max(f.largest, g.largest), max(f.most, g.most)
			}
		}
	}
	*s = *newShares(s.run)
	s.before = before
	for _, r := range s.run.owners {
		r.charges = nil
	}
	s.now = 1
	for _, r := range s.run.waiting { // they go on waiting where they wait, with what counts there from elsewhere
		for _, p := range s.path(r) {
			p.present, p.parked = s.now, true // it may have been
			if was := before[p.of.key]; was != nil && len(was.seats) > 1 {
				p.elsewhere = -1
			}
		}
	}
}

// regroup gives requests the lanes that they have on other endpoints. Where any has another one, all intervals begin anew. A
// sharer that waits in one lane, before and after, and was not charged for other engines since it began to wait, stands to
// others like it as before; how the rest stand is not known. What requests in flight cost counts in their present lanes.
func (s *shares) regroup() {
	s.observe()
	known := map[*sharer]*seat{} // nil: it waits in several lanes, or was charged elsewhere
	note := func(r *request) {
		for _, p := range s.path(r) {
			if was, seen := known[p.of]; seen && was != p || p.far() != p.elsewhere {
				known[p.of] = nil
			} else {
				known[p.of] = p
			}
		}
	}
	for _, r := range s.run.waiting {
		note(r)
	}
	moved := false
	for _, r := range append(slices.Clone(s.run.waiting), s.run.running...) {
		lane := s.run.board.Lane(r.query)
		moved = moved || lane != r.lane
		r.lane = lane
		if len(r.charges) > 0 {
			for depth, p := range s.path(r) {
				r.charges[depth].seat = p
			}
		}
	}
	if !moved {
		return
	}
	s.run.counts.regroupings++
	s.windows = nil
	after := map[*sharer]*seat{}
	for _, r := range s.run.waiting {
		for _, p := range s.path(r) {
			if other := after[p.of]; other != nil && other != p || known[p.of] == nil {
				p.elsewhere, known[p.of] = math.NaN(), nil
				if other != nil {
					other.elsewhere = math.NaN()
				}
			} else {
				p.elsewhere, p.parked = p.far(), known[p.of].parked
			}
			p.present, after[p.of] = s.now, p
		}
	}
}

// path are the sharers of a request, outermost first.
func (s *shares) path(r *request) (all []*seat) {
	if s.run.config.Queue.Discipline == fairqueue.OneFlow {
		return nil
	}
	key := sharerKey{tier: r.w.Tier(), class: r.class, name: r.load.flow}
	for depth := range max(1, s.run.config.Queue.Levels) {
		if depth > 0 {
			key.parent += "/" + key.name
			key.depth, key.name = depth, ""
			if under := r.path().Under; len(under) >= depth {
				key.name = under[depth-1]
			}
		}
		all = append(all, s.seat(key, r.lane))
	}
	return all
}

func (s *shares) seat(key sharerKey, lane string) *seat {
	f := s.sharers[key]
	if f == nil {
		f = &sharer{key: key, weight: 1}
		if w, ok := s.run.config.Queue.Weights[key.name]; ok && key.depth == 0 {
			f.weight = float64(w) / float64(fairqueue.WeightOne)
		}
		if levels := s.run.config.Queue.ByLevel; key.depth > 0 && key.depth < len(levels) && levels[key.depth].Weights[key.name] > 0 {
			f.weight = float64(levels[key.depth].Weights[key.name]) / float64(fairqueue.WeightOne)
		}
		if was := s.before[key]; was != nil {
			f.largest, f.most, f.disorder = was.largest, was.most, was.disorder
		}
		s.sharers[key] = f
		s.order = append(s.order, f)
	}
	for _, seat := range f.seats {
		if seat.lane == lane {
			return seat
		}
	}
	seat := &seat{of: f, lane: lane}
	f.seats = append(f.seats, seat)
	return seat
}

// far returns the sharer's charge elsewhere.
func (p *seat) far() float64 { return p.of.all - p.all }

// most is the largest cost over weight of a request; of one that was at a cap twice that, since it may be behind by one then.
func (p *seat) most() float64 {
	if p.parked {
		return 2 * p.of.largest
	}
	return p.of.largest
}

// total returns the sharer's charge as far as it may count here.
func (p *seat) total() float64 { return p.here + p.far() }

// pays charges a sharer, or corrects a charge.
func (p *seat) pays(by float64) {
	p.here += by
	p.all += max(0, by)
	p.of.all += max(0, by)
}

// granted charges a request that is released.
func (s *shares) granted(r *request) {
	s.observe() // who can go now, and could until now
	s.charges(r)
}

// bypassed charges a request that has not waited, if the discipline does.
func (s *shares) bypassed(r *request) {
	if s.run.config.Queue.Discipline != fairqueue.WFQ {
		s.charges(r)
	}
}

func (s *shares) charges(r *request) {
	r.charges = nil
	for _, p := range s.path(r) {
		c := &charge{seat: p, weight: s.weightAt(p, r), cost: r.cost}
		c.wrong = math.Abs(float64(r.final()-r.cost)) / c.weight
		if s.mayBePreempted(r) {
			c.wrong = max(c.wrong, float64(r.cost)/c.weight, float64(r.actual)/c.weight)
		}
		p.of.largest = max(p.of.largest, float64(max(r.cost, r.actual))/c.weight)
		p.of.wrong += c.wrong
		p.of.most = max(p.of.most, p.of.wrong)
		p.pays(float64(r.cost) / c.weight)
		r.charges = append(r.charges, c)
	}
	s.check()
}

// mayBePreempted reports whether a tier above that of the request may preempt.
func (s *shares) mayBePreempted(r *request) bool {
	if !s.run.strict() {
		return false
	}
	for i, t := range s.run.config.Queue.Tiers {
		if s.run.config.Tiers[i].CanPreempt && s.run.ranks[s.run.named[t.Name]] < s.run.ranks[r.w.Tier()] {
			return true
		}
	}
	return false
}

// known corrects the charges of a request to its actual cost.
func (s *shares) known(r *request) {
	s.corrects(r, r.actual)
	if !r.grows || r.phase == ended || r.early {
		s.forgets(r)
	}
}

// refunded returns a request's charges.
func (s *shares) refunded(r *request) {
	s.corrects(r, 0)
	s.forgets(r)
	r.charges = nil
}

func (s *shares) corrects(r *request, to fairqueue.Cost) {
	for _, c := range r.charges {
		c.seat.pays(float64(to-c.cost) / c.weight)
		c.cost = to
	}
	s.check()
}

// forgets: the cost of a request will not change any more.
func (s *shares) forgets(r *request) {
	for _, c := range r.charges {
		c.seat.of.wrong -= c.wrong
		c.wrong = 0
	}
}

// outOfTurn: a request went out of turn, as a preemptor does.
func (s *shares) outOfTurn(r *request) {
	for _, p := range s.path(r) {
		p.of.disorder = true
	}
}

// observe finds the waiting sharers that may go, and ends and begins intervals.
func (s *shares) observe() {
	s.now++
	var able []*seat
	for _, r := range s.run.waiting {
		may := -1
		for _, p := range s.path(r) {
			s.waitsAs(p.of, r)
			if p.present != s.now {
				if p.present != s.now-1 {
					p.elsewhere, p.parked = p.far(), false // it begins to wait here
				}
				p.present = s.now
			}
			// The largest cost counts for who waits too: a newcomer pays for its first request in advance.
			p.of.largest = max(p.of.largest, float64(max(r.cost, r.actual))/p.of.weight)
			if p.waits == s.now {
				continue
			}
			if may < 0 {
				may = s.may(r)
			}
			if may == 1 {
				p.waits = s.now
				able = append(able, p)
			} else {
				p.parked = true
			}

		}
	}
	s.windows = slices.DeleteFunc(s.windows, func(w *window) bool {
		return w.a.waits != s.now || w.b.waits != s.now || w.a.of.disorder || w.b.of.disorder
	})
	for i, a := range able {
		for _, b := range able[:i] {
			if a.lane == b.lane && a.of.sibling(b.of) && !a.of.disorder && !b.of.disorder && !s.watches(a, b) {
				s.watch(a, b)
			}
		}
	}
}

// may is 1 if the request is below every cap of its flow, wherever it could go. With wfq, flows do not count whose cheaper
// requests overtake the dearer ones.
func (s *shares) may(r *request) int {
	if s.run.config.Queue.Discipline == fairqueue.WFQ && !s.run.byArrival(r) && !s.allCostOne(r) {
		return 0
	}
	if f := s.run.roomFor(r); s.run.atCap(r) || f.capped {
		return 0
	}
	return 1
}

// allCostOne reports whether all requests of the flow cost 1.
func (s *shares) allCostOne(r *request) bool {
	return !slices.ContainsFunc(s.run.scene.loads, func(l load) bool {
		return l.flow == r.load.flow && (l.cost != 1 || l.spread != 1 || l.estimates != exact)
	})
}

func (f *sharer) sibling(g *sharer) bool {
	a, b := f.key, g.key
	a.name, b.name = "", ""
	return a == b
}

func (s *shares) watches(a, b *seat) bool {
	return slices.ContainsFunc(s.windows, func(w *window) bool { return w.a == a && w.b == b || w.a == b && w.b == a })
}

func (s *shares) watch(a, b *seat) {
	w := &window{a: a, b: b, pure: true}
	w.behind = w.difference()
	w.least = w.behind
	if !w.stillPure() { // one has been charged for other engines before, and how that counted here is not known
		return
	}
	s.windows = append(s.windows, w)
	s.run.counts.windows++
}

// ahead is what the sharer may be ahead of others, or behind, since requests take others' turns.
func (f *sharer) ahead(x *run) float64 {
	if f.key.depth > 0 {
		return 0
	}
	return float64(x.config.Queue.LocalityQuantum) / f.weight
}

// difference returns the lead of each over the other.
func (w *window) difference() [2]float64 {
	return [2]float64{w.a.here - w.b.total(), w.b.here - w.a.total()}
}

func (w *window) stillPure() bool {
	return w.pure && w.a.far() == w.a.elsewhere && w.b.far() == w.b.elsewhere
}

// mostWaited is the longest time in the queue, in seconds.
const mostWaited = 300

// check compares all intervals with the bound.
func (s *shares) check() {
	for _, w := range s.windows {
		w.pure = w.stillPure()
		bound := w.a.most() + w.b.most() + 3*(w.a.of.most+w.b.of.most) + w.a.of.ahead(s.run) + w.b.of.ahead(s.run) + 1e-3
		if q := &s.run.config.Queue; q.Discipline == fairqueue.FairShare { // each may have been above the threshold, and waits count
			bound = 3*bound + 2*float64(q.FairShare.WaitBonus)/1e6*mostWaited
		}
		for i, d := range w.difference() {
			from := w.behind[i] // once one of them is charged for other engines, the whole interval counts
			if w.pure {
				w.least[i] = min(w.least[i], d)
				from = w.least[i]
			}
			if s.run.config.Queue.Discipline != fairqueue.WFQ {
				s.run.counts.comparedVTC++
			} else {
				s.run.counts.comparedWFQ++
			}
			if d-from > bound {
				ahead, other := w.a, w.b
				if i == 1 {
					ahead, other = w.b, w.a
				}
				s.run.failf("shares: in lane %q %+v (weight %v) is %v ahead of %+v (weight %v), and may be %v",
					w.a.lane, ahead.of.key, ahead.of.weight, d-from, other.of.key, other.of.weight, bound)
			}
		}
	}
}
