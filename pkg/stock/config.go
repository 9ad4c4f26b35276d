package stock

import "github.com/weir-epp/weir/pkg/invalid"

// MaxPerBackend is the largest watermark or bound of one backend, in requests.
const MaxPerBackend = 1_000_000

// MaxTokensPerBackend is the largest watermark or bound of one backend, in tokens.
const MaxTokensPerBackend = 1_000_000_000

// Config is the band of one backend.
type Config struct {
	// WatermarkPerBackend is the target stock, 1 to MaxPerBackend requests.
	WatermarkPerBackend int
	// PercentageDeviationForBounds derives the bounds from the watermark: between 0 and 1, both exclusive.
	PercentageDeviationForBounds Micro
	// LowerBoundPerBackend and UpperBoundPerBackend are explicit bounds, or Derived to compute them from the watermark.
	// 0 <= lower <= watermark <= upper <= MaxPerBackend.
	LowerBoundPerBackend, UpperBoundPerBackend int
	// SlotsPerBackend, above 0, sets all three for a backend that reports no slots.
	SlotsPerBackend int
	// Follow sets all three, for a backend that reports no slots, to a bound that the caller learns from the engine
	// (Learned), starting with StartSlots.
	Follow bool
	// Stated gives the slots stated by an engine precedence over its source's and over SlotsPerBackend. Follow implies
	// it.
	Stated bool
	// Unbounded removes the bounds in requests of every backend, whatever it reports.
	Unbounded bool
	// Tokens bounds the stock in tokens as well.
	Tokens TokensConfig
}

// TokensConfig is the band of one backend in tokens.
type TokensConfig struct {
	// Watermark is the target stock, 0 to MaxTokensPerBackend; with 0, tokens are counted but not bounded.
	Watermark Tokens
	// Lower and Upper are the bounds; 0 derives them with Config.PercentageDeviationForBounds. Lower <= Watermark <=
	// Upper.
	Lower, Upper Tokens
}

// unboundedPerBackend is the contribution of each backend with Config.Unbounded: more requests than any stock, but few
// enough for exact sums and shares.
const unboundedPerBackend = 1_000 * MaxPerBackend

// Derived is the value of a bound that is computed from the watermark and PercentageDeviationForBounds.
const Derived = -1

// DefaultConfig returns the seed's defaults: watermark 2 ± 10 %.
func DefaultConfig() Config {
	return Config{
		WatermarkPerBackend: 2, PercentageDeviationForBounds: One / 10,
		LowerBoundPerBackend: Derived, UpperBoundPerBackend: Derived,
	}
}

// Validate reports every problem at once, as invalid.Problems.
func (c *Config) Validate() error {
	var ps invalid.Problems
	if d := c.PercentageDeviationForBounds; d <= 0 || d >= One {
		ps.Add(invalid.At("PercentageDeviationForBounds"), d.Float(), "must be above 0 and below 1")
	}
	c.checkBounds(&ps)
	if c.SlotsPerBackend != 0 {
		invalid.Within(&ps, invalid.At("SlotsPerBackend"), c.SlotsPerBackend, 1, MaxPerBackend)
	}
	c.Tokens.check(&ps, invalid.At("Tokens"))
	return ps.Err()
}

// checkBounds checks lower <= watermark <= upper. Derived bounds need no check if the watermark is valid.
func (c *Config) checkBounds(ps *invalid.Problems) {
	watermark, lower, upper := invalid.At("WatermarkPerBackend"), invalid.At("LowerBoundPerBackend"), invalid.At("UpperBoundPerBackend")
	const advice = "; to keep n batch slots busy, set %s, %s and %s all to n"
	if !invalid.Within(ps, watermark, c.WatermarkPerBackend, 1, MaxPerBackend) {
		return
	}
	if n := c.LowerBoundPerBackend; n != Derived && invalid.AtLeast(ps, lower, n, 0) && n > c.WatermarkPerBackend {
		ps.Add(lower, n, "must be at most %s (%d)"+advice, watermark, c.WatermarkPerBackend, watermark, lower, upper)
	}
	switch n := c.UpperBoundPerBackend; {
	case n == Derived:
	case n > MaxPerBackend:
		ps.Add(upper, n, "must be at most %d", MaxPerBackend)
	case n < c.WatermarkPerBackend:
		ps.Add(upper, n, "must be at least %s (%d)"+advice, watermark, c.WatermarkPerBackend, watermark, lower, upper)
	}
}

func (c *TokensConfig) check(ps *invalid.Problems, at invalid.Path) {
	watermark, upper := at.At("Watermark"), at.At("Upper")
	invalid.Within(ps, watermark, c.Watermark, 0, MaxTokensPerBackend)
	if c.Lower != 0 && (c.Lower < 0 || c.Lower > c.Watermark) {
		ps.Add(at.At("Lower"), c.Lower, "must be from 1 to %s (%d), which must be above 0", watermark, c.Watermark)
	}
	if c.Upper < 0 || c.Upper > MaxTokensPerBackend || c.Upper > 0 && (c.Upper < c.Watermark || c.Watermark <= 0) {
		ps.Add(upper, c.Upper, "must be from %s (%d), which must be above 0, to %d", watermark, c.Watermark, MaxTokensPerBackend)
	}
}
