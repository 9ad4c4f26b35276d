package dispatch

import "github.com/weir-epp/weir/pkg/stock"

// addTokensAt changes the tokens that l takes at its endpoints; the placer knows l. If there are fewer than before,
// requests may go there that could not.
func (m *Machine) addTokensAt(l *Lease, change stock.Tokens) {
	for _, e := range l.reservation.All() {
		m.placer.AddTokens(e, int64(change))
		if change < 0 {
			m.roomAt(e)
		}
	}
}

// unmeasure takes the tokens of l, which is settled, from its endpoints.
func (m *Machine) unmeasure(l *Lease) {
	if l.measured {
		l.measured = false
		m.addTokensAt(l, -l.held.Tokens())
	}
}
