package config

// Responses configures the answers to rejected requests.
type Responses struct {
	// Base set of statuses: seed (503), gateway (429 for shedding), smg or dynamo.
	//
	// Default: The proposal's; every client retries 503.
	Preset string `yaml:"preset" default:"seed" sets:"streams.Responses.Preset"`
	// Whether every answer carries the decision about its request as dynamic metadata, for the access log of Envoy:
	// flow, tier, model, wait_ms, endpoint, outcome and bypass in the namespace weir (docs/envoy.md).
	//
	// Default: It names flows in Envoy's access log, where they may be secret, and costs a little for each answer.
	Metadata bool `yaml:"metadata" default:"false" sets:"streams.Responses.Metadata"`
	// Single statuses that differ from the preset, by reason: for example queue-full: 429. From 400 to 599.
	//
	// Default: The presets are consistent in themselves.
	Status map[string]int64 `yaml:"status" default:"{}" sets:"streams.Responses.Status"`
	// Whether answers to clients that send x-weir-queue-state: 1 have their wait and the length of the queue.
	//
	// Default: The length of a queue may be the operator's secret.
	QueueState bool `yaml:"queueState" default:"false" sets:"streams.Responses.QueueState"`
}

// Criticality configures how the tier of a request is found.
type Criticality struct {
	// Request header that names a tier; empty: none.
	//
	// Default: Clients can write any header, so a tier is taken from one only where the operator names it.
	Header string `yaml:"header" default:"''" sets:"streams.Criticality.Header" page:"first"`
	// Dynamic metadata that names a tier, as NAMESPACE/PATH; empty: none.
	//
	// Default: There is no common name for it.
	Metadata string `yaml:"metadata" default:"''" sets:"streams.Criticality.Metadata" page:"first"`
	// The tier of a request, if neither the request nor its tenant's policy declares one: Critical, Standard, Sheddable
	// or the name of a tier.
	//
	// Default: An unconfigured Weir queues instead of shedding.
	Default string `yaml:"default" default:"Critical" sets:"streams.Criticality.Default" page:"first"`
	// Highest tier that tenants without a policy (tenantPolicies) may use, by name or criticality; a request that
	// asks for more is clamped to it; empty: any.
	//
	// Default: Without tenants to tell apart there is none to limit.
	MaxClass string `yaml:"maxClass" default:"''" page:"first"`
	// Request headers that name an objective (objectives); the first one present counts; empty: none. At most 4.
	//
	// Default: The name that llm-d's and GIE's endpoint pickers read.
	ObjectiveHeaders []string `yaml:"objectiveHeaders" default:"[x-llm-d-inference-objective]" sets:"streams.Criticality.ObjectiveHeaders" page:"first"`
}

