package flowcontrol

import (
	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/invalid"
)

// Config is the controller's configuration: that of the decisions, and what goroutines and metrics need.
type Config struct {
	dispatch.Config
	// NumPoppers is the number of parked goroutines, 1 to 1000; it bounds nothing on the requests' path.
	NumPoppers int
	// MaxLabels bounds the label values of the metrics by model and by flow; beyond it they are "other".
	MaxLabels int
}

// TierConfig is the controller's part of a tier.
type TierConfig = dispatch.TierConfig

// VictimOrder orders the requests that may be preempted, within a tier.
type VictimOrder = dispatch.VictimOrder

// The victim orders.
const (
	NewestFirst    = dispatch.NewestFirst
	LeastCostFirst = dispatch.LeastCostFirst
)

// MaxReleaseSpacing bounds Config.ReleaseSpacing.
const MaxReleaseSpacing = dispatch.MaxReleaseSpacing

// DefaultConfig is the seed's, for one tier.
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
