package dispatch

import (
	"errors"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/stock"
)

// offer initialises w, which is zero, for an arrival.
func (m *Machine) offer(w *Waiter, a *Arrival) {
	m.arrived++
	w.number, w.owner, w.placement = m.arrived, a.Owner, a.Placement
	r := &w.queued // field by field, since a literal would be copied
	r.Flow, r.Path, r.Cost, r.Owner = a.Flow, a.Path, max(1, a.Cost), w
	if !a.Deadline.IsZero() {
		r.Within = fairqueue.Until(m.now, a.Deadline)
	}
	if a.TierName != "" {
		r.Tier = m.queue.TierID(a.TierName)
	} else {
		r.Tier = m.tierOf(a.Tier)
	}
	tokens := a.Tokens
	if tokens < 1 {
		tokens = stock.Tokens(r.Cost)
	}
	w.held = stock.NewLease(r.Tier, tokens, false)
	if a.Tenant != "" {
		m.meter(w, a)
	}
	if a.Explain {
		w.Explain()
		w.rare.facts.Arrived = m.now
	}
}

// decide decides an arrival. A panic in it ends only this request.
func (m *Machine) decide(w *Waiter) {
	switch {
	case m.draining:
		m.reject(w, OutcomeDraining)
	case w.way == passedOn:
		m.passOn(w)
	case !m.withinQuota(w):
		m.reject(w, OutcomeQuotaExceeded)
	case !m.config.Enabled:
		if !m.overRate(w) {
			m.passOn(w)
		}
	default:
		m.admit(w)
	}
	m.asking = nil
}

// admit decides an arrival: bypass, reject or enqueue. It leaves w sent, ended or waiting.
func (m *Machine) admit(w *Waiter) {
	if m.queue.Len() > 0 {
		m.expire()
	}
	w.queued.Lane = m.laneOf(w)
	if m.shut.Len() > 0 {
		m.arrivesBeside(w)
		m.relent(w)
	}
	m.countWaiter(w)
	if len(m.config.Roles) > 0 {
		m.takeRole(w)
	}
	m.asking = w
	blocked := m.blocked(w)
	bypass := !blocked && m.mayBypass(w)
	m.asking = w
	if bypass && m.takeAtOnce(w) {
		if m.queue.Len() > 0 {
			w.queued.CountAlsoIn(m.countsIn(w, w.reservation.Endpoint()))
		}
		m.queue.Bypassed(m.now, &w.queued)
		m.uncountWaiter(w)
		m.touchOf(w)
		w.stage, w.way = StageSent, atOnce
		return
	}
	ready := m.ledger.Ready() > 0 && m.placer.HasReady(w.placement, nil)
	switch {
	case !ready && !m.config.HoldWhenEmpty:
		m.uncountWaiter(w)
		m.reject(w, OutcomeNoEndpoint)
		return
	case !m.config.EnqueueAll && !m.queue.Highest(w.queued.Tier):
		m.uncountWaiter(w)
		m.noteShed(w)
		m.reject(w, OutcomeShed)
		return
	}
	if m.limited {
		if err := m.queue.Limited(&w.queued, m.placer.Known(w.placement)); err != nil {
			m.refuse(w, err)
			return
		}
	}
	if !m.push(w) {
		return
	}
	switch {
	case !ready:
		m.queue.CloseLane(&w.queued, fairqueue.LaneDead)
	case blocked:
		m.queue.CloseLane(&w.queued, fairqueue.LaneBlocked)
	}
	m.touchOf(w)
}

// passOn places a request regardless of the band and the queue; it only needs a ready endpoint.
func (m *Machine) passOn(w *Waiter) {
	m.asking = w
	r := m.placer.Place(w.placement, AnyReady, nil)
	if r.Empty() {
		m.reject(w, OutcomeNoEndpoint)
		return
	}
	m.countWaiter(w)
	if len(m.config.Roles) > 0 {
		m.takeRole(w)
	}
	m.take(w, r, false)
	m.uncountWaiter(w)
	m.touchOf(w)
	w.stage, w.way = StageSent, max(w.way, atOnce)
}

// takeAtOnce takes a lease for an arrival with no request ahead of it, from free room or by preemption.
func (m *Machine) takeAtOnce(w *Waiter) bool {
	if t := w.flow.tenant; !m.atCap(t) && !m.userAtCap(w) && m.belowUpper() && m.ledger.Available(w.queued.Tier) > 0 {
		if r := m.placer.Place(w.placement, BelowUpper, m.fullFor(t)); !r.Empty() {
			m.take(w, r, false)
			return true
		}
	}
	v := m.victimOf(w)
	if v != nil {
		m.takeOver(w, v)
	}
	return v != nil
}

// push puts w into the queue, or rejects it.
func (m *Machine) push(w *Waiter) bool {
	displaced, err := m.queue.Push(m.now, &w.queued)
	if displaced != nil {
		d := waiterOf(displaced)
		m.counts.displaced[displaced.Tier]++
		m.uncountWaiter(d)
		m.noteDisplaced(d)
		m.end(d, OutcomeDisplaced)
	}
	if err != nil {
		m.refuse(w, err)
		return false
	}
	if m.queue.Len() == 1 {
		m.pace.beginWait(m.sinceEpoch())
	}
	if w.flow.waiting == 1 {
		w.flow.pace.beginWait(m.sinceEpoch())
	}
	if u := userOf(w); u != nil && u.waiting == 1 {
		u.pace.beginWait(m.sinceEpoch())
	}
	w.stage = StageWaiting
	w.wasQueued = true
	m.waitsIn(w)
	m.requestSearch(w)
	return true
}

// refuse rejects an arrival with an error of the queue.
func (m *Machine) refuse(w *Waiter, err error) {
	o := outcomeOf(err)
	if limit := new(fairqueue.LimitError); o == OutcomeInternal || errors.As(err, &limit) {
		w.rarely().failure = err
	}
	if errors.Is(err, fairqueue.ErrInsufficientCapacityUnder) {
		w.rarely().userFull = true
	}
	if o != OutcomeInternal {
		m.noteFull(w, err)
	}
	m.reject(w, o)
	m.uncountWaiter(w)
}

// reject ends a request that gets no lease.
func (m *Machine) reject(w *Waiter, o Outcome) {
	if w.asksFacts() {
		m.noteFacts(w, false)
	}
	w.stage, w.outcome = StageEnded, o
	if o == OutcomeTTLExpired {
		m.noteCap(w)
	}
	w.retry = m.retryAfter(w, o)
	if s, ok := m.refund(w); ok {
		w.rare.standing = s
	}
	if w.wasQueued {
		w.waited = max(0, m.queue.Waited(m.now, &w.queued))
	}
}

// end rejects a waiter, and adds it to the verdicts.
func (m *Machine) end(w *Waiter, o Outcome) {
	m.reject(w, o)
	m.verdicts = append(m.verdicts, w)
}

// turnAway removes a waiter from the queue and rejects it.
func (m *Machine) turnAway(w *Waiter, o Outcome) {
	m.queue.Remove(&w.queued)
	m.end(w, o)
	m.uncountWaiter(w)
}