// PolicyClass is the section of where a request's class may be named, and its priorities within that.
type PolicyClass struct {
	// Request headers that name a class or a family (classes), the first that is present counts; empty: none. At most 2. A
	// request that names neither belongs to defaultFamily, or without families to the first class.
	//
	// Default: Clients can write any header, so a class is taken from one only where the operator names it.
	Headers []string `yaml:"headers" default:"[]" sets:"streams.PolicyClass.Headers"`
	// Family of a request that names no family, or names a class that does not exist or belongs to a family. Must be
	// given if classes have families.
	//
	// Default: Without families there is none.
	DefaultFamily string `yaml:"defaultFamily" default:"''" sets:"streams.Ring.DefaultFamily"`
	// Buckets of the requests of a family, in ascending order of minTokens: a request is in the last one whose minTokens it
	// has, in uncached tokens, when it is enqueued. Must be given if classes have families.
	//
	// Default: Without families there is nothing to tell apart.
	UncachedBuckets []Bucket `yaml:"uncachedBuckets" default:"[]" sets:"streams.Ring.Buckets"`
	// defaultFamily and uncachedBuckets of the models that have classes of their own (classes[].model), by model.
	//
	// Default: Most models share their classes.
	ByModel map[string]ModelFamilies `yaml:"byModel" default:"{}" sets:"streams.ModelRings"`
	// Request header with a priority, a whole number: with order fcfs it counts as so many seconds of waiting, with edf
	// the deadline counts as so many seconds earlier, with wspt the cost is divided by 1 + priority; empty: none.
	//
	// Default: Clients can write any header, and all would be urgent.
	PriorityHeader string `yaml:"priorityHeader" default:"''" sets:"streams.PolicyClass.PriorityHeader"`
	// Request header with a strict priority, a whole number: within a class, more of it goes first; empty: none.
	//
	// Default: Clients can write any header, and all would be urgent.
	StrictPriorityHeader string `yaml:"strictPriorityHeader" default:"''" sets:"streams.PolicyClass.StrictPriorityHeader"`
	// Hints of request bodies (nvext.agent_hints) that count where no header states the same, for which the body is
	// read: priority, strict_priority, osl (the length of the answer in tokens, which the estimate takes instead of its
	// own) and latency_sensitivity (seconds, which count as the priority if none is stated: with order edf they move
	// the deadline earlier).
	//
	// Default: Clients write the body, and all would be urgent.
	Hints []string `yaml:"hints" default:"[]" sets:"streams.PolicyClass.Hints"`
	// Highest priority that a request may have; a higher one counts as this. From 0 to 2147483647.
	//
	// Default: A priority is named only where the operator lets it, and orders requests within their flow.
	MaxPriority int64 `yaml:"maxPriority" default:"2147483647" sets:"streams.PolicyClass.MaxPriority"`
	// Highest strict priority that a request may have; a higher one counts as this. From 0 to 8191.
	//
	// Default: No request is before the others in its class unless the operator lets it.
	MaxStrictPriority int64 `yaml:"maxStrictPriority" default:"0" sets:"streams.PolicyClass.MaxStrictPriority"`
}

// ModelFamilies is how the requests for one model find their class.
type ModelFamilies struct {
	// As policyClass.defaultFamily, for the classes of the model.
	//
	// Default: Without families there is none.
	DefaultFamily string `yaml:"defaultFamily" default:"''" sets:"streams.ModelRings[].DefaultFamily"`
	// As policyClass.uncachedBuckets, for the classes of the model.
	//
	// Default: Without families there is nothing to tell apart.
	UncachedBuckets []ModelBucket `yaml:"uncachedBuckets" default:"[]" sets:"streams.ModelRings[].Buckets"`
}

// ModelBucket is a Bucket of a model.
type ModelBucket struct {
	// As in policyClass.uncachedBuckets. From 0 to 1073741824.
	MinTokens int64 `yaml:"minTokens" sets:"streams.ModelRings[].Buckets[].MinTokens"`
	// As in policyClass.uncachedBuckets.
	Bucket string `yaml:"bucket" sets:"streams.ModelRings[].Buckets[].Name"`
}

// Bucket is the requests of a family with so many uncached tokens.
type Bucket struct {
	// Uncached tokens from which a request is in the bucket, up to the next bucket's; 0 in the first one. Tokens are
	// uncached if the engine that has most of the prompt cached does not have them. From 0 to 1073741824.
	MinTokens int64 `yaml:"minTokens" sets:"streams.Ring.Buckets[].MinTokens"`
	// Name of the bucket, which classes[].bucket names; unique; letters, digits, '_', '.' and '-'; at most 256 bytes.
	Bucket string `yaml:"bucket" sets:"streams.Ring.Buckets[].Name"`
}

