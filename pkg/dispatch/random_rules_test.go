package dispatch_test

import (
	"slices"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/stock"
)

// follow reads the verdicts of an event in order, and checks each against the state just before it. own is the event's
// arrival, or nil.
func (x *run) follow(own *request) {
	x.looksAtEngines()
	var heard []*request
	for _, w := range x.m.Verdicts() {
		heard = append(heard, x.owners[w])
	}
	for _, r := range heard { // first of all
		if o := r.w.Outcome(); r.phase == waiting && r.w.Stage() == dispatch.StageEnded &&
			(o == dispatch.OutcomeTTLExpired || o == dispatch.OutcomeDeadlineExceeded) {
			x.rejected(r)
		}
	}
	losers := x.losers(heard)
	again := false // somebody was released, and preempted in the same event
	for i, r := range heard {
		again = again || (r.phase == waiting || r == own) && r.w.Stage() == dispatch.StageWaiting || slices.Contains(heard[:i], r)
	}
	preempts := len(losers) > 0 || again
	mustGo := own != nil && x.admitted(own, preempts)
	if again {
		x.released = time.Time{} // that release came to nothing
	}
	at := map[*request]dispatch.Endpoint{}
	for _, r := range losers {
		at[r] = r.at
		x.loses(r)
	}
	for _, r := range heard {
		switch {
		case r.phase != waiting: // heard already
		case r.w.Stage() == dispatch.StageEnded:
			x.rejected(r)
		case r.w.Stage() == dispatch.StageGranted:
			if !preempts {
				x.granted(r)
			}
			x.goes(r)
			if again && !r.promoted {
				x.shares.outOfTurn(r)
				x.turns.spoil(r.w.Tier())
			}
		}
	}
	for _, r := range losers {
		x.preempted(r, at[r], heard, own)
	}
	x.circuits()
	if mustGo && own.phase != running && x.mayGo(own, true) {
		x.failf("at once: %v does not go at once, and nobody stood before it: %+v", own, x.roomFor(own))
	}
}

// losers returns the requests that have lost their leases.
func (x *run) losers(heard []*request) (losers []*request) {
	for _, r := range x.running {
		switch r.w.Stage() {
		case dispatch.StageWaiting, dispatch.StageEnded:
			losers = append(losers, r)
		case dispatch.StageGranted: // it may have another one
			if !r.sent && slices.Contains(heard, r) {
				losers = append(losers, r)
			}
		default:
		}
	}
	return losers
}

// loses takes the lease of a preempted request. Its fate depends on whether it was sent.
func (x *run) loses(r *request) {
	if r.streams || r.promoted || r.passesOn {
		x.failf("preemption: %v loses its lease: streaming %t, promoted %t, passed on %t", r, r.streams, r.promoted, r.passesOn)
	}
	x.counts.preemptions++
	x.note("%v is preempted at %d", r, r.at)
	x.leaves(r)
	x.shares.refunded(r)
	switch ended := r.w.Stage() == dispatch.StageEnded; {
	case ended && r.sent:
		x.rejected(r)
	case !ended && !r.sent:
		x.released = time.Time{}
		x.waits(r)
	case ended && r.w.Outcome() == dispatch.OutcomeTTLExpired || r.w.Outcome() == dispatch.OutcomeDeadlineExceeded:
		x.rejected(r) // it went back, and its time was over
	default:
		x.failf("preemption: %v was sent: %t, has ended: %t", r, r.sent, ended)
	}
}

// preempted: the lease and its endpoint went to a request of a higher tier.
func (x *run) preempted(r *request, at dispatch.Endpoint, heard []*request, own *request) {
	for _, taker := range append(heard, own) {
		if taker != nil && taker != r && taker.phase == running && taker.at == at && x.above(taker, r) {
			x.shares.outOfTurn(taker)
			x.turns.spoil(taker.w.Tier())
			return
		}
	}
	x.failf("preemption: %v lost its lease at %d, and nobody of a higher tier has it", r, at)
}

