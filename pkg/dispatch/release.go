package dispatch

import (
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/stock"
)

// release releases waiters while the band, the reservations and the placer permit one.
func (m *Machine) release() {
	if !m.config.Enabled {
		m.releaseEverybody()
		return
	}
	m.spaced = false
	for m.preemptor == nil {
		m.tidy()
		if m.queue.Len() == 0 {
			return
		}
		allowed := fairqueue.Allowed{Promote: m.queue.Guarded() && m.mayPromote()}
		if m.belowLower() {
			allowed.Tiers = fairqueue.TierSet(m.ledger.AvailableTo())
		}
		if allowed.Tiers == 0 && !allowed.Promote {
			m.findPreemptor()
			return
		}
		next := m.queue.Peek(m.now, allowed)
		switch {
		case next.Request == nil:
			m.findPreemptor()
			return
		case m.overdue(waiterOf(next.Request)):
			if !m.expireOne(waiterOf(next.Request)) {
				return
			}
			continue
		case next.Promoted && m.overdue(waiterOf(next.Starved)): // it no longer lends its age
			if !m.expireOne(waiterOf(next.Starved)) {
				return
			}
			continue
		case next.Promoted && !m.countsAsStarved(next.Starved):
			continue
		case m.tooSoon():
			m.spaced = true
			m.swapAny()
			return
		}
		m.counts.attempts++
		m.place(&next)
	}
}

// tooSoon reports whether the last release is more recent than Config.ReleaseSpacing. It is false while the ready
// backends are empty.
func (m *Machine) tooSoon() bool {
	return m.config.ReleaseSpacing > 0 && m.ledger.AtReady() > 0 && m.now.Before(m.released.Add(m.config.ReleaseSpacing))
}

// mayPromote reports whether the stock permits the release of a starved head: it is below the upper bound, and the
// promoted leases at ready backends are below max(1, budget × capacity).
func (m *Machine) mayPromote() bool {
	if !m.belowUpper() {
		return false
	}
	budget := m.config.Queue.PromotionBudget
	limit := max(1, int(budget*int64(m.ledger.Capacity())/1_000_000))
	return budget >= 1_000_000 || m.ledger.PromotedAtReady() < limit
}

// place places the candidate and grants it, or parks its flow, closes its lane, or makes it the preemptor.
func (m *Machine) place(next *fairqueue.Candidate) {
	w := waiterOf(next.Request)
	m.asking = w
	switch full := m.fullFor(w.flow.tenant); {
	case m.atCap(w.flow.tenant):
		m.park(w)
	case m.userAtCap(w):
		m.queue.ParkUnder(&w.queued)
	default:
		bound := BelowLower
		if next.Promoted {
			bound = BelowUpper
		}
		if m.matches && !next.Promoted {
			w, full = m.match(next, w, full)
		}
		if r := m.placer.Place(w.placement, bound, full); !r.Empty() {
			m.take(w, r, next.Promoted)
			m.grant(next, w)
			break
		}
		above := !next.Promoted && m.placer.HasRoom(w.placement, BelowUpper, nil)
		forIt := above && (full == nil || m.placer.HasRoom(w.placement, BelowUpper, full))
		switch {
		case !next.Promoted && !forIt && m.victimOf(w) != nil:
			m.preemptor = w
		case full != nil && m.placer.HasRoom(w.placement, bound, nil):
			m.park(w)
		default:
			m.closeLane(w, above)
		}
	}
	m.asking = nil
	m.answered(w)
}

// answered notes that the placer has not panicked for w.
func (m *Machine) answered(w *Waiter) {
	if t := w.rare; t != nil && m.now.After(t.struck) {
		t.panics = 0 // not consecutive
	}
}

// take gives w a lease for the placer's reservation r.
func (m *Machine) take(w *Waiter, r Reservation, promoted bool) {
	if w.asksFacts() {
		m.noteFacts(w, promoted)
	}
	l := (*Lease)(w)
	l.reservation, m.mayTurn = r, m.busies
	l.held = stock.NewLease(w.queued.Tier, l.held.Tokens(), promoted)
	m.ledger.Take(&l.held, stock.BackendID(r.Endpoint()))
	switch {
	case m.config.Circuits:
		m.began(l)
	case m.times:
		m.stamp(l)
	default:
		l.begun = 0
	}
	m.placer.AddTokens(r.Endpoint(), int64(l.held.Tokens()))
	m.flows.addLease(w.flow, l.held.Tokens())
	if m.users.on {
		m.users.addLease(userOf(w), l.held.Tokens())
	}
	m.countLease(l)
	if !promoted && w.way != passedOn && m.mayBeVictim(l.held.Tier()) {
		l.preemptible = true
		m.victims.addNewest(l)
		m.addedVictim(l.Endpoint())
	}
}

