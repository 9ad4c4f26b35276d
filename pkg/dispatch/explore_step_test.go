package dispatch

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// glance is the state before the input that the rules need.
type glance struct {
	engines   [2]engineGlance
	in        input
	stock     int
	released  time.Time // the last release
	preempted uint64
	promoted  uint64
	mustGo    error // reason why the arrival must go at once; nil: none
	stands    error // reason why it must not go at once
	lowest    int   // rank of the lowest waiting tier; -1: none
	quota     quotaGlance
}

func (w *world) look(in input) glance {
	g := glance{in: in, stock: w.ledger.Stock(), released: w.released, preempted: w.lost(), promoted: w.risen(), engines: w.lookAtEngines(), lowest: -1}
	starved := false
	if w.someOverdue() {
		return g
	}
	for _, s := range w.subjects {
		if s.waits() {
			g.lowest = max(g.lowest, slices.Index(w.byRank, s.w.queued.Tier))
			starved = starved || w.starves(s)
		}
	}
	if in.op != arrives || !w.config.Enabled || w.fleet.isPoison(w.scene.kinds[in.index].lane) {
		return g
	}
	kind := w.scene.kinds[in.index]
	if g.quota = w.lookAtQuota(kind); g.quota.refused {
		return g
	}
	tier := w.tierOf(kind.tier)
	arrival := &subject{kind: kind, w: &Waiter{}}
	arrival.w.queued.Tier, arrival.w.flow = tier, &flowAccount{}
	before := false
	for _, s := range w.subjects {
		if w.couldGo(s) && (w.config.Queue.TierMode == fairqueue.Weighted || !w.before(tier, s.w.queued.Tier)) {
			before = true
			if !w.awaitsRoom(s) { // otherwise it may be first, but need not
				g.stands = fmt.Errorf("%v overtakes %v, which could go", arrival, s)
			}
		}
	}
	if !before && !starved && w.belowUpper() && w.ledger.Available(tier) > 0 && w.fits(arrival, BelowUpper) {
		g.mustGo = fmt.Errorf("%v does not go at once, and nobody stands before it", arrival)
	}
	return g
}

// lost returns the number of leases preempted so far.
func (w *world) lost() (n uint64) {
	for _, m := range w.counts.preempted {
		n += m
	}
	return n
}

// risen returns the number of promotions so far.
func (w *world) risen() (n uint64) {
	for _, m := range w.counts.promotions {
		n += m
	}
	return n
}

