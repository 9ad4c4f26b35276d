package dispatch

import (
	"slices"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// A waiter that may preempt searches for a victim, but repeats no search that is known to be vain. A lane's note has
// each tier's result, and the change that permits another search: a new victim, or room.

// requestSearch makes w search for a victim in the next run if its tier may preempt.
func (m *Machine) requestSearch(w *Waiter) {
	if m.preempts.Has(w.queued.Tier) && m.config.Queue.TierMode == fairqueue.Strict {
		m.lanes.requestSearch(m.note(w), w.queued.Tier)
	}
}

// requestSearch makes the waiters of a tier in a lane search for a victim, unless a search is known to be vain.
func (s *laneNotes) requestSearch(n *laneNote, tier int) {
	n.vain &^= 1 << tier
	n.vainBeside &^= 1 << tier
	if !n.searchedInVain(tier) && !n.searching.Has(tier) {
		if len(s.searching[tier]) >= 2*max(fewNotes, len(s.all)) {
			s.endSearches(tier, func(*laneNote) bool { return false }) // removes dropped notes
		}
		n.searching = n.searching.With(tier)
		s.searching[tier] = append(s.searching[tier], n)
	}
}

// endSearches stops the tier's searches in the lanes for which done reports true: their waiters are gone, or their
// search was vain.
func (s *laneNotes) endSearches(tier int, done func(*laneNote) bool) {
	s.searching[tier] = slices.DeleteFunc(s.searching[tier], func(n *laneNote) bool {
		if n.number >= 0 && !done(n) {
			return false
		}
		n.searching &^= 1 << tier
		return true
	})
}

// requestSearches calls requestSearch for each of the tiers.
func (s *laneNotes) requestSearches(n *laneNote, tiers fairqueue.TierSet) {
	for tier := 0; tiers != 0; tier, tiers = tier+1, tiers>>1 {
		if tiers.Has(0) {
			s.requestSearch(n, tier)
		}
	}
}

// addedVictim makes the waiters in lanes that can use e search again, because a new lease there can be preempted.
func (m *Machine) addedVictim(e Endpoint) {
	if len(m.lanes.notes) == 0 {
		return
	}
	fits := m.victimFits(e)
	m.lanes.heeding(e, func(n *laneNote) {
		tiers := n.noVictim & fits
		n.noVictim &^= fits
		n.vain, n.vainBeside = 0, 0
		m.lanes.requestSearches(n, tiers&^n.overBound)
		m.open(n)
	})
}

// victimFits returns the tiers that may preempt a victim at e whose end makes the endpoint take another request.
func (m *Machine) victimFits(e Endpoint) (above fairqueue.TierSet) {
	if m.victims.n == 0 {
		return 0
	}
	for i, id := range slices.Backward(m.byRank) {
		if h := m.victims.tiers[id].byEndpoint[e]; h != nil && len(h.leases) > 0 && m.takesWithout(e, h.most[0]) {
			for _, higher := range m.byRank[:i] {
				above = above.With(higher)
			}
			return above
		}
	}
	return 0
}