// admitted checks the decision on an arrival. preempts means that another request has lost a lease. mustGo means that
// no request is before it and that there is room.
func (x *run) admitted(r *request, preempts bool) (mustGo bool) {
	free := !x.config.Enabled || r.passesOn
	var before *request // somebody who waits and goes before it
	stands, starves := false, false
	for _, o := range x.waiting {
		stands = stands || x.mightGo(o) && (!x.strict() || !x.above(r, o))
		if x.couldGo(o) && (!x.strict() || !x.above(r, o)) {
			before = o
		}
		starves = starves || x.starves(o)
	}
	switch r.w.Stage() {
	case dispatch.StageSent:
		if before != nil && !free {
			x.failf("overtaking: %v goes at once, and %v waits and could go", r, before)
		}
		if !free && !preempts && !x.mayGo(r, true) {
			x.failf("bounds: %v goes at once, to %d, beyond them: %+v", r, r.w.Granted().Endpoint(), x.roomFor(r))
		}
		x.lands(r)
		x.counts.bypasses++
		r.passedOn = free
		x.takes(r)
		r.sent = true
		if !free {
			x.shares.bypassed(r)
		}
		x.note("%v goes at once to %d", r, r.at)
		x.goesOn(r)
		return false
	case dispatch.StageEnded:
		x.limitedRightly(r)
		if x.rejected(r); r.w.Outcome() == dispatch.OutcomeQuotaExceeded {
			return false
		}
	default:
		if free {
			x.failf("queue: %v waits, and is not to be queued", r)
		}
		x.limitedRightly(r)
		x.waits(r)
	}
	return !stands && !free && !starves && x.mayGo(r, true)
}

// starves reports whether a waiter is older than its tier's threshold and has room below the upper bound.
func (x *run) starves(r *request) bool {
	if !x.strict() || x.ranks[r.w.Tier()] == 0 || x.config.Queue.PromotionBudget == 0 {
		return false
	}
	for _, t := range x.config.Queue.Tiers {
		if x.named[t.Name] == r.w.Tier() {
			return t.StarvationThreshold > 0 && x.now.Sub(r.came) >= t.StarvationThreshold && x.mayBePromoted(r)
		}
	}
	return true // of a tier that drains, of which the threshold is not known any more
}

// lands checks the destination of a request.
func (x *run) lands(r *request) {
	e := x.endpoint(r.w.Granted().Endpoint())
	if e == nil || !x.serves(r, e) {
		x.failf("lane: %v goes to %d, which does not serve it", r, r.w.Granted().Endpoint())
	}
}

// granted checks the release of a waiter.
func (x *run) granted(r *request) {
	if !x.config.Enabled {
		x.lands(r)
		return
	}
	promoted := r.w.Granted().Promoted()
	switch {
	case !x.now.Before(r.expires):
		x.failf("expiry: %v is granted, and its time was over %v ago", r, x.now.Sub(r.expires))
	case promoted && !x.mayBePromoted(r):
		x.failf("bounds: %v is promoted beyond the upper bound: %+v", r, x.roomFor(r))
	case !promoted && !x.mayGo(r, false):
		x.failf("bounds: %v is released beyond them: %+v, available %d", r, x.roomFor(r), x.available(r.w.Tier()))
	case x.blocked(r):
		x.failf("busy: %v is released, and its engines are too busy for its class", r)
	case x.heldApart():
		x.failf("spacing: %v is released %v after another", r, x.now.Sub(x.released))
	}
	x.lands(r)
	if e := x.endpoint(r.w.Granted().Endpoint()); x.full(r, e.ID) || !x.opens(e) {
		x.failf("cap: %v goes to %d, which takes no more, or no more of its flow", r, e.ID)
	}
	if promoted {
		x.mayPromote(r)
	}
	ordered := x.linesByArrival(r)
	x.overtakes(r, promoted)
	for _, o := range x.waiting {
		switch {
		case o == r:
		case x.strict() && !promoted && x.above(o, r) && x.couldHaveGone(o):
			x.failf("priority: %v goes before %v, which is of a higher tier and could go there", r, o)
		case ordered && x.sameLine(o, r) && o.w.Number() < r.w.Number():
			x.failf("order: %v goes before %v of its flow, which came before it", r, o)
		case x.orderOf(r) == fairqueue.WSPT && x.sameLine(o, r) && x.asUrgent(o, r) && o.cost < r.cost:
			x.failf("order: %v of cost %d goes before %v of its flow, of cost %d", r, r.cost, o, o.cost)
		case x.orderOf(r) == fairqueue.EDF && x.sameLine(o, r) && x.asUrgent(o, r) && o.due().Add(time.Microsecond).Before(r.due()):
			x.failf("order: %v goes before %v of its flow, of which the deadline is earlier", r, o)
		}
	}
}