// TrustedHeaders names the headers that only the gateway sets.
type TrustedHeaders struct {
	// Header with the model, which makes reading the body unnecessary; empty: none.
	//
	// Default: The name that llm-d's and GIE's body-based routers write; the shipped files remove it from clients.
	Model string `yaml:"model" default:"x-gateway-model-name" sets:"streams.TrustedHeaders.Model" page:"first"`
	// Header with the request's whole cost, in cost units; empty: none. A request without it costs 1, or with cost:
	// tokens the estimate.
	//
	// Default: A client that states its own costs can undercut all others, so the operator has to name the header.
	Cost string `yaml:"cost" default:"''" sets:"streams.TrustedHeaders.Cost" page:"first"`
	// Header with the counted length of the request's prompt in tokens; empty: none. It replaces the estimate of the
	// prompt with cost: tokens.
	//
	// Default: A client that states its own lengths can undercut all others, so the operator has to name the header.
	InputTokens string `yaml:"inputTokens" default:"''" sets:"streams.TrustedHeaders.InputTokens" page:"first"`
	// Header with the requirements of the request's endpoint: NAME=VALUE, a label that it must have, and ~TAINT, a
	// taint that it may have, at most 16 separated by commas; empty: none. Requests without it go to endpoints without
	// taints.
	//
	// Default: A client that names its engine goes past what the operator intends.
	Requirements string `yaml:"requirements" default:"''" sets:"streams.TrustedHeaders.Requirements"`
}

// Tokens configures the cost and the estimate of tokens.
type Tokens struct {
	// Cost of each kind of token.
	Weights TokenWeights `yaml:"weights"`
	// Weight of each kind of token in the stock where its tokens are bounded: an engine's memory, of which a token of an
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
	//
	// Default: It needs bodies and answers to pass through Weir, which costs more than it gives where Envoy can read
	// usage.
	IncludeUsage bool `yaml:"includeUsage" default:"false" sets:"streams.IncludeUsage"`
}

// TokenWeights are the costs of the kinds of tokens.
type TokenWeights struct {
	// Cost of a token of the prompt. From 0 to 1000, and above 0 if output is 0.
	//
	// Default: The unit of the other weights.
	Input Decimal `yaml:"input" default:"1" sets:"streams.Tokens.Weights.Input" page:"first"`
	// Cost of a token of the prompt that the engine had in its cache. From 0 to 1000.
	//
	// Default: A cached prompt still takes a slot and memory, and the cost of a shared prefix should not depend on
	// luck.
	CachedInput Decimal `yaml:"cachedInput" default:"1" sets:"streams.Tokens.Weights.CachedInput" page:"first"`
	// Cost of a token of an answer: it takes the engine more time than one of the prompt. From 0 to 1000.
	//
	// Default: A token of an answer is a step of the engine, one of a prompt a part of one; providers charge 2 to 5
	// times as much, and 2 errs towards equal.
	Output Decimal `yaml:"output" default:"2" sets:"streams.Tokens.Weights.Output" page:"first"`
}

// StockWeights are the parts of the stock, an engine's memory, that the kinds of tokens take.
type StockWeights struct {
	// Weight in the stock of a token of the prompt, where tokens are bounded (watermarkTokensPerBackend): its part of an
	// engine's memory. From 0 to 1000, and above 0 if output is 0.
	//
	// Default: A token takes the same memory wherever it comes from.
	Input Decimal `yaml:"input" default:"1" sets:"streams.Tokens.StockWeights.Input"`
	// Weight in the stock of a token of the prompt that the engine had in its cache, since it stays in use. From 0 to 1000.
	//
	// Default: A cached token stays in memory while it is in use.
	CachedInput Decimal `yaml:"cachedInput" default:"1" sets:"streams.Tokens.StockWeights.CachedInput"`
	// Weight in the stock of a token of an answer: it needs more time than one of the prompt, but as much memory. From
	// 0 to 1000.
	//
	// Default: A token takes the same memory wherever it comes from.
	Output Decimal `yaml:"output" default:"1" sets:"streams.Tokens.StockWeights.Output"`
}

// TokenInput configures how the length of a prompt is estimated.
type TokenInput struct {
	// Bytes of text in a token, for a model without usage yet. From 1 to 8.
	//
	// Default: English text in the tokenizers in use has 4 to 4.5; it is learned after the first answers.
	BytesPerToken Decimal `yaml:"bytesPerToken" default:"4" sets:"streams.Tokens.ColdRatio"`
}

