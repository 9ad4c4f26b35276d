package config

// FairRequestQueue configures the queue.
type FairRequestQueue struct {
	// Maximum number of queued requests, over all flows. At least 1.
	//
	// Default: The proposal's value; excess requests get a Retry-After instead of a hopeless wait.
	TotalCapacity int64 `yaml:"totalCapacity" default:"1000" sets:"controller.Queue.TotalCapacity" flag:"total-capacity" help:"most <requests> queued at a time, over all flows"`
	// Maximum number of queued requests in one flow. From 1 to totalCapacity; if the file states that alone, it lowers
	// the profile's flowCapacity.
	//
	// Default: The proposal's; ten flows can fill the queue, not one.
	FlowCapacity int64 `yaml:"flowCapacity" default:"100" sets:"controller.Queue.FlowCapacity" flag:"flow-capacity" help:"most <requests> queued at a time in one flow"`
	// Longest time that a request waits in the queue before it is rejected (ttl-expired). Above 0s and at most 1h,
	// the longest that Envoy holds a request.
	//
	// Default: The proposal's; clients and proxies rarely wait longer than a minute for a first byte.
	QueueTTL Duration `yaml:"queueTTL" default:"30s" sets:"controller.Queue.QueueTTL" flag:"queue-ttl" help:"longest time in the queue, at most 1h"`
	// Sharing of the queue among flows: reserved (each flow with queued requests reserves its flowCapacity), shared
	// (with displacement when the queue is full) or reject (a full queue rejects every arrival).
	//
	// Default: The proposal's; a flow's places do not depend on other flows.
	CapacityMode string `yaml:"capacityMode" default:"reserved" sets:"controller.Queue.CapacityMode" reload:"refused"`
	// Order between tiers: strict (highest first, with a starvation guard) or weighted (a share for each tier).
	//
	// Default: The proposal's; a critical request never waits for a sheddable one.
	TierMode string `yaml:"tierMode" default:"strict" sets:"controller.Queue.TierMode" reload:"refused"`
	// The class that is next after one that has credit for its next request too: stay (the same one) or advance (the
	// next one, as Dynamo 1.6.1 has it; where requests cost less than the quantum, the quanta then lose their weight).
	//
	// Default: The classes' shares stay at their quanta, for all costs of requests.
	Cursor string `yaml:"cursor" default:"stay" sets:"controller.Queue.Cursor" page:"rare"`
	// Share of dispatches that starved heads of lower tiers may take, from 0 to 1; 1 is unlimited.
	//
	// Default: One dispatch in ten ends every wait, and is too few for the tiers above to notice.
	PromotionBudget Decimal `yaml:"promotionBudget" default:"0.1" sets:"controller.Queue.PromotionBudget"`
	// Whether the highest tier's queue is guaranteed (never displaced, its flowCapacities reserved) or fair (like the
	// others).
	//
	// Default: The proposal's; critical requests are not displaced.
	TopTier string `yaml:"topTier" default:"guaranteed" sets:"controller.Queue.GuaranteedTop"`
}

