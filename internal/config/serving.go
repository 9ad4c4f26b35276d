package config

// Responses is the section of the rejections.
type Responses struct {
	// Statuses to begin with: seed (503), gateway (429 for shedding), smg or dynamo.
	Preset string `yaml:"preset"`
	// Let every answer bring what was decided of the request as dynamic metadata, for Envoy's access log: flow, tier,
	// model, wait_ms, endpoint, outcome and bypass in the namespace weir (docs/envoy.md).
	Metadata bool `yaml:"metadata"`
	// Single statuses that differ from the preset, by reason: for example queue-full: 429. From 200 to 599.
	Status map[string]int64 `yaml:"status"`
	// Whether a client that sends x-weir-queue-state: 1 is told how long it waited and how many wait.
	QueueState bool `yaml:"queueState"`
}

// Criticality is the section of where a request's tier may be named.
type Criticality struct {
	// Request header that names a tier; empty: none.
	Header string `yaml:"header"`
	// Dynamic metadata that names a tier, as NAMESPACE/PATH; empty: none.
	Metadata string `yaml:"metadata"`
	// The tier of a request that nobody declared: Critical, Standard, Sheddable or a tier's name.
	Default string `yaml:"default"`
	// Highest tier that tenants without a policy (tenantPolicies) may use, by name or criticality; a request that
	// asks for more is clamped to it; empty: any.
	MaxClass string `yaml:"maxClass"`
	// Request headers that name an objective (objectives), the first that is present counts; empty: none. At most 4.
	ObjectiveHeaders []string `yaml:"objectiveHeaders"`
}

// TrustedHeaders is the section of the headers that only the gateway sets.
type TrustedHeaders struct {
	// Header with the model, which saves reading the body; empty: none.
	Model string `yaml:"model"`
	// Header with the request's cost, in cost units; empty: none. A request without it costs 1.
	Cost string `yaml:"cost"`
}

// Limits is the section of the sizes and counts that bound memory.
type Limits struct {
	// Largest request body, in bytes; a larger one is rejected (too-large).
	MaxBodyBytes int64 `yaml:"maxBodyBytes"`
	// Most memory for the bodies of all requests together, in bytes. When it is used up, who has the most bytes of bodies
	// that are not whole yet loses the newest of them (no-memory).
	MaxBodyBytesTotal int64 `yaml:"maxBodyBytesTotal"`
	// How long a request's body may take to arrive where Weir collects it, and 1 second more for every 64 KiB of it; later
	// it is rejected (body-timeout). Above 0s and at most 1h.
	BodyTimeout Duration `yaml:"bodyTimeout"`
	// Largest request headers, in bytes.
	MaxHeaderBytes int64 `yaml:"maxHeaderBytes"`
	// Most label values of a kind in the metrics (flows; pairs of model and target), at most 1000 whatever is given;
	// beyond it they are counted as "other". Read at the start only. The flows in memory need no bound of their own:
	// there are never more of them than requests waiting and in flight, and 1024 keys of earlier ones for each tier.
	MaxFlows int64 `yaml:"maxFlows"`
}

// Scheduling is the section of how an endpoint is chosen.
type Scheduling struct {
	// What an endpoint must satisfy: ready, subset (the gateway's subset hint), model (it serves the model).
	Filters []string `yaml:"filters"`
	// What makes one endpoint better than another.
	Scorers []Scorer `yaml:"scorers"`
	// How the endpoint is taken from the scores: max-score.
	Picker string `yaml:"picker"`
	// Which of several equally good endpoints is taken: rotate (the next in turn), first or random.
	TieBreak string `yaml:"tieBreak"`
	// How many more endpoints, next best first, are named to the gateway after the chosen one, for its retries. From 0
	// to 8.
	Fallbacks int64 `yaml:"fallbacks"`
}

// Scorer is one scorer with its weight.
type Scorer struct {
	// Name of the scorer: least-stock (fewest requests dispatched and not complete).
	Name string `yaml:"name"`
	// Weight of its score in the sum. From 1 to 1000.
	Weight int64 `yaml:"weight"`
}

func (s *Scorer) setDefaults() { s.Weight = 1 }
