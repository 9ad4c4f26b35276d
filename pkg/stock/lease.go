package stock

// MaxCost is the largest cost that one lease stands for, and the largest foreign one at a backend. Sums are exact for
// two million of each.
const MaxCost = 1 << 40

// clampCost brings a cost into 0 to MaxCost.
func clampCost(cost int64) int64 { return max(0, min(cost, MaxCost)) }

// Lease is one request's holding of stock. The zero value is not held. It is meant to lie inside the owner's
// structure. Only the ledger changes what it stands for, so that what is settled is what is counted.
type Lease struct {
	tier     int
	cost     int64
	promoted bool
	held     bool
}

// NewLease is a lease, not yet taken, of a tier (0 to MaxTiers-1) and a cost, which is clamped into 0 to MaxCost;
// promoted: it was granted by promotion.
func NewLease(tier int, cost int64, promoted bool) Lease {
	return Lease{tier: tier, cost: clampCost(cost), promoted: promoted}
}

// Tier is the identifier of the tier that the lease counts for.
func (l *Lease) Tier() int { return l.tier }

// Cost is what the lease stands for: what it adds to the ledger's cost while it is held.
func (l *Lease) Cost() int64 { return l.cost }

// Promoted reports whether the lease was granted by promotion.
func (l *Lease) Promoted() bool { return l.promoted }

// Held reports whether the lease is taken and not settled.
func (l *Lease) Held() bool { return l.held }

// Take takes a lease. One that is held already is a broken contract and panics.
func (l *Ledger) Take(lease *Lease) {
	if lease.held {
		panic("stock: lease taken twice")
	}
	lease.held = true
	l.held.Requests++
	l.held.Cost += lease.cost
	l.accounts[lease.tier].inflight++
	if lease.promoted {
		l.promoted++
	}
}

// Adjust makes a held lease stand for another cost, higher or lower, clamped into 0 to MaxCost: an answer has grown
// beyond its estimate, or the usage is known. It reports whether the lease is held; otherwise nothing changes.
func (l *Ledger) Adjust(lease *Lease, cost int64) bool {
	if !lease.held {
		return false
	}
	l.held.Cost -= lease.cost
	lease.cost = clampCost(cost)
	l.held.Cost += lease.cost
	return true
}

// Settle gives the lease back, with what it stands for now, and reports whether it was held; otherwise nothing changes.
func (l *Ledger) Settle(lease *Lease) bool {
	if !lease.held {
		return false
	}
	lease.held = false
	l.held.Requests--
	l.held.Cost -= lease.cost
	l.accounts[lease.tier].inflight--
	if lease.promoted {
		l.promoted--
	}
	return true
}