// TokenOutput configures the estimate of an answer's length, by the usage of each flow and model.
type TokenOutput struct {
	// Share of the answers that are no longer than the estimate. From 0.5 to 0.99.
	//
	// Default: Overestimates are refunded at the end of the answer, while underestimates overfill the engines
	// meanwhile.
	Quantile Decimal `yaml:"quantile" default:"0.9" sets:"streams.Tokens.Quantile"`
	// Number of answers that this share is taken of: the last so many count between half and all. From 8 to 1024.
	//
	// Default: Long enough for a quantile of 0.9 to rest on several answers, short enough to follow a new kind of
	// requests.
	Window int64 `yaml:"window" default:"64" sets:"streams.Tokens.Window"`
	// Shortest estimate of an answer, in tokens. From 0 to 1000000.
	//
	// Default: Nearly every answer is longer, and a flow of one-word answers cannot become nearly free.
	Floor int64 `yaml:"floor" default:"16" sets:"streams.Tokens.Floor"`
	// Estimate of an answer of an unknown flow, in tokens. From 1 to 1000000.
	//
	// Default: More than most chat answers, so a new flow gains nothing by being new.
	ColdStart int64 `yaml:"coldStart" default:"1000" sets:"streams.Tokens.ColdOutput"`
	// Rate at which an answer counts as produced if its flow's rate is unknown, in tokens per second: an answer that
	// ends without usage is charged by its time. From 1 to 1000000.
	//
	// Default: A usual rate of one stream of a busy engine; it is learned after the first answers.
	ColdRate int64 `yaml:"coldRate" default:"50" sets:"streams.Tokens.ColdRate"`
}

// Limits bounds sizes and counts, and with them the memory.
type Limits struct {
	// Largest request body, in bytes; a larger one is rejected (too-large). From 1 to 1073741824 (1 GiB), and at most
	// maxBodyBytesTotal.
	//
	// Default: As the buffer of the shipped files, and larger than any text prompt; only images are larger.
	MaxBodyBytes int64 `yaml:"maxBodyBytes" default:"33554432" sets:"streams.Limits.MaxBodyBytes" page:"first"`
	// Maximum memory for all request bodies together, in bytes. When it is used up, the sender with the most bytes of
	// incomplete bodies loses the newest of them (no-memory). At least 1.
	//
	// Default: Room for 32 of the largest bodies at a time.
	MaxBodyBytesTotal int64 `yaml:"maxBodyBytesTotal" default:"1073741824" sets:"streams.Limits.MaxBodyBytesTotal"`
	// Time that the body of a request may take to arrive where Weir collects it, plus 1 second for every 64 KiB of it;
	// after that it is rejected (body-timeout). Above 0s and at most 1h.
	//
	// Default: Half a minute for the small, and beyond that 64 KiB/s, slower than any link that such prompts come by.
	BodyTimeout Duration `yaml:"bodyTimeout" default:"30s" sets:"streams.Limits.BodyTimeout"`
	// Largest request headers as they come to Weir, names and values, in bytes; larger ones are rejected (too-large). Envoy
	// must allow 512 more, for Weir's own (max_request_headers_kb), or its 503 takes the place of the rejection. At
	// least 1.
	//
	// Default: Envoy's default of 60 KiB, less 512 bytes for a destination with 9 endpoints.
	MaxHeaderBytes int64 `yaml:"maxHeaderBytes" default:"60928" sets:"streams.Limits.MaxHeaderBytes"`
	// Most request headers as they come to Weir, those of Envoy and HTTP's own (:path) with them; more are rejected
	// (too-large). Envoy must allow 2 more (max_headers_count). At least 1.
	//
	// Default: Envoy's default of 100, less a destination and a content length.
	MaxHeaders int64 `yaml:"maxHeaders" default:"98" sets:"streams.Limits.MaxHeaders"`
	// Maximum number of label values of one kind in the metrics (flows; pairs of model and target), at least 1 and
	// never more than 1000; the rest is counted as "other"; and maximum number of tenants whose use of their quotas is
	// known: with more, that of the tenant that asked longest ago is forgotten. Labels are read only at the start.
	// Flows in memory need no bound of their own: there are never more than requests waiting and in flight, plus 1024
	// keys of earlier flows per tier.
	//
	// Default: The labels have a lower limit of their own (1,000), and a tenant in its window takes at most 2 KiB.
	MaxFlows int64 `yaml:"maxFlows" default:"100000" sets:"controller.MaxLabels controller.Quotas.MostAccounts" reload:"at next start" page:"rare"`
}

