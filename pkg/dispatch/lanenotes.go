package dispatch

import (
	"slices"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/stock"
)

// What is remembered of lanes, so that nothing is looked for again before it can be there: which of them have to be
// opened when an endpoint has room again, and for which tiers a search for a victim came to nothing. A change at an
// endpoint concerns the lanes that can use it and no others, so what happens elsewhere costs nothing.

// laneNote is what is remembered of one lane, for as long as the endpoints stay the same.
type laneNote struct {
	lane fairqueue.Lane
	// ends are its ready endpoints, unless it is whole: then they are those of the pool.
	ends  []Endpoint
	whole bool
	// none has the tiers whose waiters here would find no lease that they may take over, over those that found that the
	// lane would be at its upper bound all the same. Until that changes nobody looks again.
	none, over fairqueue.TierSet
	// hunts has the tiers whose waiters here have to look for a victim: those in laneNotes.hunts.
	hunts fairqueue.TierSet
	// closed: the lane had no room, and is closed in the queue until something changes at one of its endpoints.
	closed bool
}

// barren reports whether a search for the tier has come to nothing, and nothing has changed since.
func (n *laneNote) barren(tier int) bool { return (n.none | n.over).Has(tier) }

// laneNotes are the notes by lane.
type laneNotes struct {
	notes  map[fairqueue.Lane]*laneNote
	at     map[Endpoint][]*laneNote // those of lanes that are not whole, by endpoint
	wholes []*laneNote
	hunts  [stock.MaxTiers][]*laneNote // by tier: those whose waiters have to look for a victim
	most   int                         // notes at which those of lanes without waiters are dropped
}

// fewNotes are never swept.
const fewNotes = 64

// reset forgets everything: the endpoints have changed.
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

// add notes a lane.
func (s *laneNotes) add(n *laneNote) {
	s.notes[n.lane] = n
	if n.whole {
		s.wholes = append(s.wholes, n)
	}
	for _, e := range n.ends {
		s.at[e] = append(s.at[e], n)
	}
}

// hunt has the waiters of a tier in a lane look for a victim, unless that is known to be in vain.
func (s *laneNotes) hunt(n *laneNote, tier int) {
	if !n.barren(tier) && !n.hunts.Has(tier) {
		n.hunts = n.hunts.With(tier)
		s.hunts[tier] = append(s.hunts[tier], n)
	}
}

// leave is hunt's opposite: the waiters are gone, or looked in vain.
func (s *laneNotes) leave(tier int, done func(*laneNote) bool) {
	s.hunts[tier] = slices.DeleteFunc(s.hunts[tier], func(n *laneNote) bool {
		if !done(n) {
			return false
		}
		n.hunts &^= 1 << tier
		return true
	})
}

// using are the notes of the lanes that can use the endpoint.
func (s *laneNotes) using(e Endpoint, each func(*laneNote)) {
	for _, n := range s.at[e] {
		each(n)
	}
	for _, n := range s.wholes {
		each(n)
	}
}

// again has the tiers look again in the lane.
func (s *laneNotes) again(n *laneNote, tiers fairqueue.TierSet) {
	for tier := 0; tiers != 0; tier, tiers = tier+1, tiers>>1 {
		if tiers.Has(0) {
			s.hunt(n, tier)
		}
	}
}

// sweep drops the notes of lanes that nobody waits in, when there are many.
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

// note is the note of w's lane, made when there is none.
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

// hunts has a waiter look for a victim in the next run, if it may preempt at all.
func (m *Machine) hunts(w *Waiter) {
	if m.preempts.Has(w.queued.Tier) && m.config.Queue.TierMode == fairqueue.Strict {
		m.lanes.hunt(m.note(w), w.queued.Tier)
	}
}

// openLanes opens the closed lanes that a change at e may have made room in, and has those look for a victim again for
// whom it may have made one possible.
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

// newVictim has the lanes that can use e look again: there is a lease that may be taken over.
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
