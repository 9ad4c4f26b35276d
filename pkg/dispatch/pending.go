package dispatch

import (
	"cmp"
	"slices"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// pending is the rest of an event's work. Each part is removed when it is done, or just before if it must not be done
// twice. So a panic of the Placer does not lose work: run continues with the rest.
type pending struct {
	freed    []Reservation        // reservations to be released
	touched  []*flowAccount       // flows whose waiters may have to be parked, or not any more
	lanes    []*fairqueue.Request // one waiter of each lane to examine after a change of the endpoints
	arrival  *Waiter              // to be decided on
	passedOn bool                 // the arrival does not queue
	failures int                  // panics in this event
}

// run does the pending work, and then releases all waiters that may go.
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
	if len(m.pending.lanes) > 0 {
		m.examineLanes()
	}
	if m.queue.Len() > 0 {
		m.release()
	}
	m.tidy()
}

// tidy releases reservations and parks flows, if there are any to be released or parked.
func (m *Machine) tidy() {
	if len(m.pending.freed)+len(m.pending.touched) > 0 {
		m.freeAndPark()
	}
}

// freeAndPark is tidy. It parks only after the lanes have been examined, since a flow without a ready endpoint is not
// parked.
func (m *Machine) freeAndPark() {
	for n := len(m.pending.freed); n > 0; n = len(m.pending.freed) {
		r := &m.pending.freed[n-1]              // a copy would cost an allocation
		m.pending.freed = m.pending.freed[:n-1] // first, since it must be released only once
		m.placer.Release(r)
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

// freeReservation marks a reservation for release, because its lease was settled or has moved elsewhere.
func (m *Machine) freeReservation(r Reservation) {
	m.pending.freed = append(m.pending.freed, r)
	for _, e := range r.All() {
		m.madeRoom(e)
		if len(m.parked) > 0 {
			m.touchAt(e)
		}
	}
}

// touch marks the flow for repark, because its leases or waiters have changed.
func (m *Machine) touch(a *flowAccount) {
	if m.capped() && a.waiting > 0 {
		m.pending.touched = append(m.pending.touched, a)
	}
}

// reopen opens every lane and marks it for examination, because the endpoints or the bounds have changed.
func (m *Machine) reopen() {
	m.queue.OpenLanes()
	m.lanes.reset()
	for a := range m.flows.all() { // caps may be gone or higher, and another endpoint is room below them
		m.queue.UnparkFlow(a.tier, a.flow)
	}
	m.pending.lanes = m.queue.Lanes(m.pending.lanes[:0])
	slices.SortFunc(m.pending.lanes, func(a, b *fairqueue.Request) int { // in reverse, since they are taken from the end
		return cmp.Or(cmp.Compare(b.Lane, a.Lane), cmp.Compare(b.Tier, a.Tier), cmp.Compare(waiterOf(b).number, waiterOf(a).number))
	})
	if m.capped() {
		m.pending.touched = append(m.pending.touched, m.flows.inOrder()...)
		slices.Reverse(m.pending.touched)
	}
}

// examineLanes examines the lanes that a change of the endpoints has opened: whether they have a ready endpoint, and
// whether their waiters must search for a victim.
func (m *Machine) examineLanes() {
	for n := len(m.pending.lanes); n > 0; n = len(m.pending.lanes) {
		r := m.pending.lanes[n-1]
		m.pending.lanes[n-1] = nil
		m.pending.lanes = m.pending.lanes[:n-1]
		if r.Queued() {
			m.examineLane(r)
		}
	}
}

func (m *Machine) examineLane(r *fairqueue.Request) {
	w := waiterOf(r)
	m.asking = w
	ready := m.placer.HasReady(w.placement, nil)
	if ready {
		m.requestSearch(w)
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
