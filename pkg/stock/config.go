package stock

import (
	"errors"
	"fmt"
)

// MaxPerBackend is the largest watermark or bound of one backend, in requests.
const MaxPerBackend = 1_000_000

// MaxCostPerBackend is the largest watermark or bound of one backend, in units of cost.
const MaxCostPerBackend = 1_000_000_000

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
	// Cost bounds the stock in units of cost as well.
	Cost CostConfig
}

// CostConfig is the band of one backend in units of cost, such as tokens.
type CostConfig struct {
	// Watermark is the target stock, 0 to MaxCostPerBackend; 0: cost is counted and bounds nothing.
	Watermark int64
	// Lower and Upper are the bounds; 0: Config.PercentageDeviationForBounds derives them. Lower <= Watermark <= Upper.
	Lower, Upper int64
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
	c.Cost.validate(bad)
	return errors.Join(problems...)
}

func (c *CostConfig) validate(bad func(format string, args ...any)) {
	if c.Watermark < 0 || c.Watermark > MaxCostPerBackend {
		bad("costWatermarkPerBackend: %d: want 0 to %d", c.Watermark, MaxCostPerBackend)
	}
	if c.Lower < 0 || c.Lower > c.Watermark {
		bad("costLowerBoundPerBackend: %d: want 0 to costWatermarkPerBackend %d", c.Lower, c.Watermark)
	}
	if c.Upper < 0 || c.Upper > MaxCostPerBackend || c.Upper > 0 && (c.Upper < c.Watermark || c.Watermark <= 0) {
		bad("costUpperBoundPerBackend: %d: want 0, or costWatermarkPerBackend %d to %d", c.Upper, c.Watermark, MaxCostPerBackend)
	}
}