// Scheduling configures how an endpoint is chosen.
type Scheduling struct {
	// Conditions that an endpoint must meet: ready (required), subset (the subset hint of the gateway), model (it
	// serves the model).
	//
	// Default: Each leaves out only endpoints that cannot serve the request.
	Filters []string `yaml:"filters" default:"[ready, subset, model]" sets:"scheduling.Filters" page:"rare"`
	// The comparison of endpoints: cost (the tokens that an engine has to read for a request, times the endpoint's
	// load), mindrouter (points for a loaded model, utilisation, requests there, speed and priority; affinity must be off
	// then) or none (all are alike, and tieBreak chooses).
	//
	// Default: A sum of points has no weights that are right under every load.
	Policy string `yaml:"policy" default:"cost" sets:"scheduling.Policy"`
	// Points of policy mindrouter; docs/routing.md has the formula.
	MindRouter MindRouter `yaml:"mindrouter"`
	// Part of a request by which Weir finds the endpoint that has its prompt in the KV cache: prefix (the beginning of
	// its prompt, for which the request body is read), session (the name of its session) or off. A request then goes to
	// the endpoint with the fewest tokens to read, times the endpoint's load. docs/routing.md explains its metrics.
	//
	// Default: It costs the reading of bodies, and is worth nothing where prompts have nothing in common.
	Affinity string `yaml:"affinity" default:"off" sets:"streams.Affinity.Mode" page:"first"`
	// Requests whose prompts are compared: all (those for one model) or flow (those of one flow). Where tenants must not learn
	// from the time of an answer whether another has sent a prompt, flow.
	//
	// Default: A system prompt that tenants share is read once.
	AffinityScope string `yaml:"affinityScope" default:"all" sets:"streams.Affinity.Scope"`
	// Place of a session's name, with affinity session: header:NAME, cookie:NAME or body:prompt_cache_key.
	//
	// Default: The field of OpenAI's API for it.
	AffinitySession string `yaml:"affinitySession" default:"body:prompt_cache_key" sets:"streams.Affinity.Session"`
	// Secret from which prompts are hashed, the same for all replicas. Clients that do not know it cannot make two prompts
	// that look alike.
	//
	// Default: Outside Kubernetes it is another one at each start. Inside, replicas compare alike without being told; a pool
	// of hostile clients needs one.
	AffinitySeed string `yaml:"affinitySeed" default:"''" sets:"streams.Affinity.Seed"`
	// Choice among equally good endpoints: rotate (the next in turn), first or random.
	//
	// Default: Spreads requests over equally good endpoints without chance, so that a replay decides the same.
	TieBreak string `yaml:"tieBreak" default:"rotate" sets:"scheduling.TieBreak" page:"rare"`
	// Number of further endpoints, next best first, that Weir names to the gateway after the chosen one, for its
	// retries. From 0 to 8.
	//
	// Default: Gateways that take one address only would not understand a list.
	Fallbacks int64 `yaml:"fallbacks" default:"0" sets:"scheduling.Fallbacks"`
	// Least number of a prompt's tokens, less those that the decode engine has cached, for which a prefill engine reads
	// the prompt. The decode engine reads shorter prompts itself. This needs affinity: prefix, since only the body has
	// the length of a prompt. From 0 to 4194304.
	//
	// Default: Dynamo's: sending the KV cache of a shorter prompt from one engine to another costs more than it saves.
	PrefillThreshold int64 `yaml:"prefillThreshold" default:"5000" sets:"scheduling.PrefillThreshold"`
	// Tokens of prompts to read with which a prefill engine gets no other prompt, of any length; 0 means no limit. An
	// endpoints file may state another number for an endpoint (prefillTokens). From 0 to 1073741824.
	//
	// Default: Two steps of an engine's chunked prefill (--max-num-batched-tokens 8192): one is read, the next one is there.
	PrefillTokens int64 `yaml:"prefillTokens" default:"16384" sets:"scheduling.PrefillTokens"`
}

