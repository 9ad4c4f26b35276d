package dispatch

import (
	"errors"
	"fmt"
	"slices"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/stock"
)

// The rules use the requests alone, without the controller's parking, lanes and indices: they state the expected
// results, not the method.

// waits reports whether the request is in the queue.
func (s *subject) waits() bool { return s.w.stage == StageWaiting }

// holds reports whether the request has a lease.
func (s *subject) holds() bool { return s.w.held.Held() }

// sameTenant counts the leases of the request's tenant, in all tiers and classes, at an endpoint or anywhere.
func (w *world) sameTenant(s *subject, e Endpoint) (n int) {
	for _, o := range w.subjects {
		if o.holds() && o.kind.key() == s.kind.key() && (e == NoEndpoint || o.w.reservation.Endpoint() == e) {
			n++
		}
	}
	return n + w.placesOf(s.kind.key(), e)
}

// sameUser counts the leases of the request's user.
func (w *world) sameUser(s *subject) (n int) {
	for _, o := range w.subjects {
		if o.holds() && ofOneUser(o, s) {
			n++
		}
	}
	return n
}

func ofOneUser(a, b *subject) bool {
	return a.kind.key() == b.kind.key() && a.kind.user() == b.kind.user()
}

// mostOfUser is the cap on a user's leases; 0: no cap.
func (w *world) mostOfUser() int {
	if len(w.config.Levels) < 2 {
		return 0
	}
	return w.config.Levels[1].MaxInFlight
}

// full returns the endpoints at which the tenant is at its cap.
func (w *world) full(s *subject) *EndpointSet {
	full := &EndpointSet{}
	if most := w.config.MaxInFlightPerFlowPerBackend; most > 0 {
		for e := range Endpoint(2) {
			if w.sameTenant(s, e) >= most {
				full.Add(e)
			}
		}
	}
	return full
}

// belowCaps reports whether the request's tenant may have one more lease somewhere in the request's lane.
func (w *world) belowCaps(s *subject) bool {
	if most := w.mostOf(s); most > 0 && w.sameTenant(s, NoEndpoint) >= most {
		return false
	}
	if most := w.mostOfUser(); most > 0 && w.sameUser(s) >= most {
		return false
	}
	full := w.full(s)
	return w.fleet.HasReady(s.kind.lane, nil) && (w.fleet.pick(s.kind.lane, Unbounded, full) != NoEndpoint ||
		!w.fleet.Meets(s.kind.lane, full))
}

// couldGo reports whether the request waits, and could go with room: its lane has a ready endpoint, its tenant is below
// its caps, and its endpoints are not too busy for it.
func (w *world) couldGo(s *subject) bool { return s.waits() && w.belowCaps(s) && !w.blocked(s) }

// awaitsRoom reports whether the request's tenant is at its cap at some endpoint of its lane, and the other endpoints
// are full.
func (w *world) awaitsRoom(s *subject) bool {
	full := w.full(s)
	return w.fleet.Meets(s.kind.lane, full) && w.fleet.pick(s.kind.lane, BelowUpper, full) == NoEndpoint
}

// fits reports whether the request can be placed now within a bound.
func (w *world) fits(s *subject, bound Bound) bool {
	return w.belowCaps(s) && !w.blocked(s) && w.fleet.pick(s.kind.lane, bound, w.full(s)) != NoEndpoint
}

// before reports whether tier a is above tier b.
func (w *world) before(a, b int) bool { return slices.Index(w.byRank, a) < slices.Index(w.byRank, b) }

