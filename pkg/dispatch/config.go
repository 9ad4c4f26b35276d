package dispatch

import (
	"fmt"
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/invalid"
	"github.com/weir-epp/weir/pkg/stock"
)

// Config is the machine's configuration with that of the queue and the stock that it owns.
type Config struct {
	Queue fairqueue.Config
	Stock stock.Config
	// Tiers has what the machine needs to know of each tier of Queue.Tiers, in the same order.
	Tiers []TierConfig
	// Enabled: false passes everything by the queue, those too who wait in it; stock is still counted.
	Enabled bool
	// EnqueueAll queues every tier; otherwise only the highest one may wait, and the others are shed under load.
	EnqueueAll bool
	// HoldWhenEmpty queues while no backend is ready that a request may use; otherwise such an arrival ends with
	// ErrNoEndpoint, and so does a waiter when the last one goes.
	HoldWhenEmpty bool
	// PopperWaitBase and PopperWaitJitterMax are the wait before a retry after too many panics in one event.
	PopperWaitBase, PopperWaitJitterMax time.Duration
	// ExpiryCleanupInterval is the longest time between two sweeps while somebody waits.
	ExpiryCleanupInterval time.Duration
	// ReleaseSpacing is the least time between two releases from the queue, 0 (none) to MaxReleaseSpacing. Requests that
	// take the same time and were released together end together ever after, and whoever comes meanwhile waits for them
	// all; spaced, they free the slots one by one. It bounds the releases to one per spacing, but for those while nothing
	// is in flight; arrivals that bypass are not held up.
	ReleaseSpacing time.Duration
	// MaxInFlightPerFlow and MaxInFlightPerFlowPerBackend cap a flow's leases, in total and at each endpoint; 0: no
	// cap. A flow at its cap waits without blocking others.
	MaxInFlightPerFlow, MaxInFlightPerFlowPerBackend int
	// VictimOrder says which request of the lowest tier is preempted first.
	VictimOrder VictimOrder
}

// TierConfig is the machine's part of a tier.
type TierConfig struct {
	// ReservedFloor is stock kept free for the tier, in requests, ReservedPerSlot as a share of the capacity.
	ReservedFloor   int
	ReservedPerSlot stock.Micro
	// CanPreempt lets the tier take the lease of a request of a lower tier whose answer has not begun.
	CanPreempt bool
}

// VictimOrder orders the requests that may be preempted, within a tier.
type VictimOrder uint8

const (
	// NewestFirst takes the request dispatched last: the least work is lost.
	NewestFirst VictimOrder = iota
	// LeastCostFirst takes the one of the smallest cost, then the newest.
	LeastCostFirst
)

// MaxReleaseSpacing bounds Config.ReleaseSpacing.
const MaxReleaseSpacing = time.Second

// DefaultConfig is the seed's, for one tier.
func DefaultConfig() Config {
	return Config{
		Queue: fairqueue.DefaultConfig(), Stock: stock.DefaultConfig(), Tiers: []TierConfig{{}},
		Enabled: true, HoldWhenEmpty: true,
		PopperWaitBase: 10 * time.Millisecond, PopperWaitJitterMax: time.Millisecond,
		ExpiryCleanupInterval: time.Second,
	}
}

// Validate reports every problem at once, as invalid.Problems, with those of the queue and the stock.
func (c *Config) Validate() error {
	var ps invalid.Problems
	ps.Under(invalid.At("Queue"), c.Queue.Validate())
	ps.Under(invalid.At("Stock"), c.Stock.Validate())
	if len(c.Tiers) != len(c.Queue.Tiers) {
		ps.Add(invalid.At("Tiers"), invalid.Shown(fmt.Sprintf("%d tiers", len(c.Tiers))), "must be as many as %s (%d)",
			invalid.At("Queue", "Tiers"), len(c.Queue.Tiers))
	}
	for i, t := range c.Tiers {
		invalid.AtLeast(&ps, invalid.At("Tiers", i, "ReservedFloor"), t.ReservedFloor, 0)
		if t.ReservedPerSlot < 0 {
			ps.Add(invalid.At("Tiers", i, "ReservedPerSlot"), t.ReservedPerSlot.Float(), "must be at least 0")
		}
	}
	invalid.Above(&ps, invalid.At("PopperWaitBase"), c.PopperWaitBase, 0)
	invalid.AtLeast(&ps, invalid.At("PopperWaitJitterMax"), c.PopperWaitJitterMax, 0)
	invalid.Above(&ps, invalid.At("ExpiryCleanupInterval"), c.ExpiryCleanupInterval, 0)
	invalid.Within(&ps, invalid.At("ReleaseSpacing"), c.ReleaseSpacing, 0, MaxReleaseSpacing)
	c.checkCap(&ps, invalid.At("MaxInFlightPerFlow"), c.MaxInFlightPerFlow)
	c.checkCap(&ps, invalid.At("MaxInFlightPerFlowPerBackend"), c.MaxInFlightPerFlowPerBackend)
	return ps.Err()
}

// checkCap checks a cap per flow, which needs flows.
func (c *Config) checkCap(ps *invalid.Problems, at invalid.Path, n int) {
	if n > 0 && c.Queue.Discipline == fairqueue.OneFlow {
		ps.Add(at, n, "must be 0 with %s none, which knows no flows", invalid.At("Queue", "Discipline"))
	}
	invalid.AtLeast(ps, at, n, 0)
}