// RequestQueueController configures the controller.
type RequestQueueController struct {
	// Whether requests queue at all. If not, each one passes at once, and the stock is still counted. A reload to false
	// releases all waiters, in the order of the queue.
	//
	// Default: A Weir that does not queue is for emergencies.
	Enabled bool `yaml:"enabled" default:"true" sets:"controller.Enabled"`
	// A token bucket over all requests, with enabled: false: a request without a token is rejected (shed). SMG limits so
	// without its scheduler (docs/smg.md).
	Limiter Limiter `yaml:"limiter"`
	// Whether requests of every tier queue. If not, those below the highest tier are rejected (shed) instead of
	// queued when the queue is not empty or the stock is at or above the upper bound.
	//
	// Default: The proposal's base behaviour; requests below the highest tier are shed under load.
	EnqueueAll bool `yaml:"enqueueAll" default:"false" sets:"controller.EnqueueAll"`
	// Number of requests that each backend should have: dispatched and not complete. Set it, and with it
	// lowerBoundPerBackend and upperBoundPerBackend, to the engine's batch slots (vLLM: --max-num-seqs). From 1 to
	// 1000000.
	//
	// Default: The proposal's, and far too low for an engine; only its operator knows the slots.
	WatermarkPerBackend int64 `yaml:"watermarkPerBackend" default:"2" sets:"controller.Stock.WatermarkPerBackend" flag:"watermark-per-backend" help:"<requests> that each backend should have in flight: the engine's batch slots; alone, it derives both bounds"`
	// Distance of the lower and the upper bound from the watermark, as a share of it; above 0 and below 1. Explicit
	// bounds do not use it.
	//
	// Default: The proposal's; with less the band of a small pool would be narrower than one request.
	PercentageDeviationForBounds Decimal `yaml:"percentageDeviationForBounds" default:"0.1" sets:"controller.Stock.PercentageDeviationForBounds" flag:"percentage-deviation-for-bounds" help:"distance of both bounds from the watermark, as a share of it, above 0 and below 1"`
	// Explicit lower bound: the queue releases while the stock is below it, so under load the stock stays there. From 0
	// to the watermark; null derives it from the watermark.
	//
	// Default: The band around the watermark is the proposal's.
	LowerBoundPerBackend *int64 `yaml:"lowerBoundPerBackend" default:"null" unset:"-1" sets:"controller.Stock.LowerBoundPerBackend" flag:"lower-bound-per-backend" help:"<requests> per backend below which the queue is released (default the profile's, or derived from a watermark that is given)"`
	// Explicit upper bound: an arrival bypasses an empty queue while the stock is below it. From the
	// watermark to 1000000; null derives it from the watermark.
	//
	// Default: The band around the watermark is the proposal's.
	UpperBoundPerBackend *int64 `yaml:"upperBoundPerBackend" default:"null" unset:"-1" sets:"controller.Stock.UpperBoundPerBackend" flag:"upper-bound-per-backend" help:"<requests> per backend below which an arrival passes an empty queue (default the profile's, or derived from a watermark that is given)"`
	// Batch slots of a backend that does not report them: replaces the watermark and both bounds; null: unknown. With
	// auto the bound of each backend follows its engine's metrics (--scrape-path), from 64 or the median learned for its
	// model; a watermark or bound that is stated goes before auto. From 1 to 1000000, or unbounded: every backend takes
	// any number of requests, also if it reports slots. Requests then wait only for a ready backend, a bound in tokens
	// or a cap, so shares, tiers and reservations have no effect.
	//
	// Default: An engine's slots are known only where it reports them, or its operator says so.
	SlotsPerBackend *Slots `yaml:"slotsPerBackend" default:"null" unset:"0" sets:"controller.Stock.SlotsPerBackend" page:"first" flag:"slots-per-backend" help:"batch <slots> of a backend that does not report them, which it is kept filled to; auto: found by its metrics; or unbounded (also --slots)"`
	// Whether the slots that an engine states (SGLang, llama.cpp; docs/routing.md) go before slotsPerBackend and the endpoint's
	// own; with slotsPerBackend: auto they do so anyway.
	//
	// Default: A number that the operator states is a policy.
	StatedSlots bool `yaml:"statedSlots" default:"false" sets:"controller.Stock.Stated"`
	// Tokens of the requests that each backend should have, weighted by tokens.stockWeights; 0: only requests count.
	// The stock is below a bound in tokens if any backend is; it must also be below the bound in requests. A backend
	// gets no request of any lane while its requests take its upper bound or more. From 0 to 1000000000.
	//
	// Default: The memory of an engine for tokens is its own; a wrong bound would leave it idle.
	WatermarkTokensPerBackend int64 `yaml:"watermarkTokensPerBackend" default:"0" sets:"controller.Stock.Tokens.Watermark"`
	// Explicit lower bound of the tokens. From 1 to its watermark; null derives it from the watermark.
	//
	// Default: Without a watermark in tokens there is no bound to derive.
	LowerBoundTokensPerBackend *int64 `yaml:"lowerBoundTokensPerBackend" default:"null" unset:"0" sets:"controller.Stock.Tokens.Lower"`
	// Explicit upper bound of the tokens. From its watermark to 1000000000; null derives it from the watermark.
	//
	// Default: Without a watermark in tokens there is no bound to derive.
	UpperBoundTokensPerBackend *int64 `yaml:"upperBoundTokensPerBackend" default:"null" unset:"0" sets:"controller.Stock.Tokens.Upper"`
	// Number of goroutines that release requests where no request's own goroutine does. From 1 to 1000. One is enough,
	// since they are woken by events.
	//
	// Default: The proposal's; parked goroutines cost nothing.
	NumPoppers int64 `yaml:"numPoppers" default:"10" sets:"controller.NumPoppers" flag:"num-poppers" help:"<goroutines> that release requests at a time, not at an event" page:"rare"`
	// Wait of a popper before it retries after an unexpected error. Above 0s.
	//
	// Default: The proposal's; long enough not to spin on an error, short enough not to be seen.
	PopperWaitBase Duration `yaml:"popperWaitBase" default:"10ms" sets:"controller.PopperWaitBase" flag:"popper-wait-base" help:"wait of a popper after an unexpected error" page:"rare"`
	// Maximum random addition to popperWaitBase. At least 0s.
	//
	// Default: The proposal's; a tenth of popperWaitBase keeps poppers apart.
	PopperWaitJitterMax Duration `yaml:"popperWaitJitterMax" default:"1ms" sets:"controller.PopperWaitJitterMax" flag:"popper-wait-jitter-max" help:"longest random addition to --popper-wait-base" page:"rare"`
	// Longest time between two sweeps of the queue for expired requests. Above 0s. It is only an upper bound: requests
	// expire exactly on time.
	//
	// Default: The proposal's; only an upper bound, since a timer stands at each deadline.
	ExpiryCleanupInterval Duration `yaml:"expiryCleanupInterval" default:"1s" sets:"controller.ExpiryCleanupInterval" flag:"expiry-cleanup-interval" help:"longest time between two sweeps for expired requests" page:"rare"`
	// Keep requests from endpoints whose engine fails (circuits): a failure (500, 502, 503, 504, or a reset) holds its
	// place, for its flow's cap too, for 100 ms or an eighth of the usual time; after 8 failures in 16 answers the endpoint
	// gets no request for 1 to 30 s, and then one as a trial; after 8 requests in a row that Envoy served elsewhere, none
	// for 30 s; 429 with Retry-After to two tenants closes it for that time, up to 30 s (to one tenant only while no other
	// has requests). Never more than half of the endpoints, nor the last one that a request may use.
	//
	// Default: The proposal has nothing like it.
	Circuits bool `yaml:"circuits" default:"false" sets:"controller.Circuits"`
	// Minimum time between two releases from the queue, from 0s (none) to 1s. If all requests take the same time, those
	// released together end together from then on, and a request that has just missed them waits for all of them; 80 %
	// of service time / slots spreads them. At most one request is released per spacing, so leave it at 0s if service
	// times differ anyway.
	//
	// Default: Costs throughput unless all requests take the same time.
	ReleaseSpacing Duration `yaml:"releaseSpacing" default:"0s" sets:"controller.ReleaseSpacing"`
	// Maximum number of requests of one tenant (flow key), over all its tiers and classes, that are dispatched and not
	// complete; at least 0; 0: no limit, which flows.discipline none requires. A request at the cap may preempt its own tenant's in a
	// lower tier.
	//
	// Default: A flow that is alone may use every slot; fairness needs no cap.
	MaxInFlightPerFlow int64 `yaml:"maxInFlightPerFlow" default:"0" sets:"controller.MaxInFlightPerFlow"`
	// The same at each backend; at least 0; 0: no limit.
	//
	// Default: A flow that is alone may use every slot; fairness needs no cap.
	MaxInFlightPerFlowPerBackend int64 `yaml:"maxInFlightPerFlowPerBackend" default:"0" sets:"controller.MaxInFlightPerFlowPerBackend"`
	// Maximum number of tokens of one tenant's requests, counted likewise, that are dispatched and not complete, weighted by
	// tokens.stockWeights; at least 0; 0: no limit. A tenant below it may have one more request of any size.
	//
	// Default: A flow that is alone may use all memory; fairness needs no cap.
	MaxTokensInFlightPerFlow int64 `yaml:"maxTokensInFlightPerFlow" default:"0" sets:"controller.MaxTokensInFlightPerFlow"`
	// The same at each backend; at least 0; 0: no limit. It keeps one tenant of long prompts from taking a backend's memory.
	//
	// Default: A flow that is alone may use all memory; fairness needs no cap.
	MaxTokensInFlightPerFlowPerBackend int64 `yaml:"maxTokensInFlightPerFlowPerBackend" default:"0" sets:"controller.MaxTokensInFlightPerFlowPerBackend"`
	// Whether a request waits, until its TTL, while no backend is ready that it may use. If not, it is rejected at once with
	// no-endpoint, and so are waiters when the last such backend goes.
	//
	// Default: Engines that restart are back within many a TTL, and an error would be worse than waiting.
	HoldWhenEmpty bool `yaml:"holdWhenEmpty" default:"true" sets:"controller.HoldWhenEmpty"`
	// The request of the lowest tier that is preempted: newest (dispatched last) or least-cost (fewest tokens, by
	// tokens.stockWeights and the latest estimate, then newest).
	//
	// Default: The newest has lost the least work; costs are only estimated.
	VictimOrder string `yaml:"victimOrder" default:"newest" sets:"controller.VictimOrder"`
	// Time after SIGTERM in which queued and new requests are still served, before the rest is rejected (draining).
	// From 0s to 1h.
	//
	// Default: As long as queueTTL, so that a request that waits at SIGTERM is served or expires as usual.
	DrainWindow Duration `yaml:"drainWindow" default:"30s"`
	// Least time after SIGTERM in which requests are served, even if none waits: proxies need it to see that this
	// replica is not ready. From 0s to drainWindow.
	//
	// Default: Proxies that ask every 1 to 5 s have seen by then that this replica is not ready.
	MinDrain Duration `yaml:"minDrain" default:"5s" flag:"min-drain" help:"least time from SIGTERM to the end, so that proxies learn of it; 0s where there are none"`
	// Headers with the client's own deadline, set by an outer hop, in milliseconds from arrival; grpc-timeout is read
	// in gRPC's format (10S, 500m). The earliest counts; 0 and unreadable values are none. At most 16.
	//
	// Default: Clients can write any header, so a deadline counts only where the operator names it.
	DeadlineHeaders []string `yaml:"deadlineHeaders" default:"[]" sets:"streams.DeadlineHeaders"`
}

// Limiter is a token bucket over all requests.
type Limiter struct {
	// Requests that may pass in a second, on average; 0: no limit. From 0 to 1000000, and at least 0.001 if not 0.
	//
	// Default: A bound on what runs protects engines better than a rate.
	Rate Decimal `yaml:"rate" default:"0" sets:"controller.Limiter.Rate"`
	// Requests that may pass at once after a pause. From 1 to 1000000.
	//
	// Default: Requests pass one by one.
	Burst int64 `yaml:"burst" default:"1" sets:"controller.Limiter.Burst"`
}
