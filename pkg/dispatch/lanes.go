package dispatch

import "github.com/weir-epp/weir/pkg/fairqueue"

// closeLane closes the lane of w, which could not be placed below the lower bound, until a settlement or a change of
// the endpoints. above means that there is room below the upper bound.
func (m *Machine) closeLane(w *Waiter, above bool) {
	if !m.placer.HasReady(w.placement, nil) {
		m.queue.CloseLane(&w.queued, fairqueue.LaneDead)
		return
	}
	n := m.note(w)
	n.closed = true // first, so that a panic of the placer cannot leave a lane closed for ever
	m.lanes.heed(n)
	state := fairqueue.LaneFull
	if above {
		state = fairqueue.LaneBusy
	}
	m.queue.CloseLane(&w.queued, state)
}

// countsAsStarved reports whether a waiter older than its tier's threshold makes its tier starved. That requires room
// below the upper bound in its lane, at an endpoint where its tenant is below its cap. Without such room it parks the
// flow or closes the lane. The queue knows only the lanes already tried, so every decision by age makes this check.
func (m *Machine) countsAsStarved(old *fairqueue.Request) (counts bool) {
	w := waiterOf(old)
	full := m.fullFor(w.flow.tenant)
	m.asking = w
	switch {
	case m.placer.HasRoom(w.placement, BelowUpper, full):
		counts = true
	case full != nil && m.placer.HasRoom(w.placement, BelowUpper, nil):
		m.park(w)
	default:
		m.closeLane(w, false)
	}
	m.asking = nil
	return counts
}
