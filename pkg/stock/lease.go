package stock

// Tokens is a request's part of an engine's memory, in weighted tokens. The stock counts them besides requests; they
// may differ from the queue's charge.
type Tokens int64

// MaxTokens is the most tokens of one lease, and of the foreign stock at a backend. Sums are exact for two million of
// each.
const MaxTokens = 1 << 40

// clampTokens clamps a number of tokens to 0 to MaxTokens.
func clampTokens(tokens Tokens) Tokens { return max(0, min(tokens, MaxTokens)) }

// Lease is one request's holding of stock. The zero value is not held. It is meant to be embedded in the owner's
// structure. Only the ledger can change its tokens, so that settling subtracts exactly the counted tokens.
type Lease struct {
	tokens   Tokens
	backend  BackendID
	tier     uint8
	promoted bool
	held     bool
}

// NewLease returns a lease, not yet taken, for a tier (0 to MaxTiers-1) and tokens, which are clamped to 0 to MaxTokens.
// promoted means that it was granted by promotion.
func NewLease(tier int, tokens Tokens, promoted bool) Lease {
	return Lease{tokens: clampTokens(tokens), tier: uint8(tier), promoted: promoted}
}

// Tier returns the identifier of the tier that the lease counts for.
func (l *Lease) Tier() int { return int(l.tier) }

// Tokens returns the lease's part of the ledger's tokens while it is held. It keeps them when it is settled.
func (l *Lease) Tokens() Tokens { return l.tokens }

// Promoted reports whether the lease was granted by promotion.
func (l *Lease) Promoted() bool { return l.promoted }

// Held reports whether the lease has been taken and not settled.
func (l *Lease) Held() bool { return l.held }

// Take adds a lease at a backend to the stock. It panics if the lease is held already.
func (l *Ledger) Take(lease *Lease, at BackendID) {
	if lease.held {
		panic("stock: lease taken twice")
	}
	lease.held, lease.backend = true, at
	l.change(lease, 1)
	l.held.Requests++
	l.held.Tokens += lease.tokens
	l.accounts[lease.tier].inflight++
	if lease.promoted {
		l.promoted++
	}
}

// Adjust changes a held lease's tokens, which are clamped to 0 to MaxTokens, because an answer has outgrown its estimate or
// the usage is known. It reports whether the lease is held; if not, nothing changes.
func (l *Ledger) Adjust(lease *Lease, tokens Tokens) bool {
	if !lease.held {
		return false
	}
	l.held.Tokens -= lease.tokens
	lease.tokens = clampTokens(tokens)
	l.held.Tokens += lease.tokens
	return true
}

// Move moves a held lease to another backend.
func (l *Ledger) Move(lease *Lease, to BackendID) {
	l.change(lease, -1)
	lease.backend = to
	l.change(lease, 1)
}

// Settle removes the lease from the stock, with its latest tokens, and reports whether it was held; if not, nothing
// changes.
func (l *Ledger) Settle(lease *Lease) bool {
	if !lease.held {
		return false
	}
	lease.held = false
	l.change(lease, -1)
	l.held.Requests--
	l.held.Tokens -= lease.tokens
	l.accounts[lease.tier].inflight--
	if lease.promoted {
		l.promoted--
	}
	return true
}
