package dispatch

// costAt changes what l costs at its endpoints; m.coster knows l. If that is less than before, requests may go there that
// could not.
func (m *Machine) costAt(l *Lease, change int64) {
	for _, e := range l.reservation.All() {
		m.coster.AddCost(e, change)
		if change < 0 {
			m.roomAt(e)
		}
	}
}

// uncost takes the cost of l, which is settled, from its endpoints.
func (m *Machine) uncost(l *Lease) {
	if l.costed {
		l.costed = false
		m.costAt(l, -l.held.Cost())
	}
}

// takesCostAfter reports whether v's endpoint, without v, would take another request of any cost.
func (m *Machine) takesCostAfter(v *Lease) bool {
	return !v.costed || m.coster.TakesCost(v.Endpoint(), -v.held.Cost())
}
