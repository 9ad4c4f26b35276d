package dispatch

// hold takes l, which has its reservation, into the stock.
func (m *Machine) hold(l *Lease) {
	m.ledger.Take(&l.held)
	if l.costed = m.coster != nil && m.config.Stock.Cost.Watermark > 0; l.costed {
		m.costAt(l, l.held.Cost())
	}
}

// letGo settles l, and reports whether it was held; if not, nothing changes.
func (m *Machine) letGo(l *Lease) bool {
	if !m.ledger.Settle(&l.held) {
		return false
	}
	m.costAt(l, -l.held.Cost())
	l.costed = false
	return true
}

// costAt changes what l costs at its endpoints. If that is less than before, requests may go there that could not.
func (m *Machine) costAt(l *Lease, change int64) {
	if !l.costed || change == 0 {
		return
	}
	for _, e := range l.reservation.All() {
		m.coster.AddCost(e, change)
		if change < 0 {
			m.roomAt(e)
		}
	}
}

// takesCostAfter reports whether v's endpoint, without v, would take another request of any cost.
func (m *Machine) takesCostAfter(v *Lease) bool {
	return !v.costed || m.coster.TakesCost(v.Endpoint(), -v.held.Cost())
}
