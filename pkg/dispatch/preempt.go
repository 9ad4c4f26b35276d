package dispatch

import (
	"slices"
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// mayBeVictim reports whether a lease of this tier, granted in order, could ever be preempted.
func (m *Machine) mayBeVictim(tier int) bool {
	if m.config.Queue.TierMode == fairqueue.Weighted {
		return false
	}
	for _, id := range m.byRank {
		if id == tier {
			return false
		}
		if m.preempts.Has(id) {
			return true
		}
	}
	return false
}

// victimOf returns the lease that w may take over, or nil. The caller has found that nothing is available to w. It
// returns nil if the victim's stock would not suffice, because the capacity is exceeded or the stock is reserved for a
// higher tier, or if no victim is at an endpoint that w may use.
func (m *Machine) victimOf(w *Waiter) *Lease {
	tier := w.queued.Tier
	m.barred = m.barred[:0]
	switch {
	case m.victims.n == 0 || !m.preempts.Has(tier) || m.config.Queue.TierMode == fairqueue.Weighted:
		return nil
	case m.ledger.Headroom(tier) < 0 || !m.ledger.BelowUpperWithoutOne():
		return nil
	}
	return m.victimIn(w, m.note(w))
}

// victimIn is victimOf in the lane of w: the first lease in victim order, of the lowest tier with a victim, whose end
// makes its endpoint take w. With w's tenant at a cap the victim must be the tenant's, and with w's user at a cap the
// user's. A vain search is noted for the lane, unless the reason is the caps of w's own tenant.
func (m *Machine) victimIn(w *Waiter, n *laneNote) *Lease {
	tier, t, holder := w.queued.Tier, w.flow.tenant, m.holderOf(w)
	full, capped := m.fullFor(t), holder != t || m.atCap(t)
	anybodys, owns := !capped && !n.searchedInVain(tier), (capped || full != nil) && m.ownsVictim(holder)
	if n.overBound.Has(tier) {
		if owns {
			n.awaitRoom(holder, tier)
		}
		return nil
	}
	if !anybodys && !owns {
		return nil
	}
	want := wantedVictim{
		at: func(e Endpoint) bool {
			switch {
			case !m.placer.CanServe(w.placement, e):
				return false
			case full.Has(e):
				capped = true
				m.barred = append(m.barred, e)
				return false
			}
			return true
		},
		enough: m.takesWithout,
	}
	for i := len(m.byRank) - 1; i >= 0 && m.byRank[i] != tier; i-- {
		var v *Lease
		if anybodys {
			v = m.victims.first(m.byRank[i], n, &want)
		}
		if owns {
			if own := m.ownVictim(w, m.byRank[i]); own != nil && (v == nil || m.victims.before(own, v)) {
				v = own
			}
		}
		switch {
		case v == nil:
			continue
		case !m.placer.CanTakeOver(w.placement, v.Endpoint()):
			n.overBound = n.overBound.With(tier) // this holds for the whole lane
			m.lanes.heed(n)
			if owns {
				n.awaitRoom(holder, tier)
			}
			return nil
		}
		return v
	}
	if anybodys && !capped {
		n.noVictim = n.noVictim.With(tier)
		m.lanes.heed(n)
	}
	return nil
}

// takeOver gives v's endpoint and stock to w in one step: the stock does not change. If v's destination was already
// sent, its stream gets a verdict; otherwise v returns to its place in the queue, and its client notices nothing.
func (m *Machine) takeOver(w *Waiter, v *Lease) {
	loser, freed, sent := v.Waiter(), v.reservation, v.stage != StageGranted
	r := m.placer.PlaceAt(w.placement, v.Endpoint()) // first, so that a panic in it leaves v untouched
	w.reservation = r
	m.counts.preempted[[2]int{v.held.Tier(), w.queued.Tier}]++
	if !sent {
		m.countWaiterAgain(loser) // first, so that its flow stays live
	}
	// v is settled, and its request's outcome is known, before any charge is corrected.
	if v.ageNumber != 0 {
		m.left(v)
	}
	m.victims.remove(v)
	m.ledger.Settle(&v.held)
	m.addTokensAt(v, -v.held.Tokens())
	if v.counted {
		m.uncountLease(v)
	}
	m.free(loser.placement, freed)
	loser.flow.removeLease(v.held.Tokens())
	m.flows.restIfIdle(loser.flow)
	if m.users.on {
		m.uncountUsersLease(v)
	}
	if sent {
		loser.stage, loser.outcome = StageEnded, OutcomePreempted
		loser.retry = m.retryAfter(loser, OutcomePreempted)
		m.refund(loser)
		m.verdicts = append(m.verdicts, loser)
		m.follow(loser)
		m.queue.Refund(m.now, &loser.queued) // its client gets nothing for the engine's work
		m.queue.CompletedAt(m.now, &loser.queued)
	} else {
		m.follow(loser)
		loser.stage, v.reservation = StageWaiting, Reservation{}
		m.queue.Requeue(&loser.queued)
		m.waitsIn(loser)
		m.requestSearch(loser)
		m.released = time.Time{} // v's own release is undone
	}
	m.touchOf(loser)
	m.take(w, r, false)
}

// findPreemptor makes the head of the highest tier that may and can preempt the preemptor.
func (m *Machine) findPreemptor() {
	if m.victims.n == 0 || m.pending.overdue {
		return // while overdue waiters remain: the next event follows at once
	}
	for _, id := range m.byRank {
		if m.preempts.Has(id) && (m.findPreemptorIn(id) || m.swap(id)) {
			return
		}
	}
}

// findPreemptorIn is findPreemptor for one tier, and reports whether there is one. A head without a victim in its lane
// does not block heads of other lanes. Waiters for room whose tenant is at its cap elsewhere are tried too, even within
// the band: nothing else is available to them.
func (m *Machine) findPreemptorIn(id int) bool {
	if m.ledger.Headroom(id) < 0 || !m.ledger.BelowUpperWithoutOne() || len(m.lanes.searching[id]) == 0 {
		return false
	}
	// Inside the band a head is released when the stock falls below the lower bound.
	inBand := m.belowUpper() && m.ledger.Available(id) > 0
	if inBand && !m.cappedAt {
		return false
	}
	m.heads = renew(m.heads)
	m.lanes.endSearches(id, func(n *laneNote) bool {
		if n.vain.Has(id) {
			return false
		}
		head := m.queue.HeadIn(id, n.lane)
		if head != nil && !inBand {
			m.heads = append(m.heads, head)
		}
		var awaits *fairqueue.Request
		if m.queue.Awaits(n.lane) {
			awaits = m.queue.FirstIn(id, n.lane, true, func(*fairqueue.Request) bool { return true })
		}
		if awaits != nil && !n.vainBeside.Has(id) {
			m.heads = append(m.heads, awaits)
		}
		return head == nil && awaits == nil
	})
	fairqueue.SortHeads(m.heads)
	m.beside = renew(m.beside)
	for _, head := range m.heads {
		if m.tryToPreempt(head) {
			break
		}
		m.findOthers(head, inBand)
	}
	if m.preemptor == nil {
		fairqueue.SortHeads(m.beside)
		_ = slices.ContainsFunc(m.beside, m.tryToPreempt)
	}
	if m.preemptor == nil {
		for _, head := range m.heads { // until their lanes change
			n := m.note(waiterOf(head))
			if n.vainBeside = n.vainBeside.With(id); !inBand {
				n.vain = n.vain.With(id)
			}
			m.lanes.heed(n)
		}
	}
	m.lanes.endSearches(id, func(n *laneNote) bool { return n.searchedInVain(id) }) // these need not search again
	return m.preemptor != nil
}

// tryToPreempt makes the head the preemptor if it has a victim, and reports whether it has.
func (m *Machine) tryToPreempt(head *fairqueue.Request) bool {
	w := waiterOf(head)
	m.asking = w
	v := m.victimOf(w)
	m.asking = nil
	if v != nil {
		m.preemptor = w
	}
	return v != nil
}

// findOthers handles a head without a victim whose tenant is at its cap at an endpoint with victims. For each such
// endpoint it adds to beside the lane's next waiter whose tenant is below its cap. It visits the waiters whose tenants
// have a lease at the endpoint.
func (m *Machine) findOthers(head *fairqueue.Request, inBand bool) {
	for _, e := range m.barred {
		could := func(r *fairqueue.Request) bool { return m.belowCapsAt(waiterOf(r), e) }
		for _, awaits := range []bool{false, true} {
			if !awaits && inBand {
				continue
			}
			if r := m.queue.FirstIn(head.Tier, head.Lane, awaits, could); r != nil && !slices.Contains(m.beside, r) {
				m.beside = append(m.beside, r)
			}
		}
	}
}
