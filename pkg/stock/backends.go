package stock

// BackendID identifies a backend. The caller chooses it.
type BackendID int32

// Backend is one ready backend.
type Backend struct {
	ID BackendID
	// Slots is the largest number of requests that the backend runs at once, if it reports one, or 0.
	Slots int32
	// MaxTokens is the most tokens that the backend holds at once, if it reports one, or 0. It matters only if
	// Config.Tokens bounds the tokens.
	MaxTokens Tokens
}

// Amount is an amount of stock in its two units.
type Amount struct {
	Requests int
	Tokens   Tokens
}

// Foreign is what others hold at a backend.
type Foreign struct {
	ID   BackendID
	Held Amount
}

// readyBackend is a ready backend with its contribution to the bounds.
type readyBackend struct {
	Backend
	bounds  Bounds
	foreign int // requests
}

// SetBackends replaces the set of ready backends; of two with one ID the last counts. Backends that stay keep their
// foreign stock.
func (l *Ledger) SetBackends(ready []Backend) {
	before, at := l.backends, l.at
	l.backends, l.at = make([]readyBackend, 0, len(ready)), make(map[BackendID]int, len(ready))
	l.requests, l.foreign = sums{}, 0
	for _, b := range ready {
		entry := readyBackend{Backend: b}
		if i, stays := at[b.ID]; stays {
			entry.foreign = before[i].foreign
		}
		if i, twice := l.at[b.ID]; twice {
			l.change(i, b)
		} else {
			l.enter(entry)
		}
	}
	l.rebound()
}

// SetBackend adds a ready backend, or changes the one with its ID, and returns what it now contributes to the bounds.
func (l *Ledger) SetBackend(b Backend) Bounds {
	i, known := l.at[b.ID]
	if !known {
		i = l.enter(readyBackend{Backend: b})
	} else {
		l.change(i, b)
	}
	l.rebound()
	return l.backends[i].bounds
}

// RemoveBackend removes a backend that is no longer ready, with its foreign stock, and reports whether it was among the
// ready ones. Leases there stay until they are settled.
func (l *Ledger) RemoveBackend(id BackendID) bool {
	i, known := l.at[id]
	if !known {
		return false
	}
	l.discount(i)
	delete(l.at, id)
	last := len(l.backends) - 1
	if i < last {
		l.backends[i] = l.backends[last]
		l.at[l.backends[i].ID] = i
	}
	l.backends = l.backends[:last]
	l.rebound()
	return true
}

// SetForeign replaces what others hold at a backend, and returns what of it counts: each number is clamped to 0 to
// MaxPerBackend or MaxTokens. The ledger itself counts the requests. ready reports whether the backend is among the ready
// ones; at others nothing counts.
func (l *Ledger) SetForeign(f Foreign) (counts Amount, ready bool) {
	i, known := l.at[f.ID]
	if !known {
		return Amount{}, false
	}
	counts = Amount{max(0, min(f.Held.Requests, MaxPerBackend)), clampTokens(f.Held.Tokens)}
	l.discount(i)
	l.backends[i].foreign = counts.Requests
	l.count(i)
	return counts, true
}

// change replaces what is known of a backend.
func (l *Ledger) change(i int, b Backend) {
	l.discount(i)
	l.backends[i].Backend = b
	l.count(i)
}

// enter appends a backend, and returns its position.
func (l *Ledger) enter(entry readyBackend) int {
	i := len(l.backends)
	l.backends = append(l.backends, entry)
	l.at[entry.ID] = i
	l.count(i)
	return i
}

// count computes a backend's contribution and adds it to the sums.
func (l *Ledger) count(i int) {
	b := &l.backends[i]
	b.bounds = l.config.BoundsOf(b.Backend)
	l.requests.add(b.bounds.Requests)
	l.foreign += b.foreign
}

// discount subtracts a backend's contribution from the sums.
func (l *Ledger) discount(i int) {
	b := &l.backends[i]
	l.requests.subtract(b.bounds.Requests)
	l.foreign -= b.foreign
}

// rebound derives the limits from the sums, and the reservations from the capacity.
func (l *Ledger) rebound() {
	l.lower, l.upper = int(l.requests.lower.ceil()), int(l.requests.upper.ceil())
	l.reserve()
}