// byArrival reports whether the requests of a request's flow go in the order of their arrival, whosever they are.
func (x *run) byArrival(r *request) bool { return x.config.Queue.Levels <= 1 && x.linesByArrival(r) }

// orderOf is the order of the requests of a request's flow.
func (x *run) orderOf(r *request) fairqueue.Order {
	for _, c := range x.config.Queue.Classes {
		if c.Name == r.class {
			return c.Order
		}
	}
	if r.class == "" && len(x.config.Queue.Classes) == 0 {
		return x.config.Queue.Order
	}
	return fairqueue.FCFS // of a class that drains it is not known
}

// asUrgent reports whether two requests have equal priorities.
func (x *run) asUrgent(a, b *request) bool {
	p, q := a.path(), b.path()
	return p.Strict == q.Strict && p.Priority == q.Priority
}

// linesByArrival reports that of the requests of one user.
func (x *run) linesByArrival(r *request) bool {
	if x.config.Queue.Priorities {
		return false
	}
	for _, c := range x.config.Queue.Classes {
		if c.Name == r.class {
			return c.Order == fairqueue.FCFS
		}
	}
	return len(x.config.Queue.Classes) == 0 && r.class == "" && x.config.Queue.Order == fairqueue.FCFS
}

// mayPromote checks that a promotion is allowed: its tier has a starved waiter, and the promoted leases are few.
func (x *run) mayPromote(r *request) {
	if !slices.ContainsFunc(x.waiting, func(o *request) bool { return o.w.Tier() == r.w.Tier() && x.starves(o) }) {
		x.failf("promotion: %v is promoted, and nobody of its tier is starved for whom there is room", r)
	}
	held := 0
	for _, o := range x.running {
		if e := x.endpoint(o.at); o.promoted && e != nil && e.Ready {
			held++
		}
	}
	budget := x.config.Queue.PromotionBudget
	if budget < 1_000_000 && held >= max(1, int(budget*int64(x.capacity())/1_000_000)) {
		x.failf("promotion: %v is promoted, and %d promoted requests run", r, held)
	}
	x.counts.promotions++
}

// sameLine reports whether two requests are of one flow in one class and may use the same endpoints.
func (x *run) sameLine(a, b *request) bool {
	return a.w.Tier() == b.w.Tier() && a.class == b.class && a.load.flow == b.load.flow && slices.Equal(a.path().Under, b.path().Under) &&
		a.lane == b.lane
}

// goes follows a release.
func (x *run) goes(r *request) {
	x.counts.grants++
	if r.wasHeld {
		x.counts.unblocked++
	}
	x.shares.granted(r)
	x.turns.granted(r, r.w.Granted().Promoted())
	x.takes(r)
	x.turns.observe()
	x.turns.taken(r)
	x.released = x.now
	x.note("%v is released to %d", r, r.at)
	x.goesOn(r)
}

// rules checks the state between two events: the accounts, and that every waiting request has a reason to wait.
func (x *run) rules() {
	x.accounts()
	for _, r := range x.waiting {
		x.waitsRightly(r)
	}
	x.shares.observe()
	x.turns.observe()
}