// MindRouter has the constants of policy mindrouter.
type MindRouter struct {
	// Points of an endpoint that has the request's model loaded. From 0 to 10000.
	//
	// Default: MindRouter's; loading a model takes longer than any queue is worth waiting for.
	Loaded int64 `yaml:"loaded" default:"100" sets:"scheduling.Points.Loaded" page:"rare"`
	// Points of an engine that is idle by its own utilisation; half used, half of them. From 0 to 10000.
	//
	// Default: Those of MindRouter: half of what a loaded model is worth.
	Utilisation int64 `yaml:"utilisation" default:"50" sets:"scheduling.Points.Utilisation" page:"rare"`
	// Points where the utilisation is not known. From 0 to 10000.
	//
	// Default: MindRouter's: as if half used.
	UtilisationUnknown int64 `yaml:"utilisationUnknown" default:"25" sets:"scheduling.Points.UtilisationUnknown" page:"rare"`
	// Points of an endpoint without a request. From 0 to 10000.
	//
	// Default: Those of MindRouter: less than a loaded model or an idle processor.
	ShortQueue int64 `yaml:"queue" default:"30" sets:"scheduling.Points.Queue" page:"rare"`
	// Steepness of their fall: with d requests there, queue / (1 + queueSlope × d). From 0 to 1000.
	//
	// Default: MindRouter's: half of them are left with two requests.
	QueueSlope Decimal `yaml:"queueSlope" default:"0.5" sets:"scheduling.Points.QueueSlope" page:"rare"`
	// Points of an engine that needs no time for a thousand tokens. From 0 to 10000.
	//
	// Default: Those of MindRouter, the least of all terms.
	Throughput int64 `yaml:"throughput" default:"20" sets:"scheduling.Points.Throughput" page:"rare"`
	// Points of an engine that answers at once. From 0 to 10000.
	//
	// Default: Those of MindRouter: twice as many as for throughput.
	Latency int64 `yaml:"latency" default:"40" sets:"scheduling.Points.Latency" page:"rare"`
	// Points where no request has been answered. From 0 to 10000.
	//
	// Default: MindRouter's: as if answers took the time of scale.
	LatencyUnknown int64 `yaml:"latencyUnknown" default:"20" sets:"scheduling.Points.LatencyUnknown" page:"rare"`
	// Points of one step of an endpoint's priority. From 0 to 1000.
	//
	// Default: Those of MindRouter: ten steps are worth a loaded model.
	Priority int64 `yaml:"priority" default:"10" sets:"scheduling.Points.Priority" page:"rare"`
	// Time of an answer, or of a thousand tokens, at which half of the points of latency, or throughput, are left. From 1ms to
	// 10m.
	//
	// Default: That of MindRouter, about the time of a long answer.
	Scale Duration `yaml:"scale" default:"5s" sets:"scheduling.Points.Scale" page:"rare"`
	// Weight of the newest answer in the means of latency and throughput; the first answer is the mean. Above 0 and at most 1.
	//
	// Default: That of MindRouter: the last three answers are two thirds of the mean.
	Alpha Decimal `yaml:"alpha" default:"0.3" sets:"scheduling.Points.Alpha" page:"rare"`
}
