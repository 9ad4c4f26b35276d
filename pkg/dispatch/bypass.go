package dispatch

// mayBypass reports whether no queued waiter goes before the arrival w.
func (m *Machine) mayBypass(w *Waiter) bool {
	if m.queue.Len() == 0 {
		return true
	}
	promote := m.queue.Guarded() && m.mayPromote()
	for {
		may, starved := m.queue.MayBypass(m.now, &w.queued, promote)
		if starved == nil || m.countsAsStarved(starved) {
			return may
		}
	}
}
