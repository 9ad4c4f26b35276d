package dispatch

import "github.com/weir-epp/weir/pkg/fairqueue"

// closeLane closes the lane of w, which could not be placed below the lower bound, until a settlement or a change of
// the endpoints. above means that there is room below the upper bound.
func (m *Machine) closeLane(w *Waiter, above bool) {
	if !m.placer.HasReady(w.placement, nil) {
		m.queue.CloseLane(&w.queued, fairqueue.LaneDead)
		return
	}
	m.note(w).closed = true // first, so that a panic of the placer cannot leave a lane closed that nothing opens
	state := fairqueue.LaneFull
	if above {
		state = fairqueue.LaneBusy
	}
	m.queue.CloseLane(&w.queued, state)
}

// lendsAge reports whether starved, a waiter beyond its tier's threshold, makes its tier starved: its lane has room
// below the upper bound. If not, it closes the lane. The queue only knows what was tried in a lane, so this is checked
// whenever an age decides.
func (m *Machine) lendsAge(starved *fairqueue.Request) (lends bool) {
	w := waiterOf(starved)
	m.asking = w
	if lends = m.placer.HasRoom(w.placement, BelowUpper, nil); !lends {
		m.closeLane(w, false)
	}
	m.asking = nil
	return lends
}

// mayBypass reports whether no waiter in the queue goes before w, an arrival.
func (m *Machine) mayBypass(w *Waiter) bool {
	promote := m.mayPromote()
	for {
		may, starved := m.queue.MayBypass(m.now, &w.queued, promote)
		if starved == nil || m.lendsAge(starved) {
			return may
		}
	}
}
