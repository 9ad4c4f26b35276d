package stock

import (
	"math"
	"testing"
)

// both returns a ledger of one backend with bounds of 8, 10 and 12 requests and 900, 1,000 and 1,100 tokens.
func both() *Ledger {
	l := New(Config{
		WatermarkPerBackend: 10, PercentageDeviationForBounds: One / 10, LowerBoundPerBackend: 8, UpperBoundPerBackend: 12,
		Tokens: TokensConfig{Watermark: 1000},
	})
	l.SetBackends(pool(1))
	return l
}

// take takes n leases with so many tokens each, at backend 0.
func take(l *Ledger, n int, tokens Tokens) []*Lease {
	leases := make([]*Lease, n)
	for i := range leases {
		lease := NewLease(0, tokens, false)
		leases[i] = &lease
		l.Take(leases[i], 0)
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

// With both units bounded, stock must be below the bound in both, each compared exactly.
func TestBothUnitsBound(t *testing.T) {
	for _, c := range []struct {
		name                   string
		requests               int
		tokens                 Tokens // of all of them
		belowLower, belowUpper bool
	}{
		{"below in both", 7, 899, true, true},
		{"requests at their lower bound", 8, 8, false, true},
		{"tokens at its lower bound", 2, 900, false, true},
		{"requests at their upper bound", 12, 12, false, false},
		{"tokens at its upper bound", 2, 1100, false, false},
		{"one unit below it", 2, 1099, false, true},
		{"nothing there", 0, 0, true, true},
	} {
		l := both()
		for i := range c.requests {
			tokens := Tokens(1)
			if i == 0 {
				tokens = c.tokens - Tokens(c.requests) + 1
			}
			take(l, 1, tokens)
		}
		if l.Stock() != c.requests || l.Tokens() != c.tokens {
			t.Fatalf("%s: stock %d of tokens %d", c.name, l.Stock(), l.Tokens())
		}
		if l.BelowLower() != c.belowLower || l.BelowUpper() != c.belowUpper {
			t.Errorf("%s: below lower %t, below upper %t; want %t and %t", c.name, l.BelowLower(), l.BelowUpper(), c.belowLower, c.belowUpper)
		}
		checkLedger(t, l)
	}
}

// Without a watermark of tokens, no number is too high; they are counted nevertheless.
func TestTokensAreOffByDefault(t *testing.T) {
	l := New(DefaultConfig())
	l.SetBackends(pool(1))
	take(l, 1, MaxTokens)
	if !l.BelowLower() || !l.BelowUpper() || l.Tokens() != MaxTokens {
		t.Errorf("below lower %t, below upper %t, tokens %d", l.BelowLower(), l.BelowUpper(), l.Tokens())
	}
}

// An idle pool takes a request that is larger than all its bounds, and then nothing else.
func TestOneLargeRequestGoes(t *testing.T) {
	l := both()
	if !l.BelowLower() {
		t.Fatal("an idle pool releases nobody")
	}
	lease := take(l, 1, 1_000_000)[0]
	if l.BelowLower() || l.BelowUpper() {
		t.Error("more is released beside a request that is over the bound by itself")
	}
	l.Settle(lease)
	if !l.BelowLower() || l.Tokens() != 0 {
		t.Errorf("tokens %d remains", l.Tokens())
	}
}

// One backend with however many tokens closes itself alone, of however many backends and however far apart the bounds are;
// so does what others hold there.
func TestOneBackendClosesNoOther(t *testing.T) {
	cfg := withTokens(TokensConfig{Watermark: 1000, Lower: 100, Upper: 5000})
	cfg.SlotsPerBackend = 10
	l := New(cfg)
	l.SetBackends(pool(3))
	for id := range BackendID(2) {
		giant := NewLease(0, 200_000, false)
		l.Take(&giant, id)
		if !l.BelowLower() || !l.BelowUpper() {
			t.Fatalf("backends up to %d are full: below lower %t, below upper %t", id, l.BelowLower(), l.BelowUpper())
		}
	}
	l.SetForeign(Foreign{2, Amount{1, 100}})
	if l.BelowLower() || !l.BelowUpper() {
		t.Errorf("the third is at its lower bound: below lower %t, below upper %t", l.BelowLower(), l.BelowUpper())
	}
	l.SetForeign(Foreign{2, Amount{1, MaxTokens}})
	if l.BelowUpper() || l.Tokens() != 400_000 {
		t.Errorf("all are full: below upper %t, %d tokens", l.BelowUpper(), l.Tokens())
	}
	l.SetBackend(Backend{ID: 3})
	if !l.BelowLower() {
		t.Error("a new one is empty")
	}
	checkLedger(t, l)
}

// A lease counts where it is: after a move at the new backend, and at one that was away as soon as it is back.
func TestTokensAreWhereTheirLeaseIs(t *testing.T) {
	l := both()
	lease := take(l, 1, 2000)[0]
	l.SetBackends([]Backend{{ID: 1}})
	if !l.BelowLower() || l.Tokens() != 2000 {
		t.Errorf("its backend is away: below lower %t, %d tokens", l.BelowLower(), l.Tokens())
	}
	if !l.Move(lease, 1) || l.BelowUpper() {
		t.Errorf("it has moved to one that is ready: below upper %t", l.BelowUpper())
	}
	l.SetBackend(Backend{ID: 0})
	if !l.BelowUpper() {
		t.Error("it has moved away from the first")
	}
	l.SetBackends([]Backend{{ID: 7}, {ID: 7}})
	l.Move(lease, 7)
	l.SetBackends([]Backend{{ID: 0}, {ID: 1}, {ID: 7, Slots: 1}, {ID: 7, Slots: 2}})
	if l.Ready() != 3 {
		t.Errorf("%d are ready: one was said twice", l.Ready())
	}
	checkLedger(t, l)
	if l.Settle(lease); l.Tokens() != 0 || l.Move(lease, 1) || l.Tokens() != 0 {
		t.Errorf("%d tokens are left", l.Tokens())
	}
	checkLedger(t, l)
}

// The tokens of a lease can be raised while it is held, and trued up repeatedly; settling subtracts the latest. A settled
// lease cannot be changed.
func TestAdjust(t *testing.T) {
	l := both()
	other := take(l, 1, 100)[0]
	lease := take(l, 1, 500)[0]
	for _, c := range []struct {
		to         Tokens
		stock      Tokens
		belowUpper bool
	}{
		{1000, 1100, false}, // its answer has grown
		{999, 1099, true},
		{30, 130, true}, // the usage is known
		{0, 100, true},
		{-5, 100, true},
		{MaxTokens + 1, 100 + MaxTokens, false},
		{700, 800, true},
	} {
		if !l.Adjust(lease, c.to) || l.Tokens() != c.stock || l.BelowUpper() != c.belowUpper || l.Stock() != 2 {
			t.Errorf("adjusted to %d: tokens %d, want %d; below the upper bound %t", c.to, l.Tokens(), c.stock, l.BelowUpper())
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

// Whether there is room after one lease is settled depends on that lease's tokens; the number of requests alone does not
// tell.
func TestAfterOneLease(t *testing.T) {
	l := both()
	large, small := take(l, 1, 1000)[0], take(l, 1, 200)[0]
	if !l.BelowUpperAfter(large) || !l.BelowUpperAfter(small) {
		t.Error("1,200 of 1,100: without either it is below")
	}
	third := take(l, 1, 100)[0] // 1,300
	if !l.BelowUpperAfter(large) || l.BelowUpperAfter(third) || l.BelowUpperAfter(small) {
		t.Errorf("after the large one %t, the small one %t, the third %t; want true, false, false",
			l.BelowUpperAfter(large), l.BelowUpperAfter(small), l.BelowUpperAfter(third))
	}
	if !l.BelowUpperWithoutOne() {
		t.Error("3 of 12 requests")
	}
}

// No value that a client or a peer can choose makes a sum wrap around.
func TestTokensSaturate(t *testing.T) {
	l := both()
	take(l, 100, math.MaxInt64)
	if l.Tokens() != 100*MaxTokens || l.BelowUpper() {
		t.Errorf("tokens %d, want %d", l.Tokens(), 100*Tokens(MaxTokens))
	}
	take(l, 1, math.MinInt64)
	if l.Tokens() != 100*MaxTokens {
		t.Errorf("a tokens below 0 counts %d", l.Tokens()-100*MaxTokens)
	}
	l.SetForeign(Foreign{0, Amount{math.MaxInt, math.MaxInt64}})
	if l.Foreign() != (Amount{MaxPerBackend, MaxTokens}) {
		t.Errorf("foreign %v", l.Foreign())
	}
	l.SetForeign(Foreign{0, Amount{math.MinInt, math.MinInt64}})
	if l.Foreign() != (Amount{}) {
		t.Errorf("foreign below 0 counts %v", l.Foreign())
	}
	checkLedger(t, l)
}
