package config

// Responses configures the answers to rejected requests.
type Responses struct {
	// Base set of statuses: seed (503), gateway (429 for shedding), smg or dynamo.
	Preset string `yaml:"preset"`
	// Whether every answer carries the decision about its request as dynamic metadata, for the access log of Envoy:
	// flow, tier, model, wait_ms, endpoint, outcome and bypass in the namespace weir (docs/envoy.md).
	Metadata bool `yaml:"metadata"`
	// Single statuses that differ from the preset, by reason: for example queue-full: 429. From 200 to 599.
	Status map[string]int64 `yaml:"status"`
	// Whether a client that sends x-weir-queue-state: 1 is told how long it waited and how many wait.
	QueueState bool `yaml:"queueState"`
}

// Criticality configures how the tier of a request is found.
type Criticality struct {
	// Request header that names a tier; empty: none.
	Header string `yaml:"header"`
	// Dynamic metadata that names a tier, as NAMESPACE/PATH; empty: none.
	Metadata string `yaml:"metadata"`
	// The tier of a request that declares none: Critical, Standard, Sheddable or the name of a tier.
	Default string `yaml:"default"`
	// Highest tier that tenants without a policy (tenantPolicies) may use, by name or criticality; a request that
	// asks for more is clamped to it; empty: any.
	MaxClass string `yaml:"maxClass"`
	// Request headers that name an objective (objectives); the first one present counts; empty: none. At most 4.
	ObjectiveHeaders []string `yaml:"objectiveHeaders"`
}

// PolicyClass is the section of where a request's class may be named, and its priorities within that.
type PolicyClass struct {
	// Request headers that name a class (classes), the first that is present counts; empty: none. At most 2. A request that
	// names none of the classes belongs to the first.
	Headers []string `yaml:"headers"`
	// Request header with a priority, a whole number: with order fcfs it counts as so many seconds of waiting, with wspt
	// the cost is divided by 1 + priority; empty: none.
	PriorityHeader string `yaml:"priorityHeader"`
	// Request header with a strict priority, a whole number: within a class, more of it goes first; empty: none.
	StrictPriorityHeader string `yaml:"strictPriorityHeader"`
	// Highest strict priority that a request may have; a higher one counts as this. From 0 to 8191.
	MaxStrictPriority int64 `yaml:"maxStrictPriority"`
}

// TrustedHeaders names the headers that only the gateway sets.
type TrustedHeaders struct {
	// Header with the model, which makes reading the body unnecessary; empty: none.
	Model string `yaml:"model"`
	// Header with the request's cost, in cost units; empty: none. A request without it costs 1.
	Cost string `yaml:"cost"`
}

// Limits bounds sizes and counts, and with them the memory.
type Limits struct {
	// Largest request body, in bytes; a larger one is rejected (too-large). From 1 to 1073741824 (1 GiB), and at most
	// maxBodyBytesTotal.
	MaxBodyBytes int64 `yaml:"maxBodyBytes"`
	// Maximum memory for all request bodies together, in bytes. When it is used up, the sender with the most bytes of
	// incomplete bodies loses the newest of them (no-memory).
	MaxBodyBytesTotal int64 `yaml:"maxBodyBytesTotal"`
	// How long the body of a request may take to arrive where Weir collects it, plus 1 second for every 64 KiB of it;
	// after that it is rejected (body-timeout). Above 0s and at most 1h.
	BodyTimeout Duration `yaml:"bodyTimeout"`
	// Largest request headers, in bytes. At least 1.
	MaxHeaderBytes int64 `yaml:"maxHeaderBytes"`
	// Maximum number of label values of one kind in the metrics (flows; pairs of model and target), at least 1 and
	// never more than 1000; the rest is counted as "other". Read only at the start. Flows in memory need no bound of
	// their own: there are never more than requests waiting and in flight, plus 1024 keys of earlier flows per tier.
	MaxFlows int64 `yaml:"maxFlows"`
}

// Scheduling configures how an endpoint is chosen.
type Scheduling struct {
	// What an endpoint must satisfy: ready (required), subset (the subset hint of the gateway), model (it serves the
	// model).
	Filters []string `yaml:"filters"`
	// What makes one endpoint better than another.
	Scorers []Scorer `yaml:"scorers"`
	// How the endpoint is chosen from the scores: max-score.
	Picker string `yaml:"picker"`
	// Which of several equally good endpoints is taken: rotate (the next in turn), first or random.
	TieBreak string `yaml:"tieBreak"`
	// How many more endpoints, next best first, are named to the gateway after the chosen one, for its retries. From 0
	// to 8.
	Fallbacks int64 `yaml:"fallbacks"`
}

// Scorer is a scorer and its weight.
type Scorer struct {
	// Name of the scorer: least-stock (fewest requests dispatched and not complete).
	Name string `yaml:"name"`
	// Weight of its score in the sum. From 1 to 1000.
	Weight int64 `yaml:"weight"`
}

func (s *Scorer) setDefaults() { s.Weight = 1 }
