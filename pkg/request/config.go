package request

import (
	"math"
	"time"
)

// Config has the sources of requests' tenant, tier, class, model, cost and deadline, and the limits of requests. The
// comments name the keys of the configuration file in parentheses.
type Config struct {
	// FlowKey lists the sources of the flow key in order (flows.key): "header:NAME", "metadata:NAMESPACE/PATH" (PATH is
	// split at slashes), "attribute:NAME" or "model". The first source with a value counts. A request without a value
	// belongs to the flow "anonymous".
	FlowKey []string
	// Levels lists the levels of flows, outermost first (flows.levels): none, one, or two. The first level's Key
	// replaces FlowKey, which must then be empty. The second level's Key has the sources of a tenant's user, like
	// FlowKey but without "model". A request without a value belongs to its tenant's user "anonymous".
	Levels []Level
	// Models has the targets and criticalities of models (models).
	Models []Model
	// Objectives has the priorities of objectives (objectives).
	Objectives []Objective
	// RoleSources lists the sources of a tenant's role in order (flows.role), like FlowKey but without "model". The
	// first source with a value counts.
	RoleSources []string
	// DefaultRole is the role of a request without a role listed in Roles (flows.defaultRole); it may be "".
	DefaultRole string
	// Roles has the tiers of roles, by role name (roles). They apply to tenants whose policy sets no tier.
	Roles map[string]RoleTiers
	// TenantPolicies limits the tier by tenant (tenantPolicies). The policy "*" applies to tenants without a policy of
	// their own; without "*" these are not limited.
	TenantPolicies map[string]TenantPolicy
	// Criticality has the sources of a request's tier (criticality).
	Criticality Criticality
	// PolicyClass has the sources of a request's class and priorities (policyClass).
	PolicyClass PolicyClass
	// Classes are the classes of all rings (classes). Ring is the ring of models without classes of their own
	// (policyClass), and ModelRings has the rings of other models (policyClass.byModel).
	Classes    []Class
	Ring       Ring
	ModelRings map[string]Ring
	// Tiers are the tiers, highest first (tiers); rank 0 is Tiers[0]. At least one.
	Tiers []Tier
	// TrustedHeaders are set by the gateway, never by clients (trustedHeaders).
	TrustedHeaders TrustedHeaders
	// RequestBody determines when the request body is read (requestBody).
	RequestBody BodyPolicy
	// HashFlowKeys replaces identities in flow keys by their hashes, so that they are never shown (--hash-flow-keys).
	// The keys of TenantPolicies may be identities or hashes.
	HashFlowKeys bool
	// UnknownModels is the flow of a model that neither Models nor an endpoint lists (flows.unknownModels).
	UnknownModels UnknownModelsPolicy
	// Anonymous is the flow of a request without a value from any source but "model" (flows.anonymous).
	Anonymous AnonymousPolicy
	// PassOn is the treatment of requests known not to be inference: GET, HEAD, OPTIONS and DELETE without a body, and
	// requests at the built-in paths or at PassOnPaths (passOn). All other requests queue.
	PassOn PassOnPolicy
	// PassOnPaths are further such paths, in the form that clients send, without the query (passOnPaths).
	PassOnPaths []string
	// Explain lists the tenants that may request their requests' decision records (decisions.explain): identities,
	// Anonymous for requests without one, or "*" for all. The keys may be hashes as in TenantPolicies.
	Explain []string
	// Affinity is the way from a request to the engines with its prompt cached (scheduling.affinity).
	Affinity Affinity
	// Limits bounds sizes (limits).
	Limits Limits
	// DeadlineHeaders names request headers with the client's deadline from an outer hop
	// (requestQueueController.deadlineHeaders), in milliseconds, or in gRPC's format if the name is grpc-timeout.
	DeadlineHeaders []string
	// RoutesByModel is set if endpoints differ in the models that they serve, so that a request cannot be placed without
	// its model. The wiring sets it; true is the safe value.
	RoutesByModel bool
	// RoutesByNeeds is set if endpoints differ in the needs that they meet, so that a request may not be placed without its
	// needs. The wiring sets it.
	RoutesByNeeds bool
	// OtherTargets are the targets of models that Models does not list, drawn like a model's own targets; without any,
	// such a model is its own target. They do not make a model known (UnknownModels). The wiring sets them.
	OtherTargets []Target
}

// Model is a model by its name in requests.
type Model struct {
	// Name is the model's name in requests.
	Name string
	// Criticality is "Critical", "Standard", "Sheddable" or a tier's name. "" leaves it to the default.
	Criticality string
	// Targets are the model's names at the engines. Without targets it is the model's own name.
	Targets []Target
}

// Target is one target of a model, drawn with a probability of its weight over the sum of weights.
type Target struct {
	Name string
	// Weight is 1 to 1,000,000.
	Weight int
}

// Level is a level of flows.
type Level struct {
	// Key lists the sources of the keys of its flows, in order. At least one.
	Key []string
}

// Objective is a named priority.
type Objective struct {
	Name     string
	Priority int
}

// RoleTiers is the tier of a role's tenants, and its limit. Both may be empty.
type RoleTiers struct {
	// Class and MaxClass are as in TenantPolicy.
	Class, MaxClass string
}

