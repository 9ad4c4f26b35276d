package leader

import (
	"time"

	"github.com/weir-epp/weir/pkg/invalid"
)

// Config configures the election and the records.
type Config struct {
	// LeaseDuration is the time for which followers leave an unchanged Lease to its holder, 1 s to MaxLeaseDuration.
	// Kubernetes stores whole seconds.
	LeaseDuration time.Duration
	// RetryPeriod is the time between two renewals, and between two reads of other replicas' Leases: at least
	// MinRetryPeriod and at most half of LeaseDuration.
	RetryPeriod time.Duration
	// TakeoverWindow is the time in which a record without a newer one falls to 0, at most MaxTakeoverWindow; 0: other
	// replicas' requests in flight do not count.
	TakeoverWindow time.Duration
}

// Limits of Config.
const (
	MaxLeaseDuration  = 5 * time.Minute
	MinRetryPeriod    = 100 * time.Millisecond
	MaxTakeoverWindow = time.Hour
)

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{LeaseDuration: 15 * time.Second, RetryPeriod: 2 * time.Second, TakeoverWindow: time.Minute}
}

// Validate reports every problem at once, as invalid.Problems.
func (c Config) Validate() error {
	var ps invalid.Problems
	lease := invalid.At("LeaseDuration")
	switch {
	case c.LeaseDuration < time.Second || c.LeaseDuration > MaxLeaseDuration:
		ps.Add(lease, c.LeaseDuration, "must be from 1s to %s", MaxLeaseDuration)
	case c.LeaseDuration%time.Second != 0:
		ps.Add(lease, c.LeaseDuration, "must be whole seconds")
	}
	if c.RetryPeriod < MinRetryPeriod || c.RetryPeriod > c.LeaseDuration/2 {
		ps.Add(invalid.At("RetryPeriod"), c.RetryPeriod, "must be from %s to half of %s", MinRetryPeriod, lease)
	}
	if c.TakeoverWindow < 0 || c.TakeoverWindow > MaxTakeoverWindow {
		ps.Add(invalid.At("TakeoverWindow"), c.TakeoverWindow, "must be from 0s to %s", MaxTakeoverWindow)
	}
	return ps.Err()
}

// callTimeout bounds one request to the apiserver.
func (c Config) callTimeout() time.Duration { return max(c.LeaseDuration/3, MinRetryPeriod) }