// grant removes the candidate, which has its lease, from the queue.
func (m *Machine) grant(next *fairqueue.Candidate, w *Waiter) {
	w.queued.CountAlsoIn(m.countsIn(w, w.reservation.Endpoint()))
	if m.matches {
		m.noteOvertaken(next, w)
	}
	m.queue.Pop(*next)
	m.uncountWaiter(w)
	m.counts.successes++
	if next.Promoted {
		m.counts.promotions[next.Request.Tier]++
	}
	m.released = m.now
	m.pace.drained(m.sinceEpoch(), m.ledger.Capacity())
	w.flow.pace.drained(m.sinceEpoch(), m.ledger.Capacity())
	if u := userOf(w); u != nil {
		u.pace.drained(m.sinceEpoch(), m.ledger.Capacity())
	}
	w.stage = StageGranted
	w.waited = max(0, m.queue.Waited(m.now, &w.queued)) // the clock may have been read before the lock was acquired
	m.verdicts = append(m.verdicts, w)
	m.touchOf(w)
}

// settle settles the lease of w and releases its stock, its reserved endpoint and its count against the flow's caps.
func (m *Machine) settle(w *Waiter) {
	l := (*Lease)(w)
	if !m.ledger.Settle(&l.held) {
		return
	}
	if l.ageNumber != 0 {
		m.left(l)
	}
	m.addTokensAt(l, -l.held.Tokens())
	m.victims.remove(l)
	if l.counted {
		m.uncountLease(l)
	}
	m.freeReservation(w.placement, l.reservation)
	w.flow.removeLease(l.held.Tokens())
	m.flows.restIfIdle(w.flow)
	if m.users.on {
		m.uncountUsersLease(l)
	}
	m.touchOf(w)
}

// releaseEverybody implements Enabled false: all waiters go, in the queue's order and charged, regardless of bounds,
// caps and spacing. Waiters without a ready endpoint end with OutcomeNoEndpoint.
func (m *Machine) releaseEverybody() {
	m.queue.OpenLanes() // the caps are off already: see capped
	everybody := fairqueue.Allowed{Tiers: fairqueue.AllTiers}
	for next := m.queue.Peek(m.now, everybody); next.Request != nil; next = m.queue.Peek(m.now, everybody) {
		w := waiterOf(next.Request)
		if m.overdue(w) {
			m.turnAway(w, m.overdueOutcome(w))
			continue
		}
		m.asking = w
		if r := m.placer.Place(w.placement, AnyReady, nil); !r.Empty() {
			m.take(w, r, false)
			m.grant(&next, w)
		} else {
			m.turnAway(w, OutcomeNoEndpoint)
		}
		m.asking = nil
	}
}

// mostExpired is the number of overdue waiters that the sweep of one event ends; its release may end as many more. The
// rest are due in the next event, which the timer causes at once. So the lock is free in between, however many expire
// together.
const mostExpired = 256

// expire ends the waiters whose TTL or deadline has passed, the earliest first, up to the event's limit.
func (m *Machine) expire() {
	if m.pending.overdue = m.queue.Overdue(m.now); !m.pending.overdue {
		return
	}
	m.expired, m.pending.overdue = m.queue.CleanupExpired(m.now, m.mostExpired-m.pending.expired, m.expired[:0])
	m.pending.expired += len(m.expired)
	for i, r := range m.expired {
		w := waiterOf(r)
		m.uncountWaiter(w)
		m.end(w, m.overdueOutcome(w))
		m.expired[i] = nil
	}
}

// overdue reports whether a waiter's TTL or deadline has passed, so that it must not be dispatched. The event's sweep
// may have left some.
func (m *Machine) overdue(w *Waiter) bool {
	return m.pending.overdue && m.queue.Expired(m.now, &w.queued)
}

// expireOne ends the overdue waiter whose turn it is, unless the event has reached its limit.
func (m *Machine) expireOne(w *Waiter) (may bool) {
	if m.pending.expired >= 2*m.mostExpired {
		return false
	}
	m.pending.expired++
	m.turnAway(w, m.overdueOutcome(w))
	return true
}

func (m *Machine) overdueOutcome(w *Waiter) Outcome {
	if m.queue.TTLOver(m.now, &w.queued) {
		return OutcomeTTLExpired
	}
	return OutcomeDeadlineExceeded
}
