package flowcontrol

import (
	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/invalid"
)

// Config is the configuration of the controller: of its machine, its goroutines and its metrics.
type Config struct {
	dispatch.Config
	// NumPoppers is the number of parked goroutines, 1 to 1000; it does not limit requests.
	NumPoppers int
	// MaxLabels bounds the label values of the metrics by model and by flow; values beyond it become "other".
	MaxLabels int
}

// DefaultConfig returns the seed's defaults, for one tier.
func DefaultConfig() Config {
	return Config{Config: dispatch.DefaultConfig(), NumPoppers: 10, MaxLabels: 1000}
}

// maxPoppers bounds Config.NumPoppers.
const maxPoppers = 1000

// Validate reports every problem at once, as invalid.Problems, with those of the decisions.
func (c *Config) Validate() error {
	var ps invalid.Problems
	ps.Under(invalid.At(), c.Config.Validate())
	invalid.Within(&ps, invalid.At("NumPoppers"), c.NumPoppers, 1, maxPoppers)
	invalid.AtLeast(&ps, invalid.At("MaxLabels"), c.MaxLabels, 1)
	return ps.Err()
}
