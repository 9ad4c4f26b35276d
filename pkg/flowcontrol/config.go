package flowcontrol

import (
	"errors"
	"fmt"

	"github.com/weir-epp/weir/pkg/dispatch"
)

// Config is the controller's configuration: that of the decisions, and what goroutines and metrics need.
type Config struct {
	dispatch.Config
	// NumPoppers is the number of parked goroutines, at least 1; it bounds nothing on the requests' path.
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

// Validate reports every problem at once, with those of the decisions; the names are the file's.
func (c *Config) Validate() error {
	problems := []error{c.Config.Validate()}
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if c.NumPoppers < 1 || c.NumPoppers > 10_000 {
		bad("requestQueueController.numPoppers: %d: want 1 to 10000", c.NumPoppers)
	}
	if c.MaxLabels < 1 {
		bad("limits.maxFlows: %d: want at least 1", c.MaxLabels)
	}
	return errors.Join(problems...)
}
