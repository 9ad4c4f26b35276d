package config

// Responses configures the answers to rejected requests.
type Responses struct {
	// Base set of statuses: seed (503), gateway (429 for shedding), smg or dynamo.
	Preset string `yaml:"preset"`
	// Whether every answer carries the decision about its request as dynamic metadata, for the access log of Envoy:
	// flow, tier, model, wait_ms, endpoint, outcome and bypass in the namespace weir (docs/envoy.md).
	Metadata bool `yaml:"metadata"`
	// Single statuses that differ from the preset, by reason: for example queue-full: 429. From 400 to 599.
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
	// The tier of a request that declares none, nor does its tenant's policy: Critical, Standard, Sheddable or the name of a tier.
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
	// Request header with a priority, a whole number: with order fcfs it counts as so many seconds of waiting, with edf
	// the deadline counts as so many seconds earlier, with wspt the cost is divided by 1 + priority; empty: none.
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
	// Header with the request's whole cost, in cost units; empty: none. A request without it costs 1, or with cost: tokens
	// what is estimated.
	Cost string `yaml:"cost"`
	// Header with the length of the request's prompt in tokens, by somebody who has counted them; empty: none. It replaces
	// the estimate of the prompt with cost: tokens.
	InputTokens string `yaml:"inputTokens"`
}

// Tokens configures what tokens cost, and how they are estimated.
type Tokens struct {
	// What the kinds of tokens cost.
	Weights TokenWeights `yaml:"weights"`
	// What the kinds of tokens take of the stock where its tokens are bounded: an engine's memory, of which a token of an
	// answer takes as much as one of the prompt, and a cached one too, since it stays in use.
	StockWeights StockWeights `yaml:"stockWeights"`
	// How the length of a prompt is estimated.
	Input TokenInput `yaml:"input"`
	// How the length of an answer is estimated.
	Output TokenOutput `yaml:"output"`
	// Ask for the usage of streamed answers of /v1/chat/completions and /v1/completions where the client does not
	// (stream_options.include_usage), and take it out of the answer again. Envoy has to show Weir the bodies of requests
	// (BUFFERED, FULL_DUPLEX_STREAMED) and of answers (STREAMED, FULL_DUPLEX_STREAMED); needs usage: body, or usage: auto
	// with cost: tokens; not with requestBody: never.
	IncludeUsage bool `yaml:"includeUsage"`
}

// TokenWeights are what the kinds of tokens cost.
type TokenWeights struct {
	// Cost of a token of the prompt. From 0 to 1000, and above 0 if output is 0.
	Input Decimal `yaml:"input"`
	// Cost of a token of the prompt that the engine had in its cache. From 0 to 1000.
	CachedInput Decimal `yaml:"cachedInput"`
	// Cost of a token of an answer: it takes the engine more time than one of the prompt. From 0 to 1000.
	Output Decimal `yaml:"output"`
}

// StockWeights are what the kinds of tokens take of the stock: of the engines' memory.
type StockWeights struct {
	// What a token of the prompt takes of the stock, where its tokens are bounded (watermarkTokensPerBackend): of an
	// engine's memory. From 0 to 1000, and above 0 if output is 0.
	Input Decimal `yaml:"input"`
	// What a token of the prompt takes of it that the engine had in its cache, since it stays in use. From 0 to 1000.
	CachedInput Decimal `yaml:"cachedInput"`
	// What a token of an answer takes of it: it needs more time than one of the prompt, but as much memory. From 0 to 1000.
	Output Decimal `yaml:"output"`
}

// TokenInput configures how the length of a prompt is estimated.
type TokenInput struct {
	// Bytes of text in a token, where nothing is known of a model yet. From 1 to 8.
	BytesPerToken Decimal `yaml:"bytesPerToken"`
}

// TokenOutput configures how the length of an answer is estimated, for each flow and model by what they have used.
type TokenOutput struct {
	// Share of the answers that are no longer than the estimate. From 0.5 to 0.99.
	Quantile Decimal `yaml:"quantile"`
	// Number of answers that this share is taken of: the last so many count between half and all. From 8 to 1024.
	Window int64 `yaml:"window"`
	// Shortest estimate of an answer, in tokens. From 0 to 1000000.
	Floor int64 `yaml:"floor"`
	// Estimate of an answer of a flow of which nothing is known, in tokens. From 1 to 1000000.
	ColdStart int64 `yaml:"coldStart"`
	// How fast an answer is taken to be produced where its flow's rate is unknown, in tokens per second: an answer that ends
	// without usage is charged by its time. From 1 to 1000000.
	ColdRate int64 `yaml:"coldRate"`
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
	// Largest request headers as they come to Weir, names and values, in bytes; larger ones are rejected (too-large). Envoy
	// must allow 512 more, for Weir's own (max_request_headers_kb), or its 503 takes the place of the rejection. At least 1.
	MaxHeaderBytes int64 `yaml:"maxHeaderBytes"`
	// Most request headers as they come to Weir, those of Envoy and HTTP's own (:path) with them; more are rejected
	// (too-large). Envoy must allow 2 more (max_headers_count). At least 1.
	MaxHeaders int64 `yaml:"maxHeaders"`
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
