package estimate

import "github.com/weir-epp/weir/pkg/invalid"

// Config configures an Estimator. The comments name the keys of the configuration file in parentheses.
type Config struct {
	// Weights are the costs of tokens (tokens.weights). Each from 0 to MaxWeight, and not all 0.
	Weights Weights
	// StockWeights are the weights of tokens in the stock (tokens.stockWeights). The same range.
	StockWeights Weights
	// Quantile is the part of answers at most as long as the prediction, in millionths (tokens.output.quantile). From
	// 500,000 to 990,000.
	Quantile int64
	// Window is the number of answers in the quantile (tokens.output.window): counts are halved when they exceed twice
	// as many answers. From 8 to 1,024.
	Window int64
	// Floor is the least prediction of an answer, in tokens (tokens.output.floor). From 0 to MaxSetting.
	Floor int64
	// ColdOutput is the prediction before any answer is known, in tokens (tokens.output.coldStart). From 1 to
	// MaxSetting.
	ColdOutput int64
	// ColdRate is the assumed production rate before any answer is known, in tokens per second
	// (tokens.output.coldRate). From 1 to MaxSetting.
	ColdRate int64
	// ColdRatio is the assumed length of a token before any usage is known, in millionths of a byte
	// (tokens.input.bytesPerToken). From 1,000,000 to 8,000,000.
	ColdRatio int64
}

// MaxSetting bounds numbers of tokens in a Config.
const MaxSetting = 1_000_000

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{
		Weights:      Weights{Input: WeightOne, CachedInput: WeightOne, Output: 2 * WeightOne},
		StockWeights: Weights{Input: WeightOne, CachedInput: WeightOne, Output: WeightOne},
		Quantile:     900_000, Window: 64, Floor: 16, ColdOutput: 1_000, ColdRate: 50, ColdRatio: 4_000_000,
	}
}

// Validate reports every problem at once, as invalid.Problems.
func (c *Config) Validate() error {
	var ps invalid.Problems
	c.Weights.check(&ps, invalid.At("Weights"))
	c.StockWeights.check(&ps, invalid.At("StockWeights"))
	within := func(name string, value, least, most int64) {
		if value < least || value > most {
			ps.Add(invalid.At(name), float64(value)/1e6, "must be from %v to %v", float64(least)/1e6, float64(most)/1e6)
		}
	}
	within("Quantile", c.Quantile, 500_000, 990_000)
	within("ColdRatio", c.ColdRatio, 1_000_000, 8_000_000)
	invalid.Within(&ps, invalid.At("Window"), c.Window, 8, 1024)
	invalid.Within(&ps, invalid.At("Floor"), c.Floor, 0, MaxSetting)
	invalid.Within(&ps, invalid.At("ColdOutput"), c.ColdOutput, 1, MaxSetting)
	invalid.Within(&ps, invalid.At("ColdRate"), c.ColdRate, 1, MaxSetting)
	return ps.Err()
}

func (w Weights) check(ps *invalid.Problems, at invalid.Path) {
	ok := true
	for _, one := range []struct {
		name   string
		weight Weight
	}{{"Input", w.Input}, {"CachedInput", w.CachedInput}, {"Output", w.Output}} {
		if one.weight < 0 || one.weight > MaxWeight {
			ps.Add(at.At(one.name), float64(one.weight)/float64(WeightOne), "must be from 0 to %d", MaxWeight/WeightOne)
			ok = false
		}
	}
	if ok && w.Input == 0 && w.Output == 0 {
		ps.Add(at.At("Input"), 0, "must be above 0, since %s is 0 too", at.At("Output"))
	}
}