// stepAgrees checks the changes by the input: granted, preempted and displaced requests.
func (w *world) stepAgrees(g glance) error {
	var went []*subject
	for _, s := range w.subjects {
		// A request that was preempted before it was told, and took another's lease in turn, also went.
		if s.holds() && (!s.wasHeld || s.wasAt != s.w.reservation.Endpoint() && g.in.op != isServed) {
			went = append(went, s)
		}
	}
	for _, s := range went {
		if s.last == StageWaiting && w.queue.Expired(w.clock, &s.w.queued) {
			return fmt.Errorf("%v goes, and its time is over", s)
		}
	}
	lost := uint64(0)
	if now := w.lost(); now > g.preempted { // a reload drops the counts of removed tiers
		lost = now - g.preempted
	}
	switch {
	case !w.config.Enabled, g.in.op == passesOn:
		return nil // all requests go, whatever the bounds
	case lost > 0 && w.config.Stock.Unbounded && g.in.op != reloads:
		return fmt.Errorf("a victim of a stock without a bound")
	case lost > uint64(len(went)):
		return fmt.Errorf("%d victims for %d admissions", lost, len(went))
	case w.risen() > g.promoted && !w.unlimited() && w.promotedAtReady() > w.promotable():
		return fmt.Errorf("promoted, and there are %d of %d", w.promotedAtReady(), w.promotable())
	}
	if spaced := w.config.ReleaseSpacing > 0 && w.clock.Before(g.released.Add(w.config.ReleaseSpacing)); spaced &&
		lost == 0 && g.in.op != cancels && w.atReady() > 1 {
		for _, s := range went {
			if s.last == StageWaiting {
				return fmt.Errorf("%v is released too soon after another", s)
			}
		}
	}
	if len(went) == 1 && w.risen() == g.promoted {
		if tier := went[0].w.held.Tier(); w.ledger.Headroom(tier) < 0 {
			return fmt.Errorf("%v took what is reserved: headroom %d", went[0], w.ledger.Headroom(tier))
		}
	}
	if len(went) == 1 && went[0].promoted && !w.lentAge(went[0]) {
		return fmt.Errorf("%v is promoted, and nobody is starved for whom there was room", went[0])
	}
	for _, s := range went {
		if e := s.w.reservation.Endpoint(); g.in.op != isServed && w.fleet.held(e)-w.withheldAt(e) > w.most(e) {
			return fmt.Errorf("%v goes to endpoint %d, which then holds %d of %d", s, e, w.fleet.held(e), w.most(e))
		}
		if w.blocked(s, went...) {
			return fmt.Errorf("%v goes, and the endpoints that it may use are too busy for it", s)
		}
		total, at := w.mostOf(s), w.config.MaxInFlightPerFlowPerBackend
		if total > 0 && w.sameTenant(s, NoEndpoint) > total || at > 0 && w.sameTenant(s, s.w.reservation.Endpoint()) > at {
			return fmt.Errorf("%v goes beyond its tenant's cap", s)
		}
		if most := w.mostOfUser(); most > 0 && w.sameUser(s) > most {
			return fmt.Errorf("%v goes beyond its user's cap", s)
		}
		if w.config.Queue.Order == fairqueue.EDF {
			for _, o := range w.subjects {
				if o.waits() && !o.wasHeld && o.w.queued.Tier == s.w.queued.Tier && o.kind.key() == s.kind.key() &&
					o.kind.class() == s.kind.class() && o.kind.lane == s.kind.lane && o.due.Before(s.due) {
					return fmt.Errorf("%v goes, which is due %v after %v of its flow", s, s.due.Sub(o.due), o)
				}
			}
		}
		for _, o := range w.subjects { // a requeued request returned to its old position
			if o == s {
				break
			}
			if o.waits() && !o.wasHeld && o.w.queued.Tier == s.w.queued.Tier &&
				o.kind.flow == s.kind.flow && w.fleet.Lane(o.kind.lane) == w.fleet.Lane(s.kind.lane) && w.sameClass(o, s) && !w.mayOvertake(s, o) {
				return fmt.Errorf("%v goes before one of its flow that came before it", s)
			}
		}
	}
	if lost == 1 && len(went) == 1 {
		if err := w.victimAgrees(went[0]); err != nil {
			return err
		}
	}
	if g.in.op != arrives {
		return nil
	}
	a := w.subjects[len(w.subjects)-1]
	if a.w.stage != StageSent && g.mustGo != nil {
		return g.mustGo
	}
	if a.w.stage == StageSent && g.stands != nil {
		return g.stands
	}
	return w.displacementAgrees(g, a)
}

// most returns the largest number of requests at an endpoint.
func (w *world) most(e Endpoint) int {
	switch {
	case w.config.Stock.Unbounded:
		return math.MaxInt
	case w.scene.upper > 0:
		return w.scene.upper
	}
	return w.scene.pool[w.level][e]
}

// lentAge reports whether a starved request of promoted s's tier had room before s took its place.
func (w *world) lentAge(s *subject) bool {
	old := func(o *subject) bool { return w.clock.Sub(w.queue.Arrived(&o.w.queued)) >= tick }
	if old(s) {
		return true
	}
	w.fleet.reserved[s.w.reservation.Endpoint()]--
	defer func() { w.fleet.reserved[s.w.reservation.Endpoint()]++ }()
	return slices.ContainsFunc(w.subjects, func(o *subject) bool {
		return o.w.queued.Tier == s.w.queued.Tier && o.waits() && old(o) &&
			w.fleet.pick(o.kind.lane, BelowUpper, w.full(o)) != NoEndpoint
	})
}

