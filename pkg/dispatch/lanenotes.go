package dispatch

import (
	"slices"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// laneNote is the machine's record of one lane. Every lane with waiters has one; the lane of the whole pool gets one
// only when needed. So an event at an endpoint concerns only the lanes that can use it, and waiters in other lanes cost
// it nothing.
type laneNote struct {
	lane fairqueue.Lane
	// endpoints are those that the lane may use while they are ready, ascending. A whole lane, which has all ready
	// endpoints of the pool, lists none. A new endpoint joins the lane if it has one of traits.
	endpoints []Endpoint
	whole     bool
	traits    []scheduling.Trait
	// noVictim has the tiers whose waiters found no victim in this lane, or none whose end frees enough tokens.
	// overBound has the tiers with a victim whose end would leave the lane at its upper bound. Both search again only
	// after a relevant change.
	noVictim, overBound fairqueue.TierSet
	// searching has the tiers whose waiters must search for a victim in this lane; laneNotes.searching lists this note
	// for each of them.
	searching fairqueue.TierSet
	// vain has the tiers whose waiters in the lane have no victim because of caps, and vainBeside the tiers whose
	// waiters for room have none. They search again after any change in the lane.
	vain, vainBeside fairqueue.TierSet
	// swaps are, by tier, the tenants whose waiters have a victim of their own but cannot take over, because the lane
	// or the pool would still be at its upper bound. roomier has the tiers for which Machine.roomier lists this note.
	swaps   map[int]*roomSwaps
	roomier fairqueue.TierSet
	// closed reports whether the lane had no room, and so is closed in the queue until one of its endpoints changes.
	closed bool
	// heeds reports whether changes at the lane's endpoints have ever mattered: it was closed, or a search was in vain.
	heeds bool
	// concerned reports whether the present change of the endpoints concerns the lane.
	concerned bool
	number    int // index in laneNotes.all; -1 if the note is dropped
}

// searchedInVain reports whether the tier's search for a victim failed and no relevant change followed.
func (n *laneNote) searchedInVain(tier int) bool { return (n.noVictim | n.overBound).Has(tier) }

// laneNotes are the notes by lane, by endpoint and by trait.
type laneNotes struct {
	notes     map[fairqueue.Lane]*laneNote
	whole     laneList // the notes of whole lanes; the others are in has and asks
	has       map[Endpoint]*laneList
	asks      map[scheduling.Trait]*laneList
	searching [stock.MaxTiers][]*laneNote // by tier: the notes of lanes in which it must search for a victim; some are dropped
	all       []*laneNote
	next      int // index in all of the next note to check for waiters
}

// laneList lists notes.
type laneList struct {
	all   []*laneNote
	heeds []*laneNote // those that heed changes
}

// fewNotes is the number of notes up to which none is dropped.
const fewNotes = 64

// reset forgets everything.
func (s *laneNotes) reset() {
	*s = laneNotes{
		notes: map[fairqueue.Lane]*laneNote{}, has: map[Endpoint]*laneList{}, asks: map[scheduling.Trait]*laneList{},
	}
}

// add adds a note.
func (s *laneNotes) add(n *laneNote) {
	n.number = len(s.all)
	s.all = append(s.all, n)
	s.notes[n.lane] = n
	s.index(n)
}

// index lists a note by its lane's endpoints and traits.
func (s *laneNotes) index(n *laneNote) {
	if n.whole {
		s.whole.add(n)
		return
	}
	for _, e := range n.endpoints {
		listOf(s.has, e).add(n)
	}
	for _, t := range n.traits {
		listOf(s.asks, t).add(n)
	}
}

// listOf returns the list of k, and makes a missing one.
func listOf[K comparable](lists map[K]*laneList, k K) *laneList {
	l := lists[k]
	if l == nil {
		l = new(laneList)
		lists[k] = l
	}
	return l
}

func (l *laneList) add(n *laneNote) {
	l.all = append(l.all, n)
	if n.heeds {
		l.heeds = append(l.heeds, n)
	}
}

// remove removes a note, and reports whether none is left.
func (l *laneList) remove(n *laneNote) (none bool) {
	for _, list := range []*[]*laneNote{&l.all, &l.heeds} {
		if i := slices.Index(*list, n); i >= 0 {
			*list = slices.Delete(*list, i, i+1)
		}
	}
	return len(l.all) == 0
}

// heed makes a lane heed changes at its endpoints from now on.
func (s *laneNotes) heed(n *laneNote) {
	if n.heeds {
		return
	}
	n.heeds = true
	if n.whole {
		s.whole.heeds = append(s.whole.heeds, n)
	}
	for _, e := range n.endpoints {
		l := s.has[e]
		l.heeds = append(l.heeds, n)
	}
}

// drop forgets a note.
func (s *laneNotes) drop(n *laneNote) {
	delete(s.notes, n.lane)
	last := s.all[len(s.all)-1]
	last.number, s.all[n.number] = n.number, last
	s.all[len(s.all)-1] = nil
	s.all = s.all[:len(s.all)-1]
	n.number = -1
	if n.whole {
		s.whole.remove(n)
		return
	}
	for _, e := range n.endpoints {
		if s.has[e].remove(n) {
			delete(s.has, e)
		}
	}
	for _, t := range n.traits {
		if s.asks[t].remove(n) {
			delete(s.asks, t)
		}
	}
}

// tidy drops up to two notes of lanes without waiters. It is called for each new note, so there are never many more
// notes than lanes with waiters.
func (s *laneNotes) tidy(waits func(fairqueue.Lane) bool) {
	for range 2 {
		if len(s.all) < fewNotes {
			return
		}
		s.next %= len(s.all)
		if n := s.all[s.next]; !waits(n.lane) {
			s.drop(n)
		} else {
			s.next++
		}
	}
}

// heeding calls each with the notes that heed a change at the endpoint.
func (s *laneNotes) heeding(e Endpoint, each func(*laneNote)) {
	if l := s.has[e]; l != nil {
		for _, n := range l.heeds {
			each(n)
		}
	}
	for _, n := range s.whole.heeds {
		each(n)
	}
}

// join adds an endpoint to the lanes that ask for one of its traits.
func (s *laneNotes) join(e Endpoint, traits []scheduling.Trait) {
	for _, t := range traits {
		l := s.asks[t]
		if l == nil {
			continue
		}
		for _, n := range l.all {
			if i, listed := slices.BinarySearch(n.endpoints, e); !listed {
				n.endpoints = slices.Insert(n.endpoints, i, e)
				listOf(s.has, e).add(n)
			}
		}
	}
}

// part removes an endpoint that has left the pool from all lanes.
func (s *laneNotes) part(e Endpoint) {
	if l := s.has[e]; l != nil {
		for _, n := range l.all {
			if i, listed := slices.BinarySearch(n.endpoints, e); listed {
				n.endpoints = slices.Delete(n.endpoints, i, i+1)
			}
		}
		delete(s.has, e)
	}
}

// note returns the note of w's lane, and makes one if there is none.
func (m *Machine) note(w *Waiter) *laneNote {
	if n := m.lanes.notes[w.queued.Lane]; n != nil {
		return n
	}
	m.lanes.tidy(m.queue.Waits)
	n := &laneNote{lane: w.queued.Lane, whole: true}
	m.explore(n, w)
	m.lanes.add(n)
	return n
}

// explore finds the endpoints that the lane of w may use. The lane "" is whole.
func (m *Machine) explore(n *laneNote, w *Waiter) {
	if n.lane == "" {
		return
	}
	if n.endpoints, n.whole = m.placer.Reach(w.placement, nil); !n.whole {
		n.traits = m.placer.Traits(w.placement, nil)
	}
}

// waitsIn makes sure that the lane of the waiting w has a note, and that half of its endpoints get requests.
func (m *Machine) waitsIn(w *Waiter) {
	if w.queued.Lane != "" && w.queued.AloneInLane() {
		m.relentIn(m.note(w), w)
	}
}

// madeRoom opens the closed lanes that can use e, because a change there may have made room. Waiters whose lane was at
// its upper bound search for a victim again, and so do those for which a victim at e has become enough.
func (m *Machine) madeRoom(e Endpoint) {
	if len(m.lanes.notes) == 0 {
		return
	}
	fits := m.victimFits(e)
	m.lanes.heeding(e, func(n *laneNote) {
		tiers := n.overBound | n.noVictim&fits
		n.noVictim &^= fits
		n.overBound, n.vain, n.vainBeside = 0, 0, 0
		m.lanes.requestSearches(n, tiers&^n.noVictim)
		for tier, c := range n.swaps { // each tier has a list of its own
			c.untried = len(c.list)
			if !n.roomier.Has(tier) {
				n.roomier = n.roomier.With(tier)
				m.roomier[tier] = append(m.roomier[tier], n)
			}
		}
		m.open(n)
	})
}

func (m *Machine) open(n *laneNote) {
	if n.closed {
		n.closed = false
		m.queue.OpenLane(n.lane)
	}
}
