package stock

// MaxCost is the largest cost of one lease, and the largest foreign cost at a backend. Sums are exact for two million
// of each.
const MaxCost = 1 << 40

// clampCost clamps a cost to 0 to MaxCost.
func clampCost(cost int64) int64 { return max(0, min(cost, MaxCost)) }

// Lease is one request's holding of stock. The zero value is not held. It is meant to be embedded in the owner's
// structure. Only the ledger can change its cost, so that settling subtracts exactly what was counted.
type Lease struct {
	cost     int64
	tier     int32
	promoted bool
	held     bool
}

// NewLease returns a lease, not yet taken, for a tier (0 to MaxTiers-1) and a cost, which is clamped to 0 to MaxCost.
// promoted means that it was granted by promotion.
func NewLease(tier int, cost int64, promoted bool) Lease {
	return Lease{cost: clampCost(cost), tier: int32(tier), promoted: promoted}
}

// Tier returns the identifier of the tier that the lease counts for.
func (l *Lease) Tier() int { return int(l.tier) }

// Cost returns what the lease adds to the ledger's cost while it is held.
func (l *Lease) Cost() int64 { return l.cost }

// Promoted reports whether the lease was granted by promotion.
func (l *Lease) Promoted() bool { return l.promoted }

// Held reports whether the lease has been taken and not settled.
func (l *Lease) Held() bool { return l.held }

// Take adds a lease to the stock. It panics if the lease is held already.
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

// Adjust changes a held lease's cost, which is clamped to 0 to MaxCost, because an answer has outgrown its estimate or
// the usage is known. It reports whether the lease is held; if not, nothing changes.
func (l *Ledger) Adjust(lease *Lease, cost int64) bool {
	if !lease.held {
		return false
	}
	l.held.Cost -= lease.cost
	lease.cost = clampCost(cost)
	l.held.Cost += lease.cost
	return true
}

// Settle removes the lease from the stock, with its latest cost, and reports whether it was held; if not, nothing
// changes.
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