// victimAgrees: among the possible victims, the preemptor's victim is of the lowest tier, and the newest there.
func (w *world) victimAgrees(preemptor *subject) error {
	for _, v := range w.subjects {
		if !v.wasHeld || v.holds() || v.w.stage != StageWaiting && !v.preempted || v.told && v.last == StageEnded {
			continue
		}
		for _, o := range w.subjects {
			switch {
			case o == preemptor || !o.wasHeld || !w.preemptible(o) || !w.couldTake(preemptor, o, v):
			case w.before(v.w.queued.Tier, o.w.queued.Tier):
				return fmt.Errorf("%v is the victim, and %v is of a lower tier", v, o)
			case v.w.queued.Tier == o.w.queued.Tier && w.goesFirst(o, v):
				return fmt.Errorf("%v is the victim, and %v is newer or takes less", v, o)
			}
		}
	}
	return nil
}

// couldTake reports whether the preemptor, which took over v's lease, could have taken o's instead.
func (w *world) couldTake(preemptor, o, v *subject) bool {
	e := o.w.reservation.Endpoint()
	n, there := w.sameTenant(preemptor, NoEndpoint)-1, w.sameTenant(preemptor, e)
	held, tokens := w.fleet.held(e), int64(0)
	if preemptor.w.reservation.Endpoint() == e {
		there--
		held--
		tokens -= int64(preemptor.tokens)
	}
	if v.kind.key() == preemptor.kind.key() {
		if n++; v.wasAt == e {
			there++
		}
	}
	if v.wasAt == e {
		held++
		tokens += int64(v.tokens)
	}
	if o.kind.key() == preemptor.kind.key() {
		n, there = n-1, there-1
	}
	if most, users := w.mostOfUser(), w.sameUser(preemptor)-1; most > 0 {
		if ofOneUser(v, preemptor) {
			users++
		}
		if users >= most && !ofOneUser(o, preemptor) {
			return false
		}
	}
	total, at := w.mostOf(preemptor), w.config.MaxInFlightPerFlowPerBackend
	return (total == 0 || n < total) && (at == 0 || there < at) && w.fleet.CanTakeOver(preemptor.kind.lane, e) &&
		held <= w.most(e) && w.fleet.TakesTokens(e, tokens-int64(o.tokens))
}

// goesFirst reports whether a is preempted before b, of two possible victims of a tier.
func (w *world) goesFirst(a, b *subject) bool {
	if w.config.VictimOrder == LeastCostFirst && a.tokens != b.tokens {
		return a.tokens < b.tokens
	}
	return a.w.victimAge > b.w.victimAge
}

// displacementAgrees: only lower tiers are displaced, the lowest first; the guaranteed tier never is.
func (w *world) displacementAgrees(g glance, arrival *subject) error {
	rank := func(s *subject) int { return slices.Index(w.byRank, s.w.queued.Tier) }
	guaranteed := w.config.Queue.GuaranteedTop && w.config.Queue.TierMode == fairqueue.Strict
	if w.config.Queue.TierMode == fairqueue.Strict && arrival.told && arrival.outcome == OutcomeQueueFull &&
		g.lowest > rank(arrival) && !(guaranteed && rank(arrival) == 0) {
		return fmt.Errorf("%v is refused, and a lower tier waits", arrival)
	}
	for _, s := range w.subjects {
		if s.last != StageWaiting || !s.told || s.outcome != OutcomeDisplaced {
			continue
		}
		switch {
		case guaranteed && rank(s) == 0:
			return fmt.Errorf("%v of the guaranteed tier is displaced", s)
		case w.config.Queue.TierMode == fairqueue.Strict && rank(s) < g.lowest:
			return fmt.Errorf("%v is displaced, and a lower tier waits", s)
		case rank(s) < rank(arrival):
			return fmt.Errorf("%v displaces %v of a higher tier", arrival, s)
		}
	}
	return nil
}

// sameClass reports whether two requests that name the same class, or none, are in the same class: a reload may have
// come between them.
func (w *world) sameClass(o, s *subject) bool {
	return len(w.config.Queue.Classes) == 0 || o.reloaded == s.reloaded
}
