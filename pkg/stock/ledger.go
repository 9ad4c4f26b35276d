package stock

// Ledger is the account of leases and capacity. It is not safe for concurrent use: its owner has a lock.
type Ledger struct {
	config   Config
	backends []backend // the backends that are ready or hold a lease, unordered
	at       map[BackendID]int

	// Derived from the ready backends.
	ready    int // their number
	requests sums
	capacity int // the sum of their upper bounds, rounded up
	atReady  atReady

	order    []Reservation // by rank, highest first
	accounts [MaxTiers]account

	held     Amount // the leases taken and not settled
	promoted int    // leases granted by promotion
}

// atReady is the holdings of the ready backends, in requests.
type atReady struct {
	held         int // leases, and other Weirs' requests
	foreign      int // other Weirs' requests
	promoted     int // leases granted by promotion
	lower, upper room
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
	for i := range l.backends {
		l.discount(i)
		l.count(i)
	}
	l.rebound()
}

// Stock returns the number of leases held.
func (l *Ledger) Stock() int { return l.held.Requests }

// Tokens returns the sum of the tokens of the leases held.
func (l *Ledger) Tokens() Tokens { return l.held.Tokens }

// Foreign returns the number of other Weirs' requests at the ready backends.
func (l *Ledger) Foreign() int { return l.atReady.foreign }

// Promoted returns the number of leases held that were granted by promotion.
func (l *Ledger) Promoted() int { return l.promoted }

// PromotedAtReady returns the number of leases at ready backends that were granted by promotion.
func (l *Ledger) PromotedAtReady() int { return l.atReady.promoted }

// Ready returns the number of ready backends.
func (l *Ledger) Ready() int { return l.ready }

// AtReady returns the number of requests at the ready backends: leases, and other Weirs' requests.
func (l *Ledger) AtReady() int { return l.atReady.held }

// Band returns the pool's band in requests.
func (l *Ledger) Band() Band { return l.requests.band() }

// Unbounded reports whether the stock has no bound in requests, which requires a ready backend.
func (l *Ledger) Unbounded() bool { return l.config.Unbounded && l.ready > 0 }

// Bounds returns a ready backend's part of the pool's bounds; ok is false if the backend is not ready.
func (l *Ledger) Bounds(id BackendID) (Bounds, bool) {
	if i, known := l.at[id]; known && l.backends[i].ready {
		return l.backends[i].bounds, true
	}
	return Bounds{}, false
}

// Capacity returns the upper bound in requests, rounded up, in leases.
func (l *Ledger) Capacity() int { return l.capacity }

// BelowUpper reports whether the band in requests lets an arrival or a starved head through.
func (l *Ledger) BelowUpper() bool { return l.below(&l.atReady.upper, 0) }

// BelowLower reports whether the band in requests lets a waiting request through.
func (l *Ledger) BelowLower() bool { return l.below(&l.atReady.lower, 0) }

// BelowUpperWithoutOne reports whether BelowUpper would hold once a lease is settled at any ready backend for which
// TakesWithoutOne holds.
func (l *Ledger) BelowUpperWithoutOne() bool { return l.below(&l.atReady.upper, 1) }

// below reports whether there is room below a bound once gone requests have left, or the ready backends are empty.
func (l *Ledger) below(r *room, gone int) bool {
	return l.ready > 0 && (l.atReady.held <= gone || r.left(gone) > 0)
}

// TakesWithoutOne reports whether a backend is ready, and would be below its own upper bound once a lease there is
// settled.
func (l *Ledger) TakesWithoutOne(id BackendID) bool {
	i, known := l.at[id]
	if !known || !l.backends[i].ready {
		return false
	}
	b := &l.backends[i]
	held := b.held() - 1
	return held <= 0 || held < b.bounds.Requests.Upper.Ceil()
}
