package stock

import (
	"math"
	"testing"
)

// both returns a ledger of one backend with bounds of 8, 10 and 12 requests, and a watermark of 1,000 tokens.
func both() *Ledger {
	l := New(Config{
		WatermarkPerBackend: 10, PercentageDeviationForBounds: One / 10, LowerBoundPerBackend: 8, UpperBoundPerBackend: 12,
		Tokens: TokensConfig{Watermark: 1000},
	})
	l.SetBackends(pool(1))
	return l
}

// take takes n leases with so many tokens each.
func take(l *Ledger, n int, tokens Tokens) []*Lease {
	leases := make([]*Lease, n)
	for i := range leases {
		lease := NewLease(0, tokens, false)
		leases[i] = &lease
		l.Take(leases[i], l.emptiest())
	}
	return leases
}

// A backend's contribution in tokens is derived, explicit, or exactly what it reports.
func TestTokensBand(t *testing.T) {
	for _, c := range []struct {
		name    string
		config  TokensConfig
		backend Backend
		want    Band
	}{
		{"derived by the deviation of a tenth", TokensConfig{Watermark: 5}, Backend{}, Band{4_500_000, 5 * One, 5_500_000}},
		{"explicit", TokensConfig{Watermark: 50, Lower: 20, Upper: 70}, Backend{}, Band{20 * One, 50 * One, 70 * One}},
		{"the smallest explicit bounds", TokensConfig{Watermark: 1, Lower: 1, Upper: 1}, Backend{}, Band{One, One, One}},
		{"as it reports", TokensConfig{Watermark: 50, Lower: 20}, Backend{MaxTokens: 80}, Band{80 * One, 80 * One, 80 * One}},
		{
			"it reports more than there can be",
			TokensConfig{Watermark: 50},
			Backend{MaxTokens: math.MaxInt64},
			Band{MaxTokensPerBackend * One, MaxTokensPerBackend * One, MaxTokensPerBackend * One},
		},
		{"off, and it reports", TokensConfig{}, Backend{MaxTokens: 80}, Band{}},
	} {
		l := New(withTokens(c.config))
		if got := l.SetBackend(c.backend).Tokens; got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// The tokens of a lease can be raised while it is held, and trued up repeatedly; settling subtracts the latest. A settled
// lease cannot be changed.
func TestAdjust(t *testing.T) {
	l := both()
	other := take(l, 1, 100)[0]
	lease := take(l, 1, 500)[0]
	for _, c := range []struct {
		to, stock Tokens
	}{
		{1000, 1100}, // its answer has grown
		{30, 130},    // the usage is known
		{0, 100},
		{-5, 100},
		{MaxTokens + 1, 100 + MaxTokens},
		{700, 800},
	} {
		if !l.Adjust(lease, c.to) || l.Tokens() != c.stock || l.Stock() != 2 {
			t.Errorf("adjusted to %d: tokens %d, want %d", c.to, l.Tokens(), c.stock)
		}
		checkLedger(t, l)
	}
	if lease.Tokens() != 700 {
		t.Errorf("it stands for %d, want 700", lease.Tokens())
	}
	if !l.Settle(lease) || l.Tokens() != 100 || l.Settle(lease) {
		t.Errorf("tokens %d after its settlement, want the other's 100", l.Tokens())
	}
	if l.Adjust(lease, 50) || l.Tokens() != 100 {
		t.Errorf("adjusted after its settlement: tokens %d", l.Tokens())
	}
	l.Settle(other)
	if l.Tokens() != 0 || l.Stock() != 0 {
		t.Errorf("stock %d, tokens %d remain", l.Stock(), l.Tokens())
	}
}

// No value that a client or a peer can choose makes a sum wrap around.
func TestTokensSaturate(t *testing.T) {
	l := both()
	take(l, 100, math.MaxInt64)
	if l.Tokens() != 100*MaxTokens {
		t.Errorf("tokens %d, want %d", l.Tokens(), 100*Tokens(MaxTokens))
	}
	take(l, 1, math.MinInt64)
	if l.Tokens() != 100*MaxTokens {
		t.Errorf("a tokens below 0 counts %d", l.Tokens()-100*MaxTokens)
	}
	if counts, _ := l.SetForeign(Foreign{0, Amount{math.MaxInt, math.MaxInt64}}); counts != (Amount{MaxPerBackend, MaxTokens}) || l.Foreign() != MaxPerBackend {
		t.Errorf("foreign %v", counts)
	}
	if counts, _ := l.SetForeign(Foreign{0, Amount{math.MinInt, math.MinInt64}}); counts != (Amount{}) || l.Foreign() != 0 {
		t.Errorf("foreign below 0 counts %v", counts)
	}
	for _, n := range []int{0, -1} { // no completion would ever free them
		if counts, _ := l.SetForeign(Foreign{0, Amount{n, 19}}); counts != (Amount{}) {
			t.Errorf("19 foreign tokens of %d requests count %v", n, counts)
		}
	}
	checkLedger(t, l)
}
