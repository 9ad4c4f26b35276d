package dispatch

import (
	"cmp"
	"slices"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// pending is what an event has still to do. Each part is taken off when it is done, or just before, where it must not be
// done twice: so a panic of the Placer interrupts nothing for good, and run goes on with the rest.
type pending struct {
	freed    []Reservation        // to be given back
	touched  []*flowAccount       // flows whose waiters may have to be parked, or not any more
	lanes    []*fairqueue.Request // a waiter of each lane to look at after a change of the endpoints
	arrival  *Waiter              // to be decided on
	passedOn bool                 // the arrival does not queue
	failures int                  // panics in this event
}

// run does what is pending, and then releases whoever may go.
func (m *Machine) run() {
	m.tidy()
	if w := m.pending.arrival; w != nil {
		m.decide(w)
		m.pending.arrival, m.pending.passedOn = nil, false
		m.tidy()
	}
	if m.queue.Len() > 0 {
		m.expire()
	}
	m.look()
	if m.queue.Len() > 0 {
		m.release()
	}
	m.tidy()
}

// tidy gives reservations back and parks flows; these only where the lanes have been looked at, since whoever has no
// ready endpoint is not parked.
func (m *Machine) tidy() {
	for n := len(m.pending.freed); n > 0; n = len(m.pending.freed) {
		r := m.pending.freed[n-1]
		m.pending.freed = m.pending.freed[:n-1] // before: it is given back once
		m.placer.Release(&r)
	}
	if len(m.pending.lanes) > 0 {
		return
	}
	for n := len(m.pending.touched); n > 0; n = len(m.pending.touched) {
		a := m.pending.touched[n-1]
		m.repark(a)
		m.pending.touched[n-1] = nil
		m.pending.touched = m.pending.touched[:n-1]
	}
}

// gaveBack is told that a lease has let go of a reservation: it was settled, or has moved elsewhere.
func (m *Machine) gaveBack(r Reservation) {
	m.pending.freed = append(m.pending.freed, r)
	for _, e := range r.All() {
		m.openLanes(e)
		m.touchAt(e)
	}
}

// touch has the flow's waiters looked at, since its leases or waiters have changed.
func (m *Machine) touch(a *flowAccount) {
	if m.capped() && a.waiting > 0 {
		m.pending.touched = append(m.pending.touched, a)
	}
}

// reopen has every lane looked at again, after the endpoints or the bounds have changed.
func (m *Machine) reopen() {
	m.queue.OpenLanes()
	m.lanes.reset()
	for a := range m.flows.all() { // caps may be gone or wider, and an endpoint more is room below them
		m.queue.UnparkFlow(a.tier, a.flow)
	}
	m.pending.lanes = m.queue.Lanes(m.pending.lanes[:0])
	slices.SortFunc(m.pending.lanes, func(a, b *fairqueue.Request) int {
		return cmp.Or(cmp.Compare(b.Lane, a.Lane), cmp.Compare(b.Tier, a.Tier)) // taken from the end
	})
	if m.capped() {
		m.pending.touched = append(m.pending.touched, m.flows.inOrder()...)
		slices.Reverse(m.pending.touched)
	}
}

// look looks at the lanes that a change of the endpoints has opened: whether they have a ready endpoint, and whether
// somebody there has to look for a victim.
func (m *Machine) look() {
	for n := len(m.pending.lanes); n > 0; n = len(m.pending.lanes) {
		r := m.pending.lanes[n-1]
		m.pending.lanes[n-1] = nil
		m.pending.lanes = m.pending.lanes[:n-1]
		if r.Queued() {
			m.lookAt(r)
		}
	}
}

func (m *Machine) lookAt(r *fairqueue.Request) {
	w := waiterOf(r)
	m.asking = w
	ready := m.placer.HasReady(w.placement, nil)
	if ready {
		m.hunts(w)
	}
	m.asking = nil
	switch {
	case ready:
	case m.config.HoldWhenEmpty:
		m.queue.CloseLane(r, fairqueue.LaneDead)
	default:
		for r := m.queue.HeadIn(r.Tier, r.Lane); r != nil; r = m.queue.HeadIn(r.Tier, r.Lane) {
			m.turnAway(waiterOf(r), OutcomeNoEndpoint)
		}
	}
}
