package dispatch

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/invalid"
	"github.com/weir-epp/weir/pkg/quota"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// Config is the machine's configuration, with those of its queue and its stock.
type Config struct {
	Queue fairqueue.Config
	Stock stock.Config
	// Tiers configures each tier of Queue.Tiers, in the same order.
	Tiers []TierConfig
	// Classes configures each class of Queue.Classes, in the same order; none means that each has the zero value.
	Classes []ClassConfig
	// Enabled turns queueing on. If it is false all requests bypass the queue, including those already waiting; stock
	// is still counted.
	Enabled bool
	// Limiter limits the rate of requests while Enabled is false.
	Limiter LimiterConfig
	// EnqueueAll queues requests of every tier. If it is false only the highest tier's may wait, and the others are
	// shed under load.
	EnqueueAll bool
	// HoldWhenEmpty queues requests while none of their backends is ready. If it is false such arrivals end with
	// OutcomeNoEndpoint, and so do waiters when their last backend leaves.
	HoldWhenEmpty bool
	// PopperWaitBase and PopperWaitJitterMax determine the wait before a retry after too many panics in one event.
	PopperWaitBase, PopperWaitJitterMax time.Duration
	// ExpiryCleanupInterval is the longest time between two sweeps while a request waits.
	ExpiryCleanupInterval time.Duration
	// ReleaseSpacing is the minimum time between two releases from the queue, 0 (none) to MaxReleaseSpacing. Requests
	// of equal duration released together also end together, again and again, and an arrival in between waits for all
	// of them; spaced requests free the slots one by one. The limit does not apply while nothing is in flight, or to
	// bypasses.
	ReleaseSpacing time.Duration
	// MaxInFlightPerFlow and MaxInFlightPerFlowPerBackend cap the leases of a tenant (all flows with one key, of any
	// tier and class), in total and at each endpoint; 0 means no cap. A tenant at its cap waits without blocking
	// others. If its tier may preempt, a request at its tenant's cap takes over a lease of its own tenant, of a lower
	// tier.
	MaxInFlightPerFlow, MaxInFlightPerFlowPerBackend int
	// MaxTokensInFlightPerFlow and MaxTokensInFlightPerFlowPerBackend cap the tokens of a tenant's leases in the same
	// way. A tenant below its cap may take another lease, so it exceeds the cap by less than its last request's tokens.
	// A tenant with nothing in flight may take a lease of any size.
	MaxTokensInFlightPerFlow, MaxTokensInFlightPerFlowPerBackend stock.Tokens
	// Circuits keeps requests from endpoints whose engine fails: see Answer.
	Circuits bool
	// VictimOrder determines which request of the lowest tier is preempted first.
	VictimOrder VictimOrder
	// Levels has the caps by level of flows, outermost first: none, or as many as Queue.Levels. The first level has
	// tenants' caps, which replace MaxInFlightPerFlow and MaxTokensInFlightPerFlow where they are above 0. The last of
	// two or more levels has users' caps.
	Levels []LevelCaps
	// Roles has the common settings of a role's tenants, by the role's name (fairqueue.Path.Role). Where tenants have
	// users, a role is a user's.
	Roles map[string]RoleConfig
	// Quotas are the tokens that tenants may use in a window of time. They apply even if Enabled is false.
	Quotas quota.Config
}

// RoleConfig configures a role.
type RoleConfig struct {
	// MaxInFlight replaces MaxInFlightPerFlow for each tenant of the role, or the users' level's MaxInFlight for each
	// user; 0 replaces nothing.
	MaxInFlight int
}

// LevelCaps are the caps of each flow of a level.
type LevelCaps struct {
	// MaxInFlight and MaxTokensInFlight cap the leases of a flow, of any tier and class, as MaxInFlightPerFlow and
	// MaxTokensInFlightPerFlow do; 0 means no cap. A user at its cap does not block others of its tenant.
	MaxInFlight       int
	MaxTokensInFlight stock.Tokens
}

// TierConfig configures a tier.
type TierConfig struct {
	// ReservedFloor is the stock kept free for the tier, in requests, and ReservedPerSlot as a share of the capacity.
	ReservedFloor   int
	ReservedPerSlot stock.Micro
	// CanPreempt lets the tier preempt requests of lower tiers whose answer has not begun.
	CanPreempt bool
}

// ClassConfig configures a class.
type ClassConfig struct {
	// Busy is the rule by which endpoints are too busy reading prompts for the class, so that its requests wait. It
	// requires tiers that do not preempt.
	Busy scheduling.BusyRule
}

// VictimOrder is the order in which requests of a tier are preempted.
type VictimOrder uint8

