package stock

import "math/bits"

// MaxTiers is the number of tier identifiers: 0 to MaxTiers-1.
const MaxTiers = 64

// TierSet is a set of tiers by their identifiers.
type TierSet uint64

// account is the account of one tier, in leases.
type account struct {
	inflight int // held
	atReady  int // held at ready backends
	reserved int
}

// Reservation is a tier's baseline.
type Reservation struct {
	// Tier is the tier's identifier.
	Tier int
	// Floor is in leases, PerSlot a share of the capacity; both at least 0.
	Floor   int
	PerSlot Micro
}

// SetReservations sets the tiers by rank, highest first, with their baselines.
func (l *Ledger) SetReservations(byRank []Reservation) {
	l.order = append(l.order[:0], byRank...)
	l.reserve()
}

// reserve distributes the capacity among the reservations, highest tier first.
func (l *Ledger) reserve() {
	for i := range l.accounts {
		l.accounts[i].reserved = 0
	}
	if l.config.Unbounded {
		return // no tier lacks anything
	}
	remaining := l.Capacity()
	for _, r := range l.order {
		reserved := min(r.Wanted(l.Capacity()), remaining)
		l.accounts[r.Tier].reserved = reserved
		remaining -= reserved
	}
}

// Wanted returns the number of leases in the baseline at a capacity; a floor may exceed the capacity.
func (r Reservation) Wanted(capacity int) int {
	hi, lo := bits.Mul64(uint64(r.PerSlot), uint64(capacity))
	if hi >= uint64(One) {
		return max(r.Floor, capacity)
	}
	share, rest := bits.Div64(hi, lo, uint64(One))
	if rest > 0 {
		share++
	}
	return max(r.Floor, int(min(uint64(capacity), share)))
}

// Inflight returns the number of leases that a tier holds.
func (l *Ledger) Inflight(tier int) int { return l.accounts[tier].inflight }

// Reserved returns the number of leases reserved for a tier at the present capacity.
func (l *Ledger) Reserved(tier int) int { return l.accounts[tier].reserved }

// Available returns the number of further leases that capacity and reservations permit the tier; it is never negative.
func (l *Ledger) Available(tier int) int { return max(0, l.Headroom(tier)) }

// Headroom is Available without clamping; a negative value is a shortfall.
func (l *Ledger) Headroom(tier int) int {
	free := l.free()
	for _, r := range l.order {
		if r.Tier == tier {
			break
		}
		free -= l.accounts[r.Tier].unused()
	}
	return free
}

// free returns the unused capacity.
func (l *Ledger) free() int { return l.atReady.upper.left(0) }

func (a *account) unused() int { return max(0, a.reserved-a.atReady) }

// AvailableTo returns the set of tiers to which something is available.
func (l *Ledger) AvailableTo() TierSet {
	var set TierSet
	free := l.free()
	for _, r := range l.order {
		if free <= 0 {
			break
		}
		set |= 1 << r.Tier
		free -= l.accounts[r.Tier].unused()
	}
	return set
}

// InUse returns the set of tiers that hold leases.
func (l *Ledger) InUse() TierSet {
	var set TierSet
	for i := range l.accounts {
		if l.accounts[i].inflight > 0 {
			set |= 1 << i
		}
	}
	return set
}
