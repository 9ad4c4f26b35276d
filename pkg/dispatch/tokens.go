package dispatch

import "github.com/weir-epp/weir/pkg/stock"

// The ledger counts requests, and the placer the tokens at each endpoint: the stock is below a bound if it is below it in
// both.

// bounded reports whether the stock is bounded in tokens.
func (m *Machine) bounded() bool { return m.config.Stock.Tokens.Watermark > 0 }

// belowLower reports whether the band lets a waiting request through.
func (m *Machine) belowLower() bool {
	return m.ledger.BelowLower() && (!m.bounded() || m.placer.BelowTokens(BelowLower))
}

// belowUpper reports whether the band lets an arrival or a starved head through.
func (m *Machine) belowUpper() bool {
	return m.ledger.BelowUpper() && (!m.bounded() || m.placer.BelowTokens(BelowUpper))
}

// takesWithout reports whether an endpoint would take another request, of any size, once a lease there with so many tokens
// is settled. The ledger has settled leases at once, the placer has released them only when the event's work is done.
func (m *Machine) takesWithout(e Endpoint, tokens stock.Tokens) bool {
	return m.ledger.TakesWithoutOne(stock.BackendID(e)) && m.placer.TakesTokens(e, -int64(tokens))
}

// addTokensAt changes the tokens that l takes at its endpoint. If there are fewer than before, requests may go there that
// could not.
func (m *Machine) addTokensAt(l *Lease, change stock.Tokens) {
	e := l.Endpoint()
	if e == NoEndpoint {
		return
	}
	m.placer.AddTokens(e, int64(change))
	if change < 0 && m.bounded() {
		m.roomAt(e)
	}
}
