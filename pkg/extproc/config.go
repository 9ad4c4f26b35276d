package extproc

import "time"

// Config is what a stream needs to know. The comments name the keys of the configuration file.
type Config struct {
	// FlowKey is the ordered list of sources of the flow key (flows.key): "header:NAME",
	// "metadata:NAMESPACE/PATH" (PATH is split at slashes), "attribute:NAME" or "model". The first one that is
	// present and not empty wins; a request with none belongs to the flow "anonymous".
	FlowKey []string
	// Models resolves model names to targets and criticalities (models). A model that is not listed is its own
	// target.
	Models []Model
	// Objectives names priorities (objectives).
	Objectives []Objective
	// TenantPolicies clamps the tier by tenant (tenantPolicies). The policy "*" is for tenants without one;
	// without it they are not clamped.
	TenantPolicies map[string]TenantPolicy
	// Criticality says where a request's tier may be named (criticality).
	Criticality Criticality
	// Tiers are the tiers, highest first (tiers); rank 0 is Tiers[0]. At least one.
	Tiers []Tier
	// TrustedHeaders are set by the gateway, never by clients (trustedHeaders).
	TrustedHeaders TrustedHeaders
	// RequestBody says when the request body is read (requestBody).
	RequestBody BodyPolicy
	// OneFlow says that the queue knows no flows (flows.discipline: none), so that a full one is nobody's own.
	OneFlow bool
	// HashFlowKeys makes identities in flow keys appear as HashedFlow has them, wherever they are shown
	// (--hash-flow-keys). The keys of TenantPolicies stay as they are.
	HashFlowKeys bool
	// UnknownModels says what the flow of a model is that neither Models nor an endpoint's list names
	// (flows.unknownModels).
	UnknownModels UnknownModelsPolicy
	// PassOn says how requests that are known to be no inference are treated: bodyless GET, HEAD, OPTIONS and DELETE, and
	// those at the paths of the built-in list or of PassOnPaths (passOn). All else queues.
	PassOn PassOnPolicy
	// PassOnPaths are further such paths, as sent and without the query (passOnPaths).
	PassOnPaths []string
	// Limits bounds sizes (limits).
	Limits Limits
	// Responses maps outcomes to statuses (responses).
	Responses Responses
	// DeadlineHeaders name request headers with the client's deadline, set by an outer hop
	// (requestQueueController.deadlineHeaders): milliseconds, or gRPC's format in a header named grpc-timeout.
	DeadlineHeaders []string
	// RoutesByModel says that endpoints differ in the models that they serve, so that the model has to be known
	// to place a request. The wiring sets it; true is the safe value.
	RoutesByModel bool
	// ClearRouteCache makes Envoy choose the route again after the destination was set (clearRouteCache). Other
	// endpoint pickers set it always. The default is false: the destination is read by the load balancer of the
	// cluster that was chosen already, while control headers that routes may match on (x-gateway-model-name) are
	// removed in the same answer, so that a second choice could only go wrong; and it costs Envoy a route match.
	ClearRouteCache bool
	// ReadUsage makes the token usage be read from answers where they pass by (response mode
	// FULL_DUPLEX_STREAMED).
	ReadUsage bool
}

// Model maps a model name as clients say it.
type Model struct {
	// Name is the model's name in requests.
	Name string
	// Criticality is "Critical", "Standard", "Sheddable" or a tier's name; "" says nothing.
	Criticality string
	// Targets are the names that engines serve it by; none: its own name.
	Targets []Target
}

// Target is one target of a model, drawn with a probability of its weight over the sum of weights.
type Target struct {
	Name string
	// Weight is 1 to 1,000,000.
	Weight int
}

// Objective names a priority.
type Objective struct {
	Name     string
	Priority int
}

// TenantPolicy limits a tenant.
type TenantPolicy struct {
	// MaxClass is the highest tier that its requests may have, a tier's name or criticality.
	MaxClass string
}

