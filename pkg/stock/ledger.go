package stock

// Ledger is the account of leases and capacity. It is not safe for concurrent use: its owner has a lock.
type Ledger struct {
	config   Config
	backends []readyBackend // the ready ones, unordered
	at       map[BackendID]int

	// Derived from the backends.
	requests     sums
	foreign      int
	lower, upper int // rounded up

	order    []Reservation // by rank, highest first
	accounts [MaxTiers]account

	held     Amount // the leases taken and not settled
	promoted int    // of these, the ones granted by promotion
}

// New returns an empty ledger without backends.
func New(cfg Config) *Ledger {
	l := &Ledger{config: cfg, at: map[BackendID]int{}}
	l.rebound()
	return l
}

// Configure changes the bounds of every backend; leases and foreign stock stay.
func (l *Ledger) Configure(cfg Config) {
	l.config = cfg
	l.requests, l.foreign = sums{}, 0
	for i := range l.backends {
		l.count(i)
	}
	l.rebound()
}

// Stock returns the number of leases held.
func (l *Ledger) Stock() int { return l.held.Requests }

// Tokens returns the sum of the tokens of the leases held.
func (l *Ledger) Tokens() Tokens { return l.held.Tokens }

// Foreign returns the number of requests that others hold at the ready backends.
func (l *Ledger) Foreign() int { return l.foreign }

// Promoted returns the number of leases held that were granted by promotion.
func (l *Ledger) Promoted() int { return l.promoted }

// Ready returns the number of ready backends.
func (l *Ledger) Ready() int { return len(l.backends) }

// Band returns the pool's band in requests.
func (l *Ledger) Band() Band { return l.requests.band() }

// Unbounded reports whether the stock has no bound in requests, which takes a ready backend.
func (l *Ledger) Unbounded() bool { return l.config.Unbounded && len(l.backends) > 0 }

// Bounds returns what a ready backend contributes to the pool's bounds; ok is false if the backend is not ready.
func (l *Ledger) Bounds(id BackendID) (Bounds, bool) {
	if i, known := l.at[id]; known {
		return l.backends[i].bounds, true
	}
	return Bounds{}, false
}

// Capacity returns the upper bound in requests, rounded up, in leases.
func (l *Ledger) Capacity() int { return l.upper }

// BelowUpper reports whether the band in requests lets an arrival or a starved head through.
func (l *Ledger) BelowUpper() bool { return l.below(l.upper, 0) }

// BelowLower reports whether the band in requests lets a waiting request through.
func (l *Ledger) BelowLower() bool { return l.below(l.lower, 0) }

// BelowUpperWithoutOne reports whether BelowUpper would hold once some lease is settled.
func (l *Ledger) BelowUpperWithoutOne() bool { return l.below(l.upper, 1) }

// below reports whether the stock is below a bound once so many requests are gone.
func (l *Ledger) below(bound, gone int) bool {
	requests := l.held.Requests + l.foreign - gone
	return len(l.backends) > 0 && (requests <= 0 || requests < bound)
}
