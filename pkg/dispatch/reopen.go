package dispatch

import (
	"cmp"
	"slices"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// reopen opens every lane and marks it for examination, because the configuration has changed or any endpoint may have.
func (m *Machine) reopen() {
	m.changed, _ = m.placer.TakeChanges(m.changed[:0]) // all of them
	m.regroup()
	m.pending.reopen = false
	m.queue.OpenLanes()
	m.lanes.reset()
	clear(m.awaitsTokens)
	clear(m.roomier[:])
	for t := range m.flows.tenants() { // caps may be gone or higher, and a new endpoint gives room below them
		for _, a := range t.flows {
			m.queue.UnparkFlow(a.tier, t.key)
		}
		t.roused, t.rousing = t.roused[:0], t.rousing[:0]
	}
	for u := range m.users.tenants() {
		m.unparkUser(u)
	}
	m.pending.lanes = m.queue.Lanes(m.pending.lanes[:0])
	if m.capped {
		m.pending.touched = append(append(m.pending.touched, m.flows.inOrder()...), m.users.inOrder()...)
	}
	m.orderPending()
}

// reopenFor is reopen for a change of some endpoints. It concerns the endpoints' former and present lanes, regrouped
// lanes, and the flows that wait there at a cap. Every other lane has its old room.
func (m *Machine) reopenFor(changed []Endpoint) {
	lanes := m.concerned(changed, m.regroup())
	for _, n := range lanes {
		n.noVictim, n.overBound, n.vain, n.vainBeside, n.closed, n.swaps = 0, 0, 0, 0, false, nil
		m.queue.OpenLane(n.lane)
		m.heads = m.queue.ParkedIn(n.lane, renew(m.heads))
		for _, r := range m.heads {
			a := waiterOf(r).flow
			m.queue.UnparkFlow(a.tier, a.tenant.key)
			m.touch(a.tenant)
		}
		if m.users.on && m.preempts != 0 { // they may now be able to take over a lease of their own
			m.heads = m.queue.ParkedUnder(n.lane, renew(m.heads))
			for _, r := range m.heads {
				m.touchOf(waiterOf(r))
			}
		}
		m.pending.lanes = m.queue.InLane(n.lane, m.pending.lanes)
	}
	for _, e := range changed {
		m.requestSwapsAt(e)
	}
	m.touchFullIn(lanes)
	for _, n := range lanes {
		n.concerned = false
	}
	m.orderPending()
}

// concerned returns the notes of the endpoints' former and present lanes, and of the regrouped lanes with waiters, each
// once.
func (m *Machine) concerned(changed []Endpoint, regrouped []fairqueue.Lane) (lanes []*laneNote) {
	mark := func(all []*laneNote) {
		for _, n := range all {
			if !n.concerned {
				n.concerned = true
				lanes = append(lanes, n)
			}
		}
	}
	if m.lanes.notes[""] == nil && m.queue.Waits("") {
		m.lanes.add(&laneNote{whole: true})
	}
	for _, name := range regrouped {
		if m.heads = m.queue.InLane(name, renew(m.heads)); len(m.heads) > 0 {
			m.asking = waiterOf(m.heads[0])
			mark([]*laneNote{m.note(m.asking)})
			m.asking = nil
		}
	}
	mark(m.lanes.whole.all)
	for _, e := range changed {
		traits, known := m.placer.TraitsOf(e, m.traits[:0])
		if m.traits = traits; known {
			m.lanes.join(e, traits)
		}
		if l := m.lanes.has[e]; l != nil {
			mark(l.all)
		}
		if !known {
			m.lanes.part(e)
		}
	}
	return lanes
}

// orderPending sorts the lanes to be examined and the flows to be parked, in reverse, since they are taken from the end.
func (m *Machine) orderPending() {
	slices.SortFunc(m.pending.lanes, func(a, b *fairqueue.Request) int {
		return cmp.Or(cmp.Compare(b.Lane, a.Lane), cmp.Compare(b.Tier, a.Tier), cmp.Compare(waiterOf(b).number, waiterOf(a).number))
	})
	slices.SortFunc(m.pending.touched, func(a, b *tenant) int {
		switch {
		case a.user == nil && b.user != nil: // users first
			return -1
		case a.user != nil && b.user == nil:
			return 1
		default:
			return cmp.Compare(b.since, a.since)
		}
	})
	m.pending.touched = slices.Compact(m.pending.touched)
}

// examineLanes checks the lanes opened by a change of the endpoints: whether they have a ready endpoint, and whether
// their waiters must search for a victim.
func (m *Machine) examineLanes() {
	for n := len(m.pending.lanes); n > 0; n = len(m.pending.lanes) {
		r := m.pending.lanes[n-1]
		m.pending.lanes[n-1] = nil
		m.pending.lanes = m.pending.lanes[:n-1]
		if r.Queued() {
			m.examineLane(r)
		} else { // it has expired in this event; the other waiters of its lane may not have
			m.pending.lanes = m.queue.InLane(r.Lane, m.pending.lanes)
		}
	}
}

func (m *Machine) examineLane(r *fairqueue.Request) {
	w := waiterOf(r)
	m.asking = w
	m.renote(w)
	if n := m.lanes.notes[r.Lane]; n != nil {
		m.relentIn(n, w)
	}
	ready := m.placer.HasReady(w.placement, nil)
	if ready {
		m.requestSearch(w)
	}
	m.asking = nil
	switch {
	case ready:
		m.reblock(w)
	case m.config.HoldWhenEmpty:
		m.queue.CloseLane(r, fairqueue.LaneDead)
	default:
		if m.users.on {
			m.queue.UnparkLane(r.Lane)
		}
		for r := m.queue.HeadIn(r.Tier, r.Lane); r != nil; r = m.queue.HeadIn(r.Tier, r.Lane) {
			m.turnAway(waiterOf(r), OutcomeNoEndpoint)
		}
	}
}

// renote makes sure that the lane of w has a note, and corrects a lane that is no longer whole.
func (m *Machine) renote(w *Waiter) {
	if w.queued.Lane == "" {
		return
	}
	n := m.note(w)
	if !n.whole {
		return
	}
	if m.explore(n, w); !n.whole {
		m.lanes.whole.remove(n)
		m.lanes.index(n)
	}
}
