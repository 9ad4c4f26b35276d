package stock

import (
	"errors"
	"fmt"
	"math"
)

// Micro is a decimal in millionths, of a request or of a share.
type Micro int64

// One is 1.
const One Micro = 1_000_000

// MaxPerBackend is the largest watermark or bound of one backend, in requests.
const MaxPerBackend = 1_000_000

// Ceil is the value in whole units, rounded up.
func (m Micro) Ceil() int {
	n := int(m / One)
	if m%One > 0 {
		n++
	}
	return n
}

// Float is for display and gauges only; it decides nothing.
func (m Micro) Float() float64 { return float64(m) / float64(One) }

// Config is the band of one backend.
type Config struct {
	// WatermarkPerBackend is the target stock, 1 to MaxPerBackend requests.
	WatermarkPerBackend int
	// PercentageDeviationForBounds derives the bounds from the watermark: between 0 and 1, both exclusive.
	PercentageDeviationForBounds Micro
	// LowerBoundPerBackend and UpperBoundPerBackend override the derived ones; negative: derived.
	// lower <= watermark <= upper.
	LowerBoundPerBackend, UpperBoundPerBackend int
	// SlotsPerBackend, more than 0, sets all three for a backend that reports no slots.
	SlotsPerBackend int
}

// DefaultConfig is the seed's: watermark 2 ± 10 %.
func DefaultConfig() Config {
	return Config{
		WatermarkPerBackend: 2, PercentageDeviationForBounds: One / 10,
		LowerBoundPerBackend: -1, UpperBoundPerBackend: -1,
	}
}

// Validate reports every problem at once; the names are those of the configuration file.
func (c *Config) Validate() error {
	var problems []error
	bad := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("requestQueueController."+format, args...))
	}
	if c.WatermarkPerBackend < 1 || c.WatermarkPerBackend > MaxPerBackend {
		bad("watermarkPerBackend: %d: want 1 to %d", c.WatermarkPerBackend, MaxPerBackend)
	}
	if c.PercentageDeviationForBounds <= 0 || c.PercentageDeviationForBounds >= One {
		bad("percentageDeviationForBounds: %g: want more than 0 and less than 1", c.PercentageDeviationForBounds.Float())
	}
	if c.LowerBoundPerBackend >= 0 && c.LowerBoundPerBackend > c.WatermarkPerBackend {
		bad("lowerBoundPerBackend: %d: want at most watermarkPerBackend %d (set lower, watermark and upper together)",
			c.LowerBoundPerBackend, c.WatermarkPerBackend)
	}
	if c.UpperBoundPerBackend >= 0 && c.UpperBoundPerBackend < c.WatermarkPerBackend {
		bad("upperBoundPerBackend: %d: want at least watermarkPerBackend %d (set lower, watermark and upper together)",
			c.UpperBoundPerBackend, c.WatermarkPerBackend)
	}
	if c.UpperBoundPerBackend > MaxPerBackend {
		bad("upperBoundPerBackend: %d: want at most %d", c.UpperBoundPerBackend, MaxPerBackend)
	}
	if c.SlotsPerBackend < 0 || c.SlotsPerBackend > MaxPerBackend {
		bad("slotsPerBackend: %d: want 0 to %d", c.SlotsPerBackend, MaxPerBackend)
	}
	return errors.Join(problems...)
}

// Backend is one ready backend.
type Backend struct {
	// Slots is the largest number of requests that it runs at once, as it reports; 0: it does not.
	Slots int
}

// Band is a lower bound, a watermark and an upper bound.
type Band struct{ Lower, Watermark, Upper Micro }

// Of is the band of one backend. One that reports its slots is kept at exactly these.
func (c *Config) Of(b Backend) Band {
	slots := b.Slots
	if slots <= 0 {
		slots = c.SlotsPerBackend
	}
	if slots > 0 {
		m := Micro(min(slots, MaxPerBackend)) * One
		return Band{m, m, m}
	}
	w := Micro(c.WatermarkPerBackend)
	band := Band{
		Lower:     w * (One - c.PercentageDeviationForBounds),
		Watermark: w * One,
		Upper:     w * (One + c.PercentageDeviationForBounds),
	}
	if c.LowerBoundPerBackend >= 0 {
		band.Lower = Micro(c.LowerBoundPerBackend) * One
	}
	if c.UpperBoundPerBackend >= 0 {
		band.Upper = Micro(c.UpperBoundPerBackend) * One
	}
	return band
}

// add sums bands; a pool of more than nine million full backends would be needed to saturate it.
func (b Band) add(o Band) Band {
	return Band{saturate(b.Lower, o.Lower), saturate(b.Watermark, o.Watermark), saturate(b.Upper, o.Upper)}
}

func saturate(a, b Micro) Micro {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
