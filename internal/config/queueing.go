package config

// FairRequestQueue is the section of the queue.
type FairRequestQueue struct {
	// Most requests that are queued at a time, over all flows. At least 1.
	TotalCapacity int64 `yaml:"totalCapacity"`
	// Most requests that are queued at a time in one flow. From 1 to totalCapacity.
	FlowCapacity int64 `yaml:"flowCapacity"`
	// Longest time that a request waits in the queue; then it is rejected (ttl-expired). At most 3600s, which is the
	// longest that Envoy holds a request for.
	QueueTTL Duration `yaml:"queueTTL"`
	// How flows share the queue: reserved (each flow that has queued requests reserves its flowCapacity) or shared
	// (with displacement when the queue is full).
	CapacityMode string `yaml:"capacityMode"`
	// Order between tiers: strict (highest first, with a starvation guard) or weighted (a share for each tier).
	TierMode string `yaml:"tierMode"`
	// Share of dispatches that starved heads of lower tiers may take, from 0 to 1; 1 is unlimited.
	PromotionBudget Decimal `yaml:"promotionBudget"`
	// Whether the highest tier's queue is guaranteed (never displaced, its flowCapacities reserved) or fair (like the
	// others).
	TopTier string `yaml:"topTier"`
}

// RequestQueueController is the section of the controller.
type RequestQueueController struct {
	// Whether requests queue at all. If not, each one passes at once, and the stock is still counted; a reload to false
	// releases everybody who waits, in the queue's order.
	Enabled bool `yaml:"enabled"`
	// Whether requests of every tier queue. If not, those below the highest tier are rejected (shed) instead of
	// queued when the queue is not empty or the stock is at or above the upper bound.
	EnqueueAll bool `yaml:"enqueueAll"`
	// Requests that each backend should have: dispatched and not complete. Set it, and lowerBoundPerBackend and
	// upperBoundPerBackend with it, to the engine's batch slots (vLLM: --max-num-seqs). From 1 to 1000000.
	WatermarkPerBackend int64 `yaml:"watermarkPerBackend"`
	// Distance of the lower and the upper bound from the watermark, as a share of it; above 0 and below 1. Bounds
	// that are given explicitly do not use it.
	PercentageDeviationForBounds Decimal `yaml:"percentageDeviationForBounds"`
	// Explicit lower bound: the queue is released while the stock is below it, so under load the stock stands here.
	// From 0 to the watermark; null derives it from the watermark.
	LowerBoundPerBackend *int64 `yaml:"lowerBoundPerBackend"`
	// Explicit upper bound: an arrival bypasses an empty queue while the stock is below it. At least the watermark;
	// null derives it from the watermark.
	UpperBoundPerBackend *int64 `yaml:"upperBoundPerBackend"`
	// Batch slots of a backend that reports none: takes the place of the watermark and of both bounds; null: unknown.
	SlotsPerBackend *int64 `yaml:"slotsPerBackend"`
	// Goroutines that release requests where no request's own goroutine does. From 1 to 1000; one is enough, since they
	// are woken by events.
	NumPoppers int64 `yaml:"numPoppers"`
	// Wait of a popper before it tries again after an unexpected error.
	PopperWaitBase Duration `yaml:"popperWaitBase"`
	// Most that is added to popperWaitBase at random.
	PopperWaitJitterMax Duration `yaml:"popperWaitJitterMax"`
	// Longest time between two sweeps of the queue for requests whose TTL is over. Deadlines are exact all the same:
	// this is only an upper bound.
	ExpiryCleanupInterval Duration `yaml:"expiryCleanupInterval"`
	// Least time between two releases from the queue, 0s (none) to 1s. Where all requests take the same time, those that
	// were released together end together ever after, and who has just missed them waits for them all; 80 % of service
	// time / slots keeps them apart. It also bounds the releases to one per spacing, so leave it at 0s where times differ anyway.
	ReleaseSpacing Duration `yaml:"releaseSpacing"`
	// Most requests of one flow that are dispatched and not complete at a time; 0: no limit, which it has to be with
	// flows.discipline none.
	MaxInFlightPerFlow int64 `yaml:"maxInFlightPerFlow"`
	// The same at each backend; 0: no limit.
	MaxInFlightPerFlowPerBackend int64 `yaml:"maxInFlightPerFlowPerBackend"`
	// With no backend ready that a request may use: queue until the TTL (true), or reject at once with no-endpoint
	// (false), also those that wait when the last one goes.
	HoldWhenEmpty bool `yaml:"holdWhenEmpty"`
	// Whom preemption takes within the lowest tier: newest (dispatched last) or least-cost (smallest input, then
	// newest).
	VictimOrder string `yaml:"victimOrder"`
	// After SIGTERM: how long queued and new requests are still served before what is left is rejected (draining).
	DrainWindow Duration `yaml:"drainWindow"`
	// After SIGTERM: how long queued and new requests are served at least, though nobody waits: a proxy takes that long to
	// see that this replica is not ready. From 0s to the drainWindow.
	MinDrain Duration `yaml:"minDrain"`
	// Headers that carry a client's own deadline, set by an outer hop, as milliseconds from arrival; grpc-timeout is
	// read in gRPC's format (10S, 500m). The earliest counts; 0, and what cannot be read, is none.
	DeadlineHeaders []string `yaml:"deadlineHeaders"`
}
