package stock

import (
	"math"
	"strings"
	"testing"
)

// The bounds of a pool are exact decimals, and stock exactly at a bound is not below it.
func TestBand(t *testing.T) {
	seed := DefaultConfig()
	with := func(change func(c *Config)) Config {
		c := seed
		change(&c)
		return c
	}
	for _, c := range []struct {
		name     string
		config   Config
		backends []Backend
		want     Band
		capacity int
	}{
		{"one backend of the seed's", seed, pool(1), Band{1_800_000, 2_000_000, 2_200_000}, 3},
		{"two", seed, pool(2), Band{3_600_000, 4_000_000, 4_400_000}, 5},
		{"2 × 1.1 × 25 is 55", seed, pool(25), Band{45_000_000, 50_000_000, 55_000_000}, 55},
		{"none ready", seed, nil, Band{}, 0},
		{
			"explicit bounds", with(func(c *Config) { c.WatermarkPerBackend, c.LowerBoundPerBackend, c.UpperBoundPerBackend = 8, 6, 12 }),
			pool(3),
			Band{18 * One, 24 * One, 36 * One},
			36,
		},
		{
			"lower bound of 0", with(func(c *Config) { c.LowerBoundPerBackend = 0 }),
			pool(2),
			Band{0, 4 * One, 4_400_000},
			5,
		},
		{"a backend that reports 16 slots", seed, []Backend{{ID: 1, Slots: 16}, {ID: 2}}, Band{17_800_000, 18 * One, 18_200_000}, 19},
		{
			"slotsPerBackend for those that report none", with(func(c *Config) { c.SlotsPerBackend = 64 }),
			[]Backend{{ID: 1, Slots: 16}, {ID: 2}},
			Band{80 * One, 80 * One, 80 * One},
			80,
		},
		{
			"a backend that reports more slots than there can be", seed,
			[]Backend{{Slots: math.MaxInt32}},
			Band{MaxPerBackend * One, MaxPerBackend * One, MaxPerBackend * One},
			MaxPerBackend,
		},
		{
			"the smallest deviation", with(func(c *Config) { c.WatermarkPerBackend, c.PercentageDeviationForBounds = 1, 1 }),
			pool(1),
			Band{999_999, One, 1_000_001},
			2,
		},
		{
			"the largest of everything", with(func(c *Config) {
				c.WatermarkPerBackend, c.PercentageDeviationForBounds = MaxPerBackend, One-1
			}),
			pool(1),
			Band{1_000_000, MaxPerBackend * One, MaxPerBackend * (2*One - 1)},
			1_999_999,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := c.config.Validate(); err != nil {
				t.Fatal(err)
			}
			l := New(c.config)
			l.SetBackends(c.backends)
			if l.Band() != c.want || l.Capacity() != c.capacity || l.Ready() != len(c.backends) {
				t.Errorf("band %v, capacity %d, want %v and %d", l.Band(), l.Capacity(), c.want, c.capacity)
			}
			// Capacity is the number of unit leases that "stock < upper bound" permits, and with a backend the first is
			// always permitted.
			if taken := takeWhile(l, (*Ledger).BelowUpper, 100); taken != min(c.capacity, 100) {
				t.Errorf("%d leases below the upper bound, want %d", taken, c.capacity)
			}
			checkLedger(t, l)
		})
	}
}

// pool returns n backends without reports.
func pool(n int) []Backend {
	backends := make([]Backend, n)
	for i := range backends {
		backends[i].ID = BackendID(i)
	}
	return backends
}

// withTokens returns the seed's band with a band of tokens.
func withTokens(tokens TokensConfig) Config {
	c := DefaultConfig()
	c.Tokens = tokens
	return c
}

// emptiest returns the ready backend with the most room below its upper bound, or else with the fewest requests.
func (l *Ledger) emptiest() (at BackendID) {
	most := math.MinInt
	for i := range l.backends {
		b := &l.backends[i]
		if left := b.bounds.Requests.Upper.Ceil() - b.held(); b.ready && left > most {
			at, most = b.ID, left
		}
	}
	return at
}

// takeWhile takes at most n leases while may allows it.
func takeWhile(l *Ledger, may func(*Ledger) bool, n int) (taken int) {
	for taken < n && may(l) {
		l.Take(&Lease{tokens: 1}, l.emptiest())
		taken++
	}
	return taken
}