// Criticality says where a request's tier may be named, and what it is when nobody says.
type Criticality struct {
	// Header names the class header; "" is none.
	Header string
	// Metadata is NAMESPACE/PATH of trusted dynamic metadata; "" is none.
	Metadata string
	// Default is the tier of a request that nobody declared: a tier's name or criticality.
	Default string
	// ObjectiveHeaders name the headers with an objective's name, of which the first that is present counts. At most 4.
	ObjectiveHeaders []string
}

// Tier is what criticality resolution knows of a tier.
type Tier struct {
	Name string
	// MinPriority is the lowest priority of an objective that belongs to it; nil: any.
	MinPriority *int
}

// TrustedHeaders are headers that the gateway sets or strips.
type TrustedHeaders struct {
	// Model carries the model's name; "" is none.
	Model string
	// Cost carries the request's cost, an integer of at least 1; "" is none.
	Cost string
}

// BodyPolicy says when the request body is read.
type BodyPolicy string

// The body policies. Where Envoy's mode forbids what the policy asks, the mode wins, and a log line says so once.
const (
	BodyAuto   BodyPolicy = "auto"   // when the headers do not say enough
	BodyAlways BodyPolicy = "always" // whenever there is one on an inference path
	BodyNever  BodyPolicy = "never"  // not at all
)

// PassOnPolicy says how requests that are no inference are treated.
type PassOnPolicy string

// The policies for requests that are passed on.
const (
	PassOnPick  PassOnPolicy = "pick"  // placed without queueing
	PassOnQueue PassOnPolicy = "queue" // queued like any other
)

// UnknownModelsPolicy says what the flow of an unknown model is.
type UnknownModelsPolicy string

// The policies for unknown models.
const (
	UnknownModelsOwn    UnknownModelsPolicy = "own"    // each is a flow of its own
	UnknownModelsShared UnknownModelsPolicy = "shared" // all are the flow "unknown"
)

// Limits bounds sizes, in bytes, and times. All are at least 1.
type Limits struct {
	// MaxBodyBytes bounds one request's body while it is held here; a larger one is too-large.
	MaxBodyBytes int64
	// MaxBodyBytesTotal bounds the memory of all bodies held here at once. When it is used up, the identity with the
	// most bytes of incomplete bodies loses its newest incomplete one, or the arrival is turned away: no-memory.
	MaxBodyBytesTotal int64
	// BodyTimeout is how long the body of a request may take to become whole where it is collected here, and one
	// second longer for every 64 KiB of it received; more is body-timeout. Above 0, at most an hour.
	BodyTimeout time.Duration
	// MaxHeaderBytes bounds the names and values of the request headers together; more is too-large.
	MaxHeaderBytes int64
}

// Responses maps outcomes to HTTP statuses.
type Responses struct {
	// Preset is seed, gateway, smg or dynamo.
	Preset string
	// Metadata lets every answer bring what was decided as dynamic metadata, for Envoy's access log (responses.metadata).
	Metadata bool
	// Status overrides single ones by reason, for example queue-full: 429. 200 to 599.
	Status map[string]int
	// QueueState tells a client that asks for it how long it waited and how many wait.
	QueueState bool
}

// DefaultConfig is the wfq profile's.
func DefaultConfig() Config {
	one, zero := 1, 0
	return Config{
		FlowKey:        []string{"model"},
		UnknownModels:  UnknownModelsOwn,
		Criticality:    Criticality{Default: "Critical", ObjectiveHeaders: []string{fixedNames[slotObjective]}},
		Tiers:          []Tier{{Name: "critical", MinPriority: &one}, {Name: "default", MinPriority: &zero}, {Name: "sheddable"}},
		TrustedHeaders: TrustedHeaders{Model: "x-gateway-model-name"},
		RequestBody:    BodyAuto,
		PassOn:         PassOnPick,
		Limits:         Limits{MaxBodyBytes: 32 << 20, MaxBodyBytesTotal: 1 << 30, MaxHeaderBytes: 64 << 10, BodyTimeout: 30 * time.Second},
		Responses:      Responses{Preset: "seed"},
		RoutesByModel:  true,
	}
}