// mayWait returns nil if a request has a valid reason to wait now.
func (w *world) mayWait(s *subject) error {
	tier := s.w.queued.Tier
	if w.someOverdue() { // the next event does the rest
		if in, asks := w.Next(w.clock); w.scene.batch == 0 || !asks || in > 0 {
			return fmt.Errorf("%v waits, the time of somebody is over, and the next event is not at once", s)
		}
		return nil
	}
	switch {
	case !w.config.Enabled:
		return fmt.Errorf("%v waits, and there is no queue", s)
	case !w.config.HoldWhenEmpty && !w.fleet.HasReady(s.kind.lane, nil):
		return fmt.Errorf("%v waits, and none is ready that it may use", s)
	case w.heldApart():
		return nil
	}
	if w.config.Stock.Unbounded && w.config.Stock.Tokens.Watermark == 0 && w.belowCaps(s) {
		return fmt.Errorf("%v waits for a stock without a bound", s)
	}
	if w.belowLower() && w.ledger.Available(tier) > 0 && w.fits(s, BelowLower) {
		return fmt.Errorf("%v waits, and could go", s)
	}
	if e := w.idles(s); e != NoEndpoint {
		return fmt.Errorf("%v waits, and endpoint %d has room for it, of which no more is reserved", s, e)
	}
	if e := w.lacksTokens(s); e != NoEndpoint {
		return fmt.Errorf("%v waits, and endpoint %d could do with more tokens", s, e)
	}
	if w.config.Queue.TierMode == fairqueue.Weighted {
		return nil
	}
	if w.starves(s) && w.promotes() && w.fits(s, BelowUpper) && (w.unlimited() || !w.overtakes(tier)) {
		return fmt.Errorf("%v is starved, and could go", s)
	}
	if v := w.victimOf(s); v != nil {
		return fmt.Errorf("%v waits, and could preempt %v", s, v)
	}
	return nil
}

// idles returns an endpoint for the request below its own lower bound in requests and tokens, or NoEndpoint. Other
// endpoints do not matter: full ones, overfull ones that have shrunk, or removed ones. Reserved stock is for the
// highest tier only.
func (w *world) idles(s *subject) Endpoint {
	reserves := slices.ContainsFunc(w.config.Tiers, func(t TierConfig) bool { return t.ReservedFloor > 0 || t.ReservedPerSlot > 0 })
	if reserves && s.w.queued.Tier != w.byRank[0] || !w.belowCaps(s) || w.blocked(s) || w.config.Stock.Unbounded {
		return NoEndpoint
	}
	for _, e := range w.fleet.ready(s.kind.lane) {
		most := w.scene.lower
		if w.scene.upper == 0 {
			most = w.most(e)
		}
		held, tokens := w.fleet.foreign[e], stock.Tokens(0)
		for _, o := range w.subjects {
			if o.holds() && o.w.reservation.Endpoint() == e {
				held++
				tokens += o.tokens
			}
		}
		bounded := w.config.Stock.Tokens.Watermark > 0
		if held < most && !w.full(s).Has(e) && (!bounded || tokens < w.config.Stock.Tokens.Lower) && (w.scene.limit == 0 || held < w.scene.limit) {
			return e
		}
	}
	return NoEndpoint
}

// lacksTokens returns an endpoint for the request with fewer tokens than its lower bound, in a pool with room for
// another request, or NoEndpoint. The other endpoint's tokens do not matter.
func (w *world) lacksTokens(s *subject) Endpoint {
	if w.config.Stock.Tokens.Watermark == 0 || !w.belowCaps(s) || w.ledger.Available(s.w.queued.Tier) == 0 {
		return NoEndpoint
	}
	var held [2]stock.Tokens
	for _, o := range w.subjects {
		if o.holds() {
			held[o.w.reservation.Endpoint()] += o.tokens
		}
	}
	for _, e := range w.fleet.ready(s.kind.lane) {
		if held[e] < w.config.Stock.Tokens.Lower {
			return e
		}
	}
	return NoEndpoint
}

// heldApart reports whether releases wait for their spacing, with the timer set to its end.
func (w *world) heldApart() bool {
	over := w.released.Add(w.config.ReleaseSpacing)
	in, asks := w.Next(w.clock)
	return w.spaced && w.atReady() > 0 && w.clock.Before(over) && asks && !w.clock.Add(in).After(over)
}

// atReady returns the number of requests at the ready endpoints.
func (w *world) atReady() (n int) {
	for _, e := range w.fleet.ready(reach("")) {
		n += w.fleet.held(e)
	}
	return n
}

// unlimited reports whether promotions have no budget.
func (w *world) unlimited() bool { return w.config.Queue.PromotionBudget >= 1_000_000 }

