package stock

import "math/bits"

// MaxTiers is the number of tier identifiers: 0 to MaxTiers-1.
const MaxTiers = 64

// TierSet is a set of tiers by their identifiers.
type TierSet uint64

// Ledger is the account of leases and capacity. It is not safe for concurrent use: its owner has a lock.
type Ledger struct {
	config   Config
	backends []Backend
	band     Band // Σ over the ready backends
	capacity int

	order    []Reservation // by rank, highest first
	accounts [MaxTiers]account

	stock    int
	cost     int64
	promoted int // leases granted by promotion
}

// account is a tier's.
type account struct{ inflight, reserved int }

// Reservation is a tier and its baseline.
type Reservation struct {
	// Tier is its identifier.
	Tier int
	// Floor is in leases, PerSlot a share of the capacity; both at least 0.
	Floor   int
	PerSlot Micro
}

// Lease is one request's holding of stock. The zero value is not held. It is meant to lie inside the owner's
// structure. Nobody can change what it stands for, so that what is settled is what was taken.
type Lease struct {
	tier     int
	cost     int64
	promoted bool
	held     bool
}

// NewLease is a lease, not yet taken, of a tier (0 to MaxTiers-1) and a cost of at least 0; promoted: it was granted by
// promotion.
func NewLease(tier int, cost int64, promoted bool) Lease {
	return Lease{tier: tier, cost: cost, promoted: promoted}
}

// Tier is the identifier of the tier that the lease counts for.
func (l *Lease) Tier() int { return l.tier }

// Cost is what the lease adds to the ledger's cost while it is held.
func (l *Lease) Cost() int64 { return l.cost }

// Promoted reports whether the lease was granted by promotion.
func (l *Lease) Promoted() bool { return l.promoted }

// Held reports whether the lease is taken and not settled.
func (l *Lease) Held() bool { return l.held }

// New is an empty ledger without backends.
func New(cfg Config) *Ledger { return &Ledger{config: cfg} }

// Configure changes the band; leases stay.
func (l *Ledger) Configure(cfg Config) {
	l.config = cfg
	l.recompute()
}

// SetBackends sets the ready backends.
func (l *Ledger) SetBackends(ready []Backend) {
	l.backends = append(l.backends[:0], ready...)
	l.recompute()
}

// SetReservations sets the tiers by rank, highest first, with their baselines.
func (l *Ledger) SetReservations(byRank []Reservation) {
	l.order = append(l.order[:0], byRank...)
	l.recompute()
}

func (l *Ledger) recompute() {
	l.band = Band{}
	for _, b := range l.backends {
		l.band = l.band.add(l.config.Of(b))
	}
	l.capacity = l.band.Upper.Ceil()
	remaining := l.capacity
	for i := range l.accounts {
		l.accounts[i].reserved = 0
	}
	for _, r := range l.order {
		reserved := min(r.desired(l.capacity), remaining)
		l.accounts[r.Tier].reserved = reserved
		remaining -= reserved
	}
}

// desired is what the baseline asks of a capacity.
func (r Reservation) desired(capacity int) int {
	hi, lo := bits.Mul64(uint64(r.PerSlot), uint64(capacity))
	if hi >= uint64(One) {
		return capacity
	}
	share, rest := bits.Div64(hi, lo, uint64(One))
	if rest > 0 {
		share++
	}
	return int(min(uint64(capacity), max(uint64(r.Floor), share)))
}

// Take takes a lease.
func (l *Ledger) Take(lease *Lease) {
	if lease.held {
		panic("stock: lease taken twice")
	}
	lease.held = true
	l.stock++
	l.cost += lease.cost
	l.accounts[lease.tier].inflight++
	if lease.promoted {
		l.promoted++
	}
}

// Settle gives the lease back; false: it was not held, and nothing has changed.
func (l *Ledger) Settle(lease *Lease) bool {
	if !lease.held {
		return false
	}
	lease.held = false
	l.stock--
	l.cost -= lease.cost
	l.accounts[lease.tier].inflight--
	if lease.promoted {
		l.promoted--
	}
	return true
}

// Stock is the number of leases held.
func (l *Ledger) Stock() int { return l.stock }

// Cost is the sum of the costs of the leases held.
func (l *Ledger) Cost() int64 { return l.cost }

// Promoted is the number of leases held that were granted by promotion.
func (l *Ledger) Promoted() int { return l.promoted }

// Ready is the number of ready backends.
func (l *Ledger) Ready() int { return len(l.backends) }

// Band is the pool's band.
func (l *Ledger) Band() Band { return l.band }

// Capacity is the upper bound rounded up, in leases.
func (l *Ledger) Capacity() int { return l.capacity }

// Inflight is the number of leases that a tier holds, Reserved what is reserved for it.
func (l *Ledger) Inflight(tier int) int { return l.accounts[tier].inflight }

// Reserved is the number of leases reserved for a tier at the present capacity.
func (l *Ledger) Reserved(tier int) int { return l.accounts[tier].reserved }

// BelowUpper says whether the band lets an arrival or a starved head through.
func (l *Ledger) BelowUpper() bool { return l.below(l.band.Upper) }

// BelowLower says whether the band lets a waiting request through.
func (l *Ledger) BelowLower() bool { return l.below(l.band.Lower) }

func (l *Ledger) below(bound Micro) bool {
	return len(l.backends) > 0 && (l.stock == 0 || Micro(l.stock)*One < bound)
}

// BelowUpperWithout is BelowUpper with so many leases less.
func (l *Ledger) BelowUpperWithout(n int) bool {
	return len(l.backends) > 0 && (l.stock <= n || Micro(l.stock-n)*One < l.band.Upper)
}

// Available is what a tier may still take, as far as capacity and reservations have a say; never negative.
func (l *Ledger) Available(tier int) int { return max(0, l.Headroom(tier)) }

// Headroom is Available before it is cut at 0: below it, as much is missing.
func (l *Ledger) Headroom(tier int) int {
	free := l.capacity - l.stock
	for _, r := range l.order {
		if r.Tier == tier {
			break
		}
		free -= l.accounts[r.Tier].unused()
	}
	return free
}

func (a *account) unused() int { return max(0, a.reserved-a.inflight) }

// AvailableTo is the set of tiers to which something is available.
func (l *Ledger) AvailableTo() TierSet {
	var set TierSet
	free := l.capacity - l.stock
	for _, r := range l.order {
		if free <= 0 {
			break
		}
		set |= 1 << r.Tier
		free -= l.accounts[r.Tier].unused()
	}
	return set
}

// InUse is the set of tiers that hold leases.
func (l *Ledger) InUse() TierSet {
	var set TierSet
	for i := range l.accounts {
		if l.accounts[i].inflight > 0 {
			set |= 1 << i
		}
	}
	return set
}