// "Two backends, defaults: five bypass an empty queue, since stock 4 is below 4.4; the rest wait; poppers release while
// stock is below 3.6".
func TestFiveBypass(t *testing.T) {
	l := New(DefaultConfig())
	l.SetBackends(pool(2))
	leases := make([]Lease, 5)
	for i := range leases {
		if !l.BelowUpper() {
			t.Fatalf("stock %d does not let number %d bypass", l.Stock(), i+1)
		}
		l.Take(&leases[i], l.emptiest())
	}
	if l.BelowUpper() {
		t.Fatal("the sixth bypasses")
	}
	for i := range leases {
		if want := l.Stock() <= 3; l.BelowLower() != want {
			t.Errorf("stock %d: released %t, want %t", l.Stock(), l.BelowLower(), want)
		}
		l.Settle(&leases[i])
	}
	checkLedger(t, l)
}

// With a ready backend and stock 0 a release is allowed with any bounds; without a backend, never.
func TestWorkConservation(t *testing.T) {
	cfg := DefaultConfig()
	cfg.LowerBoundPerBackend = 0
	l := New(cfg)
	if l.BelowLower() || l.BelowUpper() {
		t.Error("released without a ready backend")
	}
	l.SetBackends(pool(1))
	if !l.BelowLower() {
		t.Error("an idle pool releases nobody")
	}
	var lease Lease
	l.Take(&lease, 0)
	if l.BelowLower() {
		t.Error("stock 1 is below a lower bound of 0")
	}
}

// Validate names all bad fields at once.
func TestValidate(t *testing.T) {
	for _, c := range []struct {
		config Config
		want   []string
	}{
		{DefaultConfig(), nil},
		{Config{WatermarkPerBackend: 2, PercentageDeviationForBounds: 1, LowerBoundPerBackend: 2, UpperBoundPerBackend: 2}, nil},
		{
			Config{WatermarkPerBackend: 0, PercentageDeviationForBounds: One, LowerBoundPerBackend: 1, UpperBoundPerBackend: -1, SlotsPerBackend: -1},
			[]string{"WatermarkPerBackend: 0", "PercentageDeviationForBounds: 1", "SlotsPerBackend: -1"},
		},
		{
			Config{WatermarkPerBackend: MaxPerBackend + 1, LowerBoundPerBackend: -1, UpperBoundPerBackend: MaxPerBackend},
			[]string{"WatermarkPerBackend: 1000001", "PercentageDeviationForBounds: 0"},
		},
		{
			Config{WatermarkPerBackend: 1, PercentageDeviationForBounds: 1, UpperBoundPerBackend: MaxPerBackend + 1, SlotsPerBackend: MaxPerBackend + 1},
			[]string{"UpperBoundPerBackend: 1000001", "SlotsPerBackend: 1000001"},
		},
		{
			Config{WatermarkPerBackend: 5, PercentageDeviationForBounds: 1, LowerBoundPerBackend: 6, UpperBoundPerBackend: 4},
			[]string{"LowerBoundPerBackend: 6", "UpperBoundPerBackend: 4"},
		},
		{
			Config{WatermarkPerBackend: 5, PercentageDeviationForBounds: 1, LowerBoundPerBackend: Derived - 1, UpperBoundPerBackend: Derived - 1},
			[]string{"LowerBoundPerBackend: -2", "UpperBoundPerBackend: -2"},
		},
		{withTokens(TokensConfig{Watermark: 1000}), nil},
		{withTokens(TokensConfig{Watermark: MaxTokensPerBackend, Lower: MaxTokensPerBackend, Upper: MaxTokensPerBackend}), nil},
		{
			withTokens(TokensConfig{Watermark: -1, Lower: 1, Upper: 1}),
			[]string{"Tokens.Watermark: -1", "Tokens.Lower: 1", "Tokens.Upper: 1"},
		},
		{
			withTokens(TokensConfig{Watermark: MaxTokensPerBackend + 1, Lower: -1, Upper: -1}),
			[]string{"Tokens.Watermark: 1000000001", "Tokens.Lower: -1", "Tokens.Upper: -1"},
		},
		{withTokens(TokensConfig{Watermark: 10, Lower: 11, Upper: 9}), []string{"Tokens.Lower: 11", "Tokens.Upper: 9"}},
		{withTokens(TokensConfig{Upper: 5}), []string{"Tokens.Upper: 5"}},
		{withTokens(TokensConfig{Watermark: 5, Upper: MaxTokensPerBackend + 1}), []string{"Tokens.Upper: 1000000001"}},
	} {
		err := c.config.Validate()
		if (err != nil) != (len(c.want) > 0) {
			t.Errorf("%+v: %v", c.config, err)
		}
		for _, want := range c.want {
			if err != nil && !strings.Contains(err.Error(), want+": must be ") {
				t.Errorf("%v: does not name %q", err, want)
			}
		}
	}
}