// starves reports whether the request's tier has a starved waiter with room below the upper bound.
func (w *world) starves(s *subject) bool {
	tier := s.w.queued.Tier
	if tier == w.byRank[0] {
		return false
	}
	for _, o := range w.subjects {
		if o.w.queued.Tier == tier && o.waits() && w.fits(o, BelowUpper) && w.clock.Sub(w.queue.Arrived(&o.w.queued)) >= tick {
			return true
		}
	}
	return false
}

// promotes reports whether the stock lets a starved head through.
func (w *world) promotes() bool {
	return w.belowUpper() && (w.unlimited() || w.promotedAtReady() < w.promotable())
}

// promotedAtReady returns the number of promoted leases at ready endpoints.
func (w *world) promotedAtReady() (n int) {
	for _, s := range w.subjects {
		if s.holds() && s.w.held.Promoted() && w.fleet.CanServe(reach(""), s.w.reservation.Endpoint()) {
			n++
		}
	}
	return n
}

// promotable returns the largest number of promoted leases.
func (w *world) promotable() int {
	return max(1, int(w.config.Queue.PromotionBudget*int64(w.ledger.Capacity())/1_000_000))
}

// overtakes reports whether a request of a higher tier could go.
func (w *world) overtakes(tier int) bool {
	return slices.ContainsFunc(w.subjects, func(o *subject) bool {
		return w.couldGo(o) && w.before(o.w.queued.Tier, tier)
	})
}

// victimOf returns a request that the waiting one should have preempted; nil: none.
func (w *world) victimOf(s *subject) *subject {
	tier := s.w.queued.Tier
	room, capped := w.belowUpper() && w.ledger.Available(tier) > 0, !w.belowCaps(s)
	if !w.preempts.Has(tier) || room && !capped || w.ledger.Headroom(tier) < 0 || !w.ledger.BelowUpperWithoutOne() {
		return nil
	}
	for _, v := range w.subjects {
		if w.preemptible(v) && w.before(tier, v.w.held.Tier()) && w.goesWithout(s, v) {
			return v
		}
	}
	return nil
}

// goesWithout reports whether the request could go to v's endpoint if v ended.
func (w *world) goesWithout(s, v *subject) bool {
	e := v.w.reservation.Endpoint()
	n, there := w.sameTenant(s, NoEndpoint), w.sameTenant(s, e)
	if v.kind.key() == s.kind.key() {
		n, there = n-1, there-1
	}
	if most := w.mostOfUser(); most > 0 && w.sameUser(s) >= most && !ofOneUser(s, v) {
		return false
	}
	total, at := w.mostOf(s), w.config.MaxInFlightPerFlowPerBackend
	return (total == 0 || n < total) && (at == 0 || there < at) && w.fleet.CanTakeOver(s.kind.lane, e) &&
		w.fleet.held(e) <= w.most(e) && w.fleet.TakesTokens(e, -int64(v.tokens))
}

// preemptible reports whether the request holds a preemptible lease.
func (w *world) preemptible(v *subject) bool {
	return v.holds() && !v.streamed && !v.promoted && !v.passedOn && (v.w.stage == StageGranted || v.w.stage == StageSent)
}

// check checks every rule after an input.
func (w *world) check(g glance) error {
	problems := []error{w.accountsAgree(), w.stagesAgree(g.in), w.stepAgrees(g)}
	for _, s := range w.subjects {
		if s.waits() {
			problems = append(problems, w.mayWait(s))
		}
	}
	return errors.Join(append(problems, w.endsAgree(), w.usageAgrees(), w.circuitsAgree(g), w.matchesAgree(), w.promptsAgree(), w.quotaAgrees(g))...)
}

// endsAgree: the placer's panics end only their own requests, and no request ends for lack of ready endpoints while one
// is ready.
func (w *world) endsAgree() error {
	for _, s := range w.subjects {
		switch {
		case !s.told || s.last == StageEnded:
		case (s.outcome == OutcomeInternal) && !w.fleet.isPoison(s.kind.lane):
			return fmt.Errorf("%v ends as internal", s)
		case s.outcome == OutcomeNoEndpoint && (w.fleet.HasReady(s.kind.lane, nil) || w.config.HoldWhenEmpty && w.config.Enabled):
			return fmt.Errorf("%v ends as no-endpoint, with %v", s, w.fleet.slots)
		}
	}
	return nil
}
