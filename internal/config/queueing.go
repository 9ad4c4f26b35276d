package config

// FairRequestQueue configures the queue.
type FairRequestQueue struct {
	// Maximum number of queued requests, over all flows. At least 1.
	TotalCapacity int64 `yaml:"totalCapacity"`
	// Maximum number of queued requests in one flow. From 1 to totalCapacity.
	FlowCapacity int64 `yaml:"flowCapacity"`
	// Longest time that a request waits in the queue before it is rejected (ttl-expired). At most 3600s, the longest
	// that Envoy holds a request.
	QueueTTL Duration `yaml:"queueTTL"`
	// How flows share the queue: reserved (each flow with queued requests reserves its flowCapacity), shared (with
	// displacement when the queue is full) or reject (a full queue rejects the arrival, whoever it is).
	CapacityMode string `yaml:"capacityMode"`
	// Order between tiers: strict (highest first, with a starvation guard) or weighted (a share for each tier).
	TierMode string `yaml:"tierMode"`
	// Which class the turn of the classes goes on with when one was served that has credit for its next request too: stay
	// (the same one) or advance (the next one, as Dynamo 1.6.1 has it; where requests cost less than the quantum, the
	// quanta then lose their weight).
	Cursor string `yaml:"cursor"`
	// Share of dispatches that starved heads of lower tiers may take, from 0 to 1; 1 is unlimited.
	PromotionBudget Decimal `yaml:"promotionBudget"`
	// Whether the highest tier's queue is guaranteed (never displaced, its flowCapacities reserved) or fair (like the
	// others).
	TopTier string `yaml:"topTier"`
}

// RequestQueueController configures the controller.
type RequestQueueController struct {
	// Whether requests queue at all. If not, each one passes at once, and the stock is still counted. A reload to false
	// releases all waiters, in the order of the queue.
	Enabled bool `yaml:"enabled"`
	// Whether requests of every tier queue. If not, those below the highest tier are rejected (shed) instead of
	// queued when the queue is not empty or the stock is at or above the upper bound.
	EnqueueAll bool `yaml:"enqueueAll"`
	// Number of requests that each backend should have: dispatched and not complete. Set it, and with it
	// lowerBoundPerBackend and upperBoundPerBackend, to the engine's batch slots (vLLM: --max-num-seqs). From 1 to
	// 1000000.
	WatermarkPerBackend int64 `yaml:"watermarkPerBackend"`
	// Distance of the lower and the upper bound from the watermark, as a share of it; above 0 and below 1. Explicit
	// bounds do not use it.
	PercentageDeviationForBounds Decimal `yaml:"percentageDeviationForBounds"`
	// Explicit lower bound: the queue releases while the stock is below it, so under load the stock stays there. From 0
	// to the watermark; null derives it from the watermark.
	LowerBoundPerBackend *int64 `yaml:"lowerBoundPerBackend"`
	// Explicit upper bound: an arrival bypasses an empty queue while the stock is below it. At least the watermark;
	// null derives it from the watermark.
	UpperBoundPerBackend *int64 `yaml:"upperBoundPerBackend"`
	// Batch slots of a backend that does not report them: replaces the watermark and both bounds; null: unknown. From 1
	// to 1000000, or unbounded: every backend takes any number of requests, also if it reports slots. Nothing then waits
	// but for a ready backend, a bound in tokens or a cap, so no share, tier or reservation has an effect.
	SlotsPerBackend *Slots `yaml:"slotsPerBackend"`
	// Tokens of the requests that each backend should have, weighted by tokens.stockWeights; 0: only requests count. The
	// stock is then below a bound if it is so in requests and in tokens: in tokens, if that of one of the backends is. And a
	// backend gets no request while those that it has take its upper bound or more, whoever may use it. From 0 to
	// 1000000000.
	WatermarkTokensPerBackend int64 `yaml:"watermarkTokensPerBackend"`
	// Explicit lower bound of the tokens. From 1 to its watermark; null derives it from the watermark.
	LowerBoundTokensPerBackend *int64 `yaml:"lowerBoundTokensPerBackend"`
	// Explicit upper bound of the tokens. At least its watermark; null derives it from the watermark.
	UpperBoundTokensPerBackend *int64 `yaml:"upperBoundTokensPerBackend"`
	// Number of goroutines that release requests where no request's own goroutine does. From 1 to 1000. One is enough,
	// since they are woken by events.
	NumPoppers int64 `yaml:"numPoppers"`
	// How long a popper waits before it retries after an unexpected error. Above 0s.
	PopperWaitBase Duration `yaml:"popperWaitBase"`
	// Maximum random addition to popperWaitBase. At least 0s.
	PopperWaitJitterMax Duration `yaml:"popperWaitJitterMax"`
	// Longest time between two sweeps of the queue for expired requests. Above 0s. It is only an upper bound: requests
	// expire exactly on time.
	ExpiryCleanupInterval Duration `yaml:"expiryCleanupInterval"`
	// Minimum time between two releases from the queue, 0s (none) to 1s. If all requests take the same time, those
	// released together end together from then on, and a request that has just missed them waits for all of them; 80 %
	// of service time / slots spreads them. At most one request is released per spacing, so leave it at 0s if service
	// times differ anyway.
	ReleaseSpacing Duration `yaml:"releaseSpacing"`
	// Maximum number of requests of one tenant (flow key), over all its tiers and classes, that are dispatched and not
	// complete; 0: no limit, which flows.discipline none requires. A request at the cap may preempt its own tenant's in a
	// lower tier.
	MaxInFlightPerFlow int64 `yaml:"maxInFlightPerFlow"`
	// The same at each backend; 0: no limit.
	MaxInFlightPerFlowPerBackend int64 `yaml:"maxInFlightPerFlowPerBackend"`
	// Maximum number of tokens of one tenant's requests, counted likewise, that are dispatched and not complete, weighted by
	// tokens.stockWeights; 0: no limit. A tenant below it may have one more request of any size.
	MaxTokensInFlightPerFlow int64 `yaml:"maxTokensInFlightPerFlow"`
	// The same at each backend; 0: no limit. It keeps one tenant of long prompts from taking a backend's memory.
	MaxTokensInFlightPerFlowPerBackend int64 `yaml:"maxTokensInFlightPerFlowPerBackend"`
	// Whether a request waits, until its TTL, while no backend is ready that it may use. If not, it is rejected at once with
	// no-endpoint, and so are waiters when the last such backend goes.
	HoldWhenEmpty bool `yaml:"holdWhenEmpty"`
	// Which request of the lowest tier is preempted: newest (dispatched last) or least-cost (fewest tokens, by
	// tokens.stockWeights and the latest estimate, then newest).
	VictimOrder string `yaml:"victimOrder"`
	// How long queued and new requests are still served after SIGTERM, before the rest is rejected (draining). From 0s
	// to 1h.
	DrainWindow Duration `yaml:"drainWindow"`
	// How long queued and new requests are served at least after SIGTERM, even if nobody waits: proxies need that time
	// to see that this replica is not ready. From 0s to drainWindow.
	MinDrain Duration `yaml:"minDrain"`
	// Headers with the client's own deadline, set by an outer hop, in milliseconds from arrival; grpc-timeout is read
	// in gRPC's format (10S, 500m). The earliest counts; 0 and unreadable values are none. At most 16.
	DeadlineHeaders []string `yaml:"deadlineHeaders"`
}
