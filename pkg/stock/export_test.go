package stock

// CostBand returns the pool's band in units of cost; the zero value if cost is not bounded.
func (l *Ledger) CostBand() Band { return l.cost.band() }
