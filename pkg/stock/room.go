package stock

// room is the number of ready backends whose tokens are below their own lower and upper bound. Tokens need no sums over
// the pool: it is below a bound while one of its backends is.
type room struct{ lower, upper int }

// count counts a backend once more, or once less.
func (r *room) count(b *readyBackend, by int) {
	if below(b.bounds.Tokens.Lower, b.allTokens()) {
		r.lower += by
	}
	if below(b.bounds.Tokens.Upper, b.allTokens()) {
		r.upper += by
	}
}

// below reports whether tokens are below a bound of one backend; 0 is none.
func below(bound Micro, tokens Tokens) bool { return bound == 0 || tokens < Tokens(bound.Ceil()) }

// allTokens returns the tokens of the leases at the backend and of what others hold there.
func (b *readyBackend) allTokens() Tokens { return b.tokens + b.foreign.Tokens }

// opensWithout reports whether the backend is at its upper bound, and would not be with so many tokens fewer.
func (b *readyBackend) opensWithout(tokens Tokens) bool {
	upper := b.bounds.Tokens.Upper
	return !below(upper, b.allTokens()) && below(upper, b.allTokens()-tokens)
}

// addTokens changes the tokens of the leases at a backend.
func (l *Ledger) addTokens(id BackendID, change Tokens) {
	l.held.Tokens += change
	i, ready := l.at[id]
	if !ready {
		l.setElsewhere(id, l.elsewhere[id]+change)
		return
	}
	b := &l.backends[i]
	l.room.count(b, -1)
	b.tokens += change
	l.room.count(b, 1)
}

// keepTokens keeps what the leases at a backend take, which is no longer ready, until they are settled or it is back.
func (l *Ledger) keepTokens(b *readyBackend) { l.setElsewhere(b.ID, b.tokens) }

func (l *Ledger) setElsewhere(id BackendID, tokens Tokens) {
	if tokens == 0 {
		delete(l.elsewhere, id)
		return
	}
	l.elsewhere[id] = tokens
}