// accounts compares the machine's accounts and the board's with the requests.
func (x *run) accounts() {
	s := x.m.State()
	tokens, promoted := stock.Tokens(0), 0
	queued, inflight := map[int]int{}, map[int]int{}
	for _, r := range x.waiting {
		queued[r.w.Tier()]++
	}
	at, unread := [mostEndpoints]int{}, [mostEndpoints]int64{}
	for _, r := range x.running {
		tokens += r.holds
		inflight[r.w.Granted().Tier()]++
		at[r.at]++
		unread[r.at] += r.reads
		if r.promoted {
			promoted++
		}
	}
	if s.Queued != len(x.waiting) || s.Stock != len(x.running) || s.Tokens != tokens || s.PromotedHeld != promoted || s.Panics != 0 {
		x.failf("accounts: %d wait, %d run with %d tokens, %d promoted: %+v", len(x.waiting), len(x.running), tokens, promoted, s)
	}
	if x.capacity() != s.Capacity {
		x.failf("capacity: %d, the machine has %d", x.capacity(), s.Capacity)
	}
	for id, n := range at {
		if x.board.Stock(dispatch.Endpoint(id)) != n {
			x.failf("accounts: %d run at endpoint %d, the board has %d", n, id, x.board.Stock(dispatch.Endpoint(id)))
		}
		if share, known := x.board.ShareOf(dispatch.Endpoint(id)); known && share.Unread != unread[id] {
			x.failf("accounts: endpoint %d has %d tokens to read, the board says %d", id, unread[id], share.Unread)
		}
	}
	for _, t := range x.m.Tiers(nil) {
		if t.Queued != queued[t.ID] || t.InFlight != inflight[t.ID] {
			x.failf("accounts: tier %s has %d waiting and %d running: %+v", t.Name, queued[t.ID], inflight[t.ID], t)
		}
	}
}

// waitsRightly checks that a waiter has a reason to wait.
func (x *run) waitsRightly(r *request) {
	if !r.wasHeld && x.scene.busies && x.blocked(r) {
		r.wasHeld = true
		x.counts.blocked++
	}
	switch {
	case !x.config.Enabled:
		x.failf("conserving: %v waits, and there is no queue", r)
	case !x.now.Before(r.expires):
		x.failf("expiry: %v waits, and its time was over %v ago", r, x.now.Sub(r.expires))
	case !x.config.HoldWhenEmpty && !x.roomFor(r).ready:
		x.failf("conserving: %v waits, and no endpoint is ready that it may use", r)
	case !x.mayGo(r, false):
	case x.heldApart():
		if in, _ := x.m.Next(x.now); x.now.Add(in).After(x.released.Add(x.config.ReleaseSpacing)) {
			x.failf("timer: %v waits for the spacing of releases, and nobody is called then", r)
		}
	default:
		x.failf("conserving: %v waits and could go: %+v", r, x.roomFor(r))
	}
}

// isAtRest checks that all accounts are empty after the last request.
func (x *run) isAtRest() {
	s := x.m.State()
	if len(x.waiting)+len(x.running)+s.Queued+s.Stock+int(s.Tokens)+s.LiveFlows+s.PromotedHeld+s.Flows+x.board.Total() != 0 {
		x.failf("rest: %d wait and %d run: %+v", len(x.waiting), len(x.running), s)
	}
	if x.scene.illness != nil {
		x.mended()
	}
	for i, share := range x.board.Shares(nil) {
		if share.InFlight != 0 || share.Tokens != 0 {
			x.failf("rest: endpoint %d: %+v", i, share)
		}
	}
	for r := range x.all() {
		if r.phase != ended {
			x.failf("outcome: %v has none", r)
		}
	}
}

// all returns all arrived requests, in no particular order.
func (x *run) all() func(yield func(*request) bool) {
	return func(yield func(*request) bool) {
		for _, r := range x.owners {
			if !yield(r) {
				return
			}
		}
	}
}
