package stock

// TokenBand returns the pool's band in tokens; the zero value if tokens are not bounded.
func (l *Ledger) TokenBand() Band { return l.tokens.band() }
