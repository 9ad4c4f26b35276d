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
	// ends are the lane's ready endpoints; empty if the lane is whole, which means that it has all ready endpoints of
	// the pool.
	ends  []Endpoint
	whole bool
	// none has the tiers whose waiters here found no victim; over has those that found a victim, but whose lane would
	// still be at its upper bound without it. They search again only when that may have changed.
	none, over fairqueue.TierSet
	// hunts has the tiers whose waiters here have to search for a victim. They are also in laneNotes.hunts.
	hunts fairqueue.TierSet
	// closed means that the lane had no room, and is closed in the queue until something changes at one of its
	// endpoints.
	closed bool
}

// barren reports whether the tier has searched for a victim in vain, and nothing has changed since.
func (n *laneNote) barren(tier int) bool { return (n.none | n.over).Has(tier) }

// laneNotes are the notes by lane.
type laneNotes struct {
	notes  map[fairqueue.Lane]*laneNote
	at     map[Endpoint][]*laneNote // the notes of lanes that are not whole, by endpoint
	wholes []*laneNote
	hunts  [stock.MaxTiers][]*laneNote // by tier: the notes whose waiters have to search for a victim
	most   int                         // number of notes at which those of lanes without waiters are dropped
}

// fewNotes is a number of notes that need no sweep.
const fewNotes = 64

// reset forgets everything, because the endpoints have changed.
func (s *laneNotes) reset() {
	s.notes, s.at = map[fairqueue.Lane]*laneNote{}, map[Endpoint][]*laneNote{}
	clear(s.wholes)
	s.wholes = s.wholes[:0]
	for tier := range s.hunts {
		clear(s.hunts[tier])
		s.hunts[tier] = s.hunts[tier][:0]
	}
	s.most = fewNotes
}

// add adds a note.
func (s *laneNotes) add(n *laneNote) {
	s.notes[n.lane] = n
	if n.whole {
		s.wholes = append(s.wholes, n)
	}
	for _, e := range n.ends {
		s.at[e] = append(s.at[e], n)
	}
}

// hunt marks that the waiters of a tier in a lane have to search for a victim, unless that is known to be in vain.
func (s *laneNotes) hunt(n *laneNote, tier int) {
	if !n.barren(tier) && !n.hunts.Has(tier) {
		n.hunts = n.hunts.With(tier)
		s.hunts[tier] = append(s.hunts[tier], n)
	}
}

// leave is the opposite of hunt: the waiters are gone, or have searched in vain.
func (s *laneNotes) leave(tier int, done func(*laneNote) bool) {
	s.hunts[tier] = slices.DeleteFunc(s.hunts[tier], func(n *laneNote) bool {
		if !done(n) {
			return false
		}
		n.hunts &^= 1 << tier
		return true
	})
}

// using calls each with the notes of the lanes that can use the endpoint.
func (s *laneNotes) using(e Endpoint, each func(*laneNote)) {
	for _, n := range s.at[e] {
		each(n)
	}
	for _, n := range s.wholes {
		each(n)
	}
}

// again makes the tiers search in the lane again.
func (s *laneNotes) again(n *laneNote, tiers fairqueue.TierSet) {
	for tier := 0; tiers != 0; tier, tiers = tier+1, tiers>>1 {
		if tiers.Has(0) {
			s.hunt(n, tier)
		}
	}
}

// sweep drops the notes of lanes without waiters, if there are many.
func (s *laneNotes) sweep(waits func(fairqueue.Lane) bool) {
	if len(s.notes) < s.most {
		return
	}
	kept := s.notes
	s.notes, s.at = map[fairqueue.Lane]*laneNote{}, map[Endpoint][]*laneNote{}
	s.wholes = s.wholes[:0]
	for _, n := range kept {
		if waits(n.lane) {
			s.add(n)
		}
	}
	for tier := range s.hunts {
		s.leave(tier, func(n *laneNote) bool { return s.notes[n.lane] != n })
	}
	s.most = max(fewNotes, 2*len(s.notes))
}

// note returns the note of w's lane, and makes one if there is none.
func (m *Machine) note(w *Waiter) *laneNote {
	if n := m.lanes.notes[w.queued.Lane]; n != nil {
		return n
	}
	m.lanes.sweep(m.queue.Waits)
	n := &laneNote{lane: w.queued.Lane, whole: true}
	if m.reacher != nil {
		n.ends, n.whole = m.reacher.Reach(w.placement, nil)
	}
	m.lanes.add(n)
	return n
}

// hunts makes w search for a victim in the next run, if it may preempt at all.
func (m *Machine) hunts(w *Waiter) {
	if m.preempts.Has(w.queued.Tier) && m.config.Queue.TierMode == fairqueue.Strict {
		m.lanes.hunt(m.note(w), w.queued.Tier)
	}
}

// openLanes opens the closed lanes in which a change at e may have made room, and makes waiters search again for whom
// it may have made a victim available.
func (m *Machine) openLanes(e Endpoint) {
	if len(m.lanes.notes) == 0 {
		return
	}
	m.lanes.using(e, func(n *laneNote) {
		over := n.over
		n.over = 0
		m.lanes.again(n, over&^n.none)
		m.open(n)
	})
}

// newVictim makes waiters of the lanes that can use e search again, because there is a new lease that may be taken
// over.
func (m *Machine) newVictim(e Endpoint) {
	if len(m.lanes.notes) == 0 {
		return
	}
	m.lanes.using(e, func(n *laneNote) {
		none := n.none
		n.none = 0
		m.lanes.again(n, none&^n.over)
		m.open(n)
	})
}

func (m *Machine) open(n *laneNote) {
	if n.closed {
		n.closed = false
		m.queue.OpenLane(n.lane)
	}
}
