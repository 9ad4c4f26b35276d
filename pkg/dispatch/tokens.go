package dispatch

import "github.com/weir-epp/weir/pkg/stock"

// The ledger counts requests, and the placer counts the tokens at each endpoint. The stock is below a bound if it is
// below it in both units.

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

// takesWithout reports whether an endpoint would take another request, of any size, once a lease there with these
// tokens is settled. The ledger settles leases at once; the placer releases them only at the end of the event's work.
func (m *Machine) takesWithout(e Endpoint, tokens stock.Tokens) bool {
	return m.ledger.TakesWithoutOne(stock.BackendID(e)) && m.placer.TakesTokens(e, -int64(tokens))
}

// addTokensAt changes the tokens of l at its endpoint. With fewer tokens, more requests may go there.
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