// TenantPolicy is the tier of a tenant and its limit, or its role. At least one of them must be given.
type TenantPolicy struct {
	// Role is the tenant's role, overriding the sources of roles; empty: they decide.
	Role string

	// Class is the tier of the tenant's requests that declare none: a tier's name or a criticality; empty: the default.
	// It is limited like a declared tier. The policy "*" has no Class.
	Class string
	// MaxClass is the highest tier of the tenant's requests: a tier's name or a criticality. If it is empty, it is the
	// MaxClass of the policy "*", or Class if that is higher.
	MaxClass string
}

// Criticality has the sources of a request's tier, and the tier of requests that name none.
type Criticality struct {
	// Header names the class header, or is "".
	Header string
	// Metadata is the NAMESPACE/PATH of trusted dynamic metadata, or "".
	Metadata string
	// Default is the tier of a request that names none: a tier's name or a criticality.
	Default string
	// ObjectiveHeaders names up to 4 headers with the name of an objective. The first one with a value counts.
	ObjectiveHeaders []string
}

// Tier has the parts of a tier that resolve the tier of a request.
type Tier struct {
	Name string
	// MinPriority is the lowest priority of the objectives in the tier. Nil means any priority.
	MinPriority *int
}

// TrustedHeaders are headers that the gateway sets or strips.
type TrustedHeaders struct {
	// Model names the header with the model's name, or is "".
	Model string
	// Cost names the header with the request's cost, an integer of at least 1, or is "".
	Cost string
	// InputTokens names the header with the length of the request's prompt in tokens, or is "".
	InputTokens string
	// Requirements names the header with the Requirements of the request, or is "".
	Requirements string
}

// BodyPolicy determines when the request body is read.
type BodyPolicy string

// The body policies. An Envoy mode without a body overrides the policy, and Weir warns once.
const (
	BodyAuto   BodyPolicy = "auto"   // if the headers do not suffice
	BodyAlways BodyPolicy = "always" // whenever there is one
	BodyNever  BodyPolicy = "never"  // never
)

// PassOnPolicy is the treatment of requests that are not inference.
type PassOnPolicy string

// The policies for requests that are not inference.
const (
	PassOnPick  PassOnPolicy = "pick"  // placed without queueing
	PassOnQueue PassOnPolicy = "queue" // queued like any other
)

// UnknownModelsPolicy chooses the flow of an unknown model.
type UnknownModelsPolicy string

// The policies for unknown models.
const (
	UnknownModelsOwn    UnknownModelsPolicy = "own"    // each is a flow of its own
	UnknownModelsShared UnknownModelsPolicy = "shared" // all are the flow "unknown"
)

// AnonymousPolicy chooses the flow of a request without an identity.
type AnonymousPolicy string

// The policies for requests without an identity.
const (
	AnonymousModel  AnonymousPolicy = "model"  // its model's, if "model" is a source of the flow key, else "anonymous"
	AnonymousShared AnonymousPolicy = "shared" // all are the flow "anonymous"
)

// Limits bounds sizes, in bytes, and times.
type Limits struct {
	// MaxBodyBytes is the largest body that Weir holds of one request. A larger one is rejected as too-large. From 1 to
	// MaxBodyBytesTotal, at most 1 GiB.
	MaxBodyBytes int64
	// MaxBodyBytesTotal bounds the memory of all bodies that Weir holds. When it is used up, the identity with the most
	// bytes in incomplete bodies loses its newest incomplete body, or the arrival is rejected; either ends as
	// no-memory.
	MaxBodyBytesTotal int64
	// BodyTimeout is the time in which a collected body must be complete, plus one second for every 64 KiB received. A
	// later body is rejected as body-timeout. Above 0, and at most an hour.
	BodyTimeout time.Duration
	// MaxHeaderBytes bounds the names and values of the request headers together, MaxHeaders their number; both at
	// least 1. Beyond them a request is rejected as too-large, because Envoy answers 503 if the headers plus those
	// added by Weir exceed its own limits.
	MaxHeaderBytes, MaxHeaders int64
}

// DefaultConfig returns the configuration of the profile wfq.
func DefaultConfig() Config {
	one, zero := 1, 0
	return Config{
		FlowKey:        []string{"model"},
		UnknownModels:  UnknownModelsOwn,
		Anonymous:      AnonymousModel,
		Criticality:    Criticality{Default: Critical, ObjectiveHeaders: []string{fixedNames[slotObjective]}},
		Tiers:          []Tier{{Name: "critical", MinPriority: &one}, {Name: "default", MinPriority: &zero}, {Name: "sheddable"}},
		TrustedHeaders: TrustedHeaders{Model: "x-gateway-model-name"},
		RequestBody:    BodyAuto,
		PassOn:         PassOnPick,
		PolicyClass:    PolicyClass{MaxPriority: math.MaxInt32},
		Affinity:       Affinity{Mode: AffinityOff, Scope: ScopeAll, Session: sessionBody},
		Limits:         Limits{MaxBodyBytes: 32 << 20, MaxBodyBytesTotal: 1 << 30, MaxHeaderBytes: 60<<10 - 512, MaxHeaders: 98, BodyTimeout: 30 * time.Second},
		RoutesByModel:  true,
	}
}
