package stock

// BackendID identifies a backend. The caller chooses it.
type BackendID int32

// Backend is one ready backend.
type Backend struct {
	ID BackendID
	// Slots is the reported largest number of requests that the backend runs at once; 0 if it reports none.
	Slots int32
	// MaxTokens is the reported largest number of tokens that the backend holds at once; 0 if it reports none. It
	// matters only if Config.Tokens bounds the tokens.
	MaxTokens Tokens
}

// Amount is an amount of stock in its two units.
type Amount struct {
	Requests int
	Tokens   Tokens
}

// Foreign is the stock of other Weirs at a backend.
type Foreign struct {
	ID   BackendID
	Held Amount
}

// backend is a backend that is ready or holds a lease.
type backend struct {
	Backend
	ready bool

	// Requests held there.
	own      int // leases
	promoted int // leases granted by promotion
	foreign  int // other Weirs' requests; 0 unless it is ready
	byTier   []int32

	lower, upper parts // of bounds

	bounds        Bounds // its part of the pool's while it is ready
	foreignTokens Tokens // of other Weirs; the ledger does not sum them
}

func (b *backend) held() int { return b.own + b.foreign }

// SetBackends replaces the set of ready backends; of two with one ID the last counts. Backends that stay keep their
// foreign stock.
func (l *Ledger) SetBackends(ready []Backend) {
	before, was := l.backends, l.at
	l.backends, l.at = make([]backend, 0, len(ready)), make(map[BackendID]int, len(ready))
	l.ready, l.requests, l.atReady = 0, sums{}, atReady{}
	for i := range l.accounts {
		l.accounts[i].atReady = 0
	}
	for _, b := range ready {
		if i, twice := l.at[b.ID]; twice {
			l.discount(i)
			l.backends[i].Backend = b
			l.count(i)
			continue
		}
		entry := backend{}
		if i, known := was[b.ID]; known {
			entry = before[i]
		}
		entry.Backend, entry.ready = b, true
		l.count(l.enter(entry))
	}
	for i := range before {
		b := &before[i]
		if _, stays := l.at[b.ID]; !stays && b.own > 0 {
			b.ready, b.foreign, b.foreignTokens = false, 0, 0
			l.enter(*b)
		}
	}
	l.rebound()
}

// SetBackend adds a ready backend, or changes the one with its ID, and returns its new part of the bounds.
func (l *Ledger) SetBackend(b Backend) Bounds {
	i, known := l.at[b.ID]
	if known {
		l.discount(i)
	} else {
		i = l.enter(backend{Backend: b})
	}
	l.backends[i].Backend, l.backends[i].ready = b, true
	l.count(i)
	l.rebound()
	return l.backends[i].bounds
}

// RemoveBackend removes a backend that is no longer ready, with its foreign stock, and reports whether it was among the
// ready ones. Leases there stay until they are settled, and do not count until it is ready again.
func (l *Ledger) RemoveBackend(id BackendID) bool {
	i, known := l.at[id]
	if !known || !l.backends[i].ready {
		return false
	}
	l.discount(i)
	l.backends[i].ready, l.backends[i].foreign, l.backends[i].foreignTokens = false, 0, 0
	l.forgetIfEmpty(i)
	l.rebound()
	return true
}

// Counted returns the part of an amount that counts as foreign stock: each number is clamped to 0 to MaxPerBackend or
// MaxTokens, and tokens without a request do not count, since no completion would ever free them.
func (a Amount) Counted() Amount {
	if a.Requests <= 0 {
		return Amount{}
	}
	return Amount{min(a.Requests, MaxPerBackend), clampTokens(a.Tokens)}
}

// SetForeign replaces the foreign stock at a backend and returns its counted part. The ledger itself counts the
// requests. ready reports whether the backend is ready; otherwise nothing counts.
func (l *Ledger) SetForeign(f Foreign) (counts Amount, ready bool) {
	i, known := l.at[f.ID]
	if !known || !l.backends[i].ready {
		return Amount{}, false
	}
	counts = f.Held.Counted()
	b := &l.backends[i]
	l.sum(b, -1)
	b.foreign, b.foreignTokens = counts.Requests, counts.Tokens
	l.sum(b, 1)
	return counts, true
}

// ForeignAt returns the counted foreign stock at a backend: none if it is not ready.
func (l *Ledger) ForeignAt(id BackendID) Amount {
	i, known := l.at[id]
	if !known {
		return Amount{}
	}
	return Amount{l.backends[i].foreign, l.backends[i].foreignTokens}
}

// enter appends a backend, and returns its position.
func (l *Ledger) enter(b backend) int {
	i := len(l.backends)
	l.backends = append(l.backends, b)
	l.at[b.ID] = i
	return i
}

// forgetIfEmpty removes a backend that is not ready and holds no lease.
func (l *Ledger) forgetIfEmpty(i int) {
	if b := &l.backends[i]; b.ready || b.own > 0 {
		return
	}
	delete(l.at, l.backends[i].ID)
	last := len(l.backends) - 1
	if i < last {
		l.backends[i] = l.backends[last]
		l.at[l.backends[i].ID] = i
	}
	l.backends[last] = backend{}
	l.backends = l.backends[:last]
}

// count computes a backend's contribution to the bounds and, if it is ready, adds that and its holdings to the sums.
func (l *Ledger) count(i int) {
	b := &l.backends[i]
	b.bounds = l.config.BoundsOf(b.Backend)
	b.lower, b.upper = partsOf(b.bounds.Requests.Lower), partsOf(b.bounds.Requests.Upper)
	if b.ready {
		l.requests.add(b.bounds.Requests)
		l.sum(b, 1)
	}
}

// discount subtracts count's additions from the sums.
func (l *Ledger) discount(i int) {
	if b := &l.backends[i]; b.ready {
		l.requests.subtract(b.bounds.Requests)
		l.sum(b, -1)
	}
}

// sum adds, or subtracts, the holdings of a ready backend.
func (l *Ledger) sum(b *backend, sign int) {
	l.ready += sign
	l.atReady.held += sign * b.held()
	l.atReady.foreign += sign * b.foreign
	l.atReady.promoted += sign * b.promoted
	l.atReady.lower.add(b.lower, b.held(), sign)
	l.atReady.upper.add(b.upper, b.held(), sign)
	for tier, n := range b.byTier {
		l.accounts[tier].atReady += sign * int(n)
	}
}

// change adds a lease at a backend, or removes one.
func (l *Ledger) change(lease *Lease, by int) {
	i, known := l.at[lease.backend]
	if !known {
		i = l.enter(backend{Backend: Backend{ID: lease.backend}})
	}
	b := &l.backends[i]
	if b.ready {
		besides := b.held() + min(0, by)
		l.atReady.lower.hold(b.lower, besides, by)
		l.atReady.upper.hold(b.upper, besides, by)
		l.atReady.held += by
		l.accounts[lease.tier].atReady += by
	}
	if lease.promoted {
		b.promoted += by
		if b.ready {
			l.atReady.promoted += by
		}
	}
	b.own += by
	for len(b.byTier) <= int(lease.tier) {
		b.byTier = append(b.byTier, 0)
	}
	b.byTier[lease.tier] += int32(by)
	if b.own == 0 {
		l.forgetIfEmpty(i)
	}
}

// rebound derives the limits from the sums, and the reservations from the capacity.
func (l *Ledger) rebound() {
	l.capacity = int(l.requests.upper.ceil())
	l.reserve()
}
