package stock

// Band is a lower bound, a watermark and an upper bound.
type Band struct{ Lower, Watermark, Upper Micro }

// Bounds are the bands of stock in its two units.
type Bounds struct {
	Requests Band
	// Tokens is the zero value if tokens are not bounded.
	Tokens Band
}

// BoundsOf returns one backend's part of the pool's bounds. For a backend with reported slots, all bounds equal these,
// unless the stock is unbounded.
func (c *Config) BoundsOf(b Backend) Bounds {
	bounds := Bounds{Requests: c.requestsOf(int(b.Slots))}
	if c.Tokens.Watermark > 0 {
		bounds.Tokens = c.tokensOf(b.MaxTokens)
	}
	return bounds
}

func (c *Config) requestsOf(slots int) Band {
	if c.Unbounded {
		return exactly(unboundedPerBackend)
	}
	if slots <= 0 {
		slots = c.SlotsPerBackend
	}
	if slots <= 0 && c.Follow {
		slots = StartSlots
	}
	if slots > 0 {
		return exactly(int64(min(slots, MaxPerBackend)))
	}
	band := c.around(int64(c.WatermarkPerBackend))
	if c.LowerBoundPerBackend >= 0 {
		band.Lower = Micro(c.LowerBoundPerBackend) * One
	}
	if c.UpperBoundPerBackend >= 0 {
		band.Upper = Micro(c.UpperBoundPerBackend) * One
	}
	return band
}

func (c *Config) tokensOf(most Tokens) Band {
	if most > 0 {
		return exactly(int64(min(most, MaxTokensPerBackend)))
	}
	band := c.around(int64(c.Tokens.Watermark))
	if c.Tokens.Lower > 0 {
		band.Lower = Micro(c.Tokens.Lower) * One
	}
	if c.Tokens.Upper > 0 {
		band.Upper = Micro(c.Tokens.Upper) * One
	}
	return band
}

// around returns the band that the deviation gives around a watermark.
func (c *Config) around(watermark int64) Band {
	w := Micro(watermark)
	return Band{w * (One - c.PercentageDeviationForBounds), w * One, w * (One + c.PercentageDeviationForBounds)}
}

func exactly(n int64) Band {
	m := Micro(n) * One
	return Band{m, m, m}
}

// sums are the sums over many backends' bands.
type sums struct{ lower, watermark, upper total }

func (s *sums) add(b Band) {
	s.lower.add(b.Lower)
	s.watermark.add(b.Watermark)
	s.upper.add(b.Upper)
}

func (s *sums) subtract(b Band) {
	s.lower.subtract(b.Lower)
	s.watermark.subtract(b.Watermark)
	s.upper.subtract(b.Upper)
}

// band returns the sum, with each bound clamped to the largest Micro.
func (s *sums) band() Band { return Band{s.lower.micro(), s.watermark.micro(), s.upper.micro()} }
