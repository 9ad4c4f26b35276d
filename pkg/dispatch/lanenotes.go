package dispatch

import (
	"slices"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/stock"
)

// The machine remembers two things about lanes, so that it does not search again in vain: which of them must be opened
// when an endpoint has room again, and for which tiers a search for a victim found none. A change at an endpoint
// concerns only the lanes that can use it, so changes elsewhere cost nothing.

// laneNote is what is remembered about one lane, until the endpoints change.
type laneNote struct {
	lane fairqueue.Lane
	// endpoints are the lane's ready endpoints. A whole lane, which has all ready endpoints of the pool, lists none.
	endpoints []Endpoint
	whole     bool
	// noVictim has the tiers whose waiters found no victim in this lane. overBound has the tiers that found one, but
	// whose lane would still be at its upper bound without it. They search again only when that may have changed.
	noVictim, overBound fairqueue.TierSet
	// searching has the tiers whose waiters must search for a victim in this lane; laneNotes.searching lists this note
	// for each of them.
	searching fairqueue.TierSet
	// closed reports whether the lane had no room, and so is closed in the queue until one of its endpoints changes.
	closed bool
}

// searchedInVain reports whether the tier has searched for a victim in vain, and nothing has changed since.
func (n *laneNote) searchedInVain(tier int) bool { return (n.noVictim | n.overBound).Has(tier) }

// laneNotes are the notes by lane.
type laneNotes struct {
	notes      map[fairqueue.Lane]*laneNote
	byEndpoint map[Endpoint][]*laneNote // the notes of lanes that are not whole, by endpoint
	wholeLanes []*laneNote
	searching  [stock.MaxTiers][]*laneNote // by tier: the notes of lanes in which it must search for a victim
	sweepAt    int                         // number of notes at which sweep drops those of lanes without waiters
}

// fewNotes is the number of notes below which sweep does nothing.
const fewNotes = 64

// reset forgets everything, because the endpoints have changed.
func (s *laneNotes) reset() {
	s.notes, s.byEndpoint = map[fairqueue.Lane]*laneNote{}, map[Endpoint][]*laneNote{}
	clear(s.wholeLanes)
	s.wholeLanes = s.wholeLanes[:0]
	for tier := range s.searching {
		clear(s.searching[tier])
		s.searching[tier] = s.searching[tier][:0]
	}
	s.sweepAt = fewNotes
}

// add adds a note.
func (s *laneNotes) add(n *laneNote) {
	s.notes[n.lane] = n
	if n.whole {
		s.wholeLanes = append(s.wholeLanes, n)
	}
	for _, e := range n.endpoints {
		s.byEndpoint[e] = append(s.byEndpoint[e], n)
	}
}

// requestSearch makes the waiters of a tier in a lane search for a victim, unless a search is known to be in vain.
func (s *laneNotes) requestSearch(n *laneNote, tier int) {
	if !n.searchedInVain(tier) && !n.searching.Has(tier) {
		n.searching = n.searching.With(tier)
		s.searching[tier] = append(s.searching[tier], n)
	}
}

// endSearches stops the tier's searches in the lanes for which done reports true: their waiters are gone, or have
// searched in vain.
func (s *laneNotes) endSearches(tier int, done func(*laneNote) bool) {
	s.searching[tier] = slices.DeleteFunc(s.searching[tier], func(n *laneNote) bool {
		if !done(n) {
			return false
		}
		n.searching &^= 1 << tier
		return true
	})
}

// using calls each with the notes of the lanes that can use the endpoint.
func (s *laneNotes) using(e Endpoint, each func(*laneNote)) {
	for _, n := range s.byEndpoint[e] {
		each(n)
	}
	for _, n := range s.wholeLanes {
		each(n)
	}
}

// requestSearches calls requestSearch for each of the tiers.
func (s *laneNotes) requestSearches(n *laneNote, tiers fairqueue.TierSet) {
	for tier := 0; tiers != 0; tier, tiers = tier+1, tiers>>1 {
		if tiers.Has(0) {
			s.requestSearch(n, tier)
		}
	}
}

// sweep drops the notes of lanes without waiters, if there are many.
func (s *laneNotes) sweep(waits func(fairqueue.Lane) bool) {
	if len(s.notes) < s.sweepAt {
		return
	}
	kept := s.notes
	s.notes, s.byEndpoint = map[fairqueue.Lane]*laneNote{}, map[Endpoint][]*laneNote{}
	s.wholeLanes = s.wholeLanes[:0]
	for _, n := range kept {
		if waits(n.lane) {
			s.add(n)
		}
	}
	for tier := range s.searching {
		s.endSearches(tier, func(n *laneNote) bool { return s.notes[n.lane] != n })
	}
	s.sweepAt = max(fewNotes, 2*len(s.notes))
}

// note returns the note of w's lane, and makes one if there is none.
func (m *Machine) note(w *Waiter) *laneNote {
	if n := m.lanes.notes[w.queued.Lane]; n != nil {
		return n
	}
	m.lanes.sweep(m.queue.Waits)
	n := &laneNote{lane: w.queued.Lane, whole: true}
	if m.reacher != nil {
		n.endpoints, n.whole = m.reacher.Reach(w.placement, nil)
	}
	m.lanes.add(n)
	return n
}

// requestSearch makes w search for a victim in the next run if its tier may preempt.
func (m *Machine) requestSearch(w *Waiter) {
	if m.preempts.Has(w.queued.Tier) && m.config.Queue.TierMode == fairqueue.Strict {
		m.lanes.requestSearch(m.note(w), w.queued.Tier)
	}
}

// madeRoom opens the closed lanes that can use e, because a change there may have made room. Waiters whose lane was at
// its upper bound search for a victim again.
func (m *Machine) madeRoom(e Endpoint) {
	if len(m.lanes.notes) == 0 {
		return
	}
	m.lanes.using(e, func(n *laneNote) {
		tiers := n.overBound
		n.overBound = 0
		m.lanes.requestSearches(n, tiers&^n.noVictim)
		m.open(n)
	})
}

// addedVictim makes the waiters in lanes that can use e search again, because a new lease there can be preempted.
func (m *Machine) addedVictim(e Endpoint) {
	if len(m.lanes.notes) == 0 {
		return
	}
	m.lanes.using(e, func(n *laneNote) {
		tiers := n.noVictim
		n.noVictim = 0
		m.lanes.requestSearches(n, tiers&^n.overBound)
		m.open(n)
	})
}

func (m *Machine) open(n *laneNote) {
	if n.closed {
		n.closed = false
		m.queue.OpenLane(n.lane)
	}
}
