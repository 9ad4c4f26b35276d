package extproc

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-epp/weir/pkg/flowcontrol"
)

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
	// Weight is 0 to 1,000,000; 0 is never drawn (unless all are 0: then all count alike).
	Weight int
}

// Objective names a priority.
type Objective struct {
	Name     string
	Priority int
}

// TenantPolicy limits a tenant.
type TenantPolicy struct {
	// MaxClass is the highest tier that its requests may have, a tier's name or criticality; "" does not clamp.
	MaxClass string
}

// Criticality says where a request's tier may be named, and what it is when nobody says.
type Criticality struct {
	// Header names the class header; "" is none.
	Header string
	// Metadata is NAMESPACE/PATH of trusted dynamic metadata; "" is none.
	Metadata string
	// Default is the tier of a request that nobody declared: a tier's name or criticality; "" is Standard.
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

// maxObjectiveHeaders bounds Criticality.ObjectiveHeaders: each has a place in every request.
const maxObjectiveHeaders = 4

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

// Validate returns every problem, each with the key of the field, or nil.
func (c *Config) Validate() error {
	var errs []error
	bad := func(field, format string, a ...any) {
		errs = append(errs, fmt.Errorf("%s: %s", field, fmt.Sprintf(format, a...)))
	}
	for i, s := range c.FlowKey {
		if _, err := parseSource(s); err != nil {
			bad(fmt.Sprintf("flows.key[%d]", i), "%v", err)
		}
	}
	const most = 16 // each header has a place in every request
	if len(c.FlowKey) > most {
		bad("flows.key", "more than %d sources", most)
	}
	if len(c.DeadlineHeaders) > most {
		bad("requestQueueController.deadlineHeaders", "more than %d", most)
	}
	if len(c.Tiers) == 0 {
		bad("tiers", "at least one is needed")
	}
	for i, t := range c.Tiers {
		if t.Name == "" {
			bad(fmt.Sprintf("tiers[%d].name", i), "is empty")
		}
	}
	c.validateModels(bad)
	for i, o := range c.Objectives {
		field := fmt.Sprintf("objectives[%d].name", i)
		if o.Name == "" {
			bad(field, "is empty")
		} else if slices.IndexFunc(c.Objectives, func(p Objective) bool { return p.Name == o.Name }) < i {
			bad(field, "%q is there twice", o.Name)
		}
	}
	ranks := newTierRanks(c.Tiers)
	tier := func(field, name string) {
		if _, ok := ranks.byName(name); name != "" && !ok {
			bad(field, "%q is neither a tier nor Critical, Standard or Sheddable", name)
		}
	}
	for i, m := range c.Models {
		tier(fmt.Sprintf("models[%d].criticality", i), m.Criticality)
	}
	for _, name := range sortedKeys(c.TenantPolicies) {
		tier("tenantPolicies."+name+".maxClass", c.TenantPolicies[name].MaxClass)
	}
	tier("criticality.default", c.Criticality.Default)
	if m := c.Criticality.Metadata; m != "" {
		if _, err := parseSource("metadata:" + m); err != nil {
			bad("criticality.metadata", "%v", err)
		}
	}
	headerName := func(field, name string) {
		if name != "" && !validHeaderName(name) {
			bad(field, "%q is no header name", name)
		}
	}
	headerName("criticality.header", c.Criticality.Header)
	headerName("trustedHeaders.model", c.TrustedHeaders.Model)
	headerName("trustedHeaders.cost", c.TrustedHeaders.Cost)
	if len(c.Criticality.ObjectiveHeaders) > maxObjectiveHeaders {
		bad("criticality.objectiveHeaders", "more than %d", maxObjectiveHeaders)
	}
	for i, h := range c.Criticality.ObjectiveHeaders {
		headerName(fmt.Sprintf("criticality.objectiveHeaders[%d]", i), h)
		if h == "" {
			bad(fmt.Sprintf("criticality.objectiveHeaders[%d]", i), "is empty")
		}
	}
	for i, h := range c.DeadlineHeaders {
		headerName(fmt.Sprintf("requestQueueController.deadlineHeaders[%d]", i), h)
		if h == "" {
			bad(fmt.Sprintf("requestQueueController.deadlineHeaders[%d]", i), "is empty")
		}
	}
	switch c.RequestBody {
	case BodyAuto, BodyAlways, BodyNever:
	default:
		bad("requestBody", "%q is none of auto, always, never", c.RequestBody)
	}
	switch c.UnknownModels {
	case UnknownModelsOwn, UnknownModelsShared:
	default:
		bad("flows.unknownModels", "%q is neither own nor shared", c.UnknownModels)
	}
	for i, path := range c.PassOnPaths {
		if !strings.HasPrefix(path, "/") || strings.ContainsAny(path, "?#") {
			bad(fmt.Sprintf("passOnPaths[%d]", i), "%q is no path without a query", path)
		}
	}
	switch c.PassOn {
	case PassOnPick, PassOnQueue:
	default:
		bad("passOn", "%q is neither pick nor queue", c.PassOn)
	}
	c.validateLimits(bad)
	c.validateResponses(bad)
	return errors.Join(errs...)
}

func (c *Config) validateModels(bad func(field, format string, a ...any)) {
	for i, m := range c.Models {
		field := fmt.Sprintf("models[%d]", i)
		if m.Name == "" {
			bad(field+".name", "is empty")
		} else if slices.IndexFunc(c.Models, func(n Model) bool { return n.Name == m.Name }) < i {
			bad(field+".name", "%q is there twice", m.Name)
		}
		for j, t := range m.Targets {
			if t.Name == "" {
				bad(fmt.Sprintf("%s.targets[%d].name", field, j), "is empty")
			}
			if t.Weight < 0 || t.Weight > 1_000_000 {
				bad(fmt.Sprintf("%s.targets[%d].weight", field, j), "%d is not in 0 to 1000000", t.Weight)
			}
		}
	}
}

func (c *Config) validateLimits(bad func(field, format string, a ...any)) {
	for _, l := range []struct {
		field string
		value int64
	}{
		{"limits.maxBodyBytes", c.Limits.MaxBodyBytes},
		{"limits.maxBodyBytesTotal", c.Limits.MaxBodyBytesTotal},
		{"limits.maxHeaderBytes", c.Limits.MaxHeaderBytes},
	} {
		if l.value < 1 {
			bad(l.field, "%d is less than 1", l.value)
		}
	}
	if t := c.Limits.BodyTimeout; t <= 0 || t > longest {
		bad("limits.bodyTimeout", "%v is not above 0 and at most %v", t, longest)
	}
	if c.Limits.MaxBodyBytesTotal < c.Limits.MaxBodyBytes {
		bad("limits.maxBodyBytesTotal", "%d is less than limits.maxBodyBytes (%d)", c.Limits.MaxBodyBytesTotal, c.Limits.MaxBodyBytes)
	}
}

func (c *Config) validateResponses(bad func(field, format string, a ...any)) {
	if _, ok := presets[c.Responses.Preset]; !ok {
		bad("responses.preset", "%q is none of seed, gateway, smg, dynamo", c.Responses.Preset)
	}
	for _, reason := range sortedKeys(c.Responses.Status) {
		field := "responses.status." + reason
		if o, ok := outcomeByReason(reason); !ok || o == flowcontrol.OutcomeDispatched {
			bad(field, "is no reason of a rejection")
		}
		if s := c.Responses.Status[reason]; s < 200 || s > 599 {
			bad(field, "%d is not in 200 to 599", s)
		}
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// validHeaderName says whether name is an HTTP token (RFC 9110, section 5.6.2).
func validHeaderName(name string) bool {
	for _, r := range []byte(name) {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", r) >= 0 {
			continue
		}
		return false
	}
	return name != ""
}
