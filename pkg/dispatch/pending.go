package dispatch

import (
	"slices"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// pending is the rest of an event's work. Each part is removed when done, or just before if it must not be done twice.
// So a panic of the Placer loses no work: run continues with the rest.
type pending struct {
	freed    []freed              // reservations to be released
	touched  []*tenant            // tenants whose waiters may have to be parked or unparked
	lanes    []*fairqueue.Request // one waiter of each lane to examine after a change of the endpoints
	reopen   bool                 // every lane is to be opened
	regroup  *Regrouping          // by which waiters are to be moved to other lanes; nil if none
	arrival  *Waiter              // to be decided on
	failures int                  // panics in this event
	expired  int                  // waiters that this event has ended as overdue
	overdue  bool                 // the event has left overdue waiters
}

// freed is a reservation to be released, with the placement that it was made for.
type freed struct {
	placement Placement
	Reservation
}

// run does the pending work, then releases all waiters that may go.
func (m *Machine) run() {
	if m.mends.Len() > 0 {
		m.mend()
	}
	if m.pending.reopen {
		m.reopen()
	}
	m.tidy()
	if w := m.pending.arrival; w != nil {
		m.decide(w)
		m.pending.arrival = nil
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
	if len(m.heads)+len(m.beside) > 0 {
		m.heads, m.beside = renew(m.heads), renew(m.beside)
	}
}

// mostKept is the largest capacity, in elements, of a list kept for reuse.
const mostKept = 1024

// renew empties a reused list. It keeps none of its elements, and a capacity of at most mostKept.
func renew[T any](list []T) []T {
	clear(list)
	if cap(list) > mostKept {
		return nil
	}
	return list[:0]
}

// tidy releases freed reservations, parks touched flows and follows busy endpoints.
func (m *Machine) tidy() {
	if m.mayTurn || len(m.pending.freed)+len(m.pending.touched) > 0 {
		m.tidyUp()
	}
}

// tidyUp is tidy, which is inlined. It parks only after the lanes have been examined, since a flow without a ready endpoint
// is not parked.
func (m *Machine) tidyUp() {
	for n := len(m.pending.freed); n > 0; n = len(m.pending.freed) {
		f := &m.pending.freed[n-1]              // a copy would cost an allocation
		m.pending.freed = m.pending.freed[:n-1] // first, since it must be released only once
		m.placer.Release(f.placement, &f.Reservation)
		f.placement, m.mayTurn = nil, m.busies
	}
	if len(m.pending.lanes) == 0 {
		for n := len(m.pending.touched); n > 0; n = len(m.pending.touched) {
			m.repark(m.pending.touched[n-1])
			m.pending.touched = slices.Delete(m.pending.touched, n-1, n) // more may have been roused
		}
	}
	if m.mayTurn {
		m.mayTurn = false
		m.followBusy()
	}
}

// freeReservation marks a reservation for release, because its lease was settled or has moved elsewhere.
func (m *Machine) freeReservation(p Placement, r Reservation) {
	m.free(p, r)
	if m.awaitsRoom() {
		for _, e := range r.All() {
			m.roomAt(e)
		}
	}
}

// free is freeReservation without waking the waiters for room there.
func (m *Machine) free(p Placement, r Reservation) {
	m.pending.freed = append(m.pending.freed, freed{p, r})
}

// awaitsRoom reports whether any request may wait for room at an endpoint.
func (m *Machine) awaitsRoom() bool { return len(m.lanes.notes)+len(m.awaitsTokens) > 0 }

// roomAt reconsiders the waiters for room at an endpoint, or for their tenant's cap there.
func (m *Machine) roomAt(e Endpoint) {
	if m.awaitsRoom() {
		m.lookAgainAt(e)
	}
}

// lookAgainAt is roomAt if awaitsRoom.
func (m *Machine) lookAgainAt(e Endpoint) {
	m.madeRoom(e)
	if len(m.awaitsTokens) > 0 {
		m.fewerTokensAt(e)
	}
	m.rouseAt(e)
}

// touchOf touches the tenant and the user of w. The user is handled first, since the tenant's waiters depend on it.
func (m *Machine) touchOf(w *Waiter) {
	if m.capped {
		m.touchBoth(w)
	}
}

// touchBoth is touchOf where tenants are capped.
func (m *Machine) touchBoth(w *Waiter) {
	m.touch(w.flow.tenant)
	if u := userOf(w); u != nil {
		m.touch(u.tenant)
	}
}

// touch marks the tenant, or the user, for repark, because its leases or waiters have changed.
func (m *Machine) touch(t *tenant) {
	if m.capped && t.waiting > 0 {
		t.changed = true
		m.pending.touched = append(m.pending.touched, t)
	}
}