const (
	// NewestFirst preempts the request dispatched last, which loses the least work.
	NewestFirst VictimOrder = iota
	// LeastCostFirst preempts the request with the fewest tokens, by the latest estimate, then the newest.
	LeastCostFirst
)

// MaxReleaseSpacing bounds Config.ReleaseSpacing.
const MaxReleaseSpacing = time.Second

// DefaultConfig returns the seed's defaults, for one tier.
func DefaultConfig() Config {
	return Config{
		Queue: fairqueue.DefaultConfig(), Stock: stock.DefaultConfig(), Tiers: []TierConfig{{}},
		Enabled: true, Limiter: LimiterConfig{Burst: 1}, HoldWhenEmpty: true,
		PopperWaitBase: 10 * time.Millisecond, PopperWaitJitterMax: time.Millisecond,
		ExpiryCleanupInterval: time.Second,
		Quotas:                quota.DefaultConfig(),
	}
}

// Validate reports every problem at once, as invalid.Problems, with those of the queue and the stock.
func (c *Config) Validate() error {
	var ps invalid.Problems
	ps.Under(invalid.At("Queue"), c.Queue.Validate())
	ps.Under(invalid.At("Stock"), c.Stock.Validate())
	ps.Under(invalid.At("Quotas"), c.Quotas.Validate())
	c.Limiter.check(&ps, invalid.At("Limiter"))
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
	c.checkClasses(&ps)
	invalid.Above(&ps, invalid.At("PopperWaitBase"), c.PopperWaitBase, 0)
	invalid.AtLeast(&ps, invalid.At("PopperWaitJitterMax"), c.PopperWaitJitterMax, 0)
	invalid.Above(&ps, invalid.At("ExpiryCleanupInterval"), c.ExpiryCleanupInterval, 0)
	invalid.Within(&ps, invalid.At("ReleaseSpacing"), c.ReleaseSpacing, 0, MaxReleaseSpacing)
	c.checkCap(&ps, invalid.At("MaxInFlightPerFlow"), int64(c.MaxInFlightPerFlow))
	for _, role := range slices.Sorted(maps.Keys(c.Roles)) {
		c.checkCap(&ps, invalid.At("Roles", invalid.Key(role), "MaxInFlight"), int64(c.Roles[role].MaxInFlight))
	}
	if n := len(c.Levels); n > 0 && n != max(1, c.Queue.Levels) {
		ps.Add(invalid.At("Levels"), invalid.Shown(fmt.Sprintf("%d levels", n)), "must be none, or as many as %s (%d)",
			invalid.At("Queue", "Levels"), c.Queue.Levels)
	}
	for i, l := range c.Levels {
		c.checkCap(&ps, invalid.At("Levels", i, "MaxInFlight"), int64(l.MaxInFlight))
		c.checkCap(&ps, invalid.At("Levels", i, "MaxTokensInFlight"), int64(l.MaxTokensInFlight))
	}
	c.checkCap(&ps, invalid.At("MaxInFlightPerFlowPerBackend"), int64(c.MaxInFlightPerFlowPerBackend))
	c.checkCap(&ps, invalid.At("MaxTokensInFlightPerFlow"), int64(c.MaxTokensInFlightPerFlow))
	c.checkCap(&ps, invalid.At("MaxTokensInFlightPerFlowPerBackend"), int64(c.MaxTokensInFlightPerFlowPerBackend))
	return ps.Err()
}

// checkClasses checks Classes.
func (c *Config) checkClasses(ps *invalid.Problems) {
	if n := len(c.Classes); n > 0 && n != len(c.Queue.Classes) {
		ps.Add(invalid.At("Classes"), invalid.Shown(fmt.Sprintf("%d classes", n)), "must be none, or as many as %s (%d)",
			invalid.At("Queue", "Classes"), len(c.Queue.Classes))
	}
	preempts := slices.IndexFunc(c.Tiers, func(t TierConfig) bool { return t.CanPreempt })
	for i, class := range c.Classes {
		at := invalid.At("Classes", i, "Busy")
		ps.Under(at, class.Busy.Validate())
		if preempts < 0 {
			continue
		}
		if name, value, given := class.Busy.Threshold(); given {
			ps.Add(at.At(name), value, "must not be given where %s is true", invalid.At("Tiers", preempts, "CanPreempt"))
		}
	}
}

// checkCap checks a cap per flow, which requires flows.
func (c *Config) checkCap(ps *invalid.Problems, at invalid.Path, n int64) {
	if n > 0 && c.Queue.Discipline == fairqueue.OneFlow {
		ps.Add(at, n, "must be 0 with %s none, which knows no flows", invalid.At("Queue", "Discipline"))
	}
	invalid.AtLeast(ps, at, n, 0)
}
