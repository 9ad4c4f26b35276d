package dispatch

import (
	"errors"
	"fmt"
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
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

// Validate reports every problem at once, with those of the queue and the stock; the names are the file's.
func (c *Config) Validate() error {
	problems := []error{c.Queue.Validate(), c.Stock.Validate()}
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if len(c.Tiers) != len(c.Queue.Tiers) {
		bad("tiers: %d tiers for %d of the queue", len(c.Tiers), len(c.Queue.Tiers))
	}
	for i, t := range c.Tiers {
		if t.ReservedFloor < 0 {
			bad("tiers[%d].reservedFloor: %d: want at least 0", i, t.ReservedFloor)
		}
		if t.ReservedPerSlot < 0 {
			bad("tiers[%d].reservedPerSlot: %g: want at least 0", i, t.ReservedPerSlot.Float())
		}
	}
	if c.PopperWaitBase <= 0 {
		bad("requestQueueController.popperWaitBase: %v: want more than 0", c.PopperWaitBase)
	}
	if c.PopperWaitJitterMax < 0 {
		bad("requestQueueController.popperWaitJitterMax: %v: want at least 0", c.PopperWaitJitterMax)
	}
	if c.ExpiryCleanupInterval <= 0 {
		bad("requestQueueController.expiryCleanupInterval: %v: want more than 0", c.ExpiryCleanupInterval)
	}
	if c.ReleaseSpacing < 0 || c.ReleaseSpacing > MaxReleaseSpacing {
		bad("requestQueueController.releaseSpacing: %v: want 0 to %v", c.ReleaseSpacing, MaxReleaseSpacing)
	}
	if c.Queue.Discipline == fairqueue.OneFlow && (c.MaxInFlightPerFlow > 0 || c.MaxInFlightPerFlowPerBackend > 0) {
		bad("requestQueueController.maxInFlightPerFlow: %d, maxInFlightPerFlowPerBackend: %d: want 0 with "+
			"flows.discipline none, which knows no flows", c.MaxInFlightPerFlow, c.MaxInFlightPerFlowPerBackend)
	}
	if c.MaxInFlightPerFlow < 0 {
		bad("requestQueueController.maxInFlightPerFlow: %d: want at least 0", c.MaxInFlightPerFlow)
	}
	if c.MaxInFlightPerFlowPerBackend < 0 {
		bad("requestQueueController.maxInFlightPerFlowPerBackend: %d: want at least 0", c.MaxInFlightPerFlowPerBackend)
	}
	return errors.Join(problems...)
}
