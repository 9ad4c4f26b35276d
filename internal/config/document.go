package config

import (
	"bytes"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// The version and kind of every document.
const (
	APIVersion = "weir.dev/v1alpha1"
	Kind       = "EndpointPickerConfig"
)

// Document is the whole configuration: one YAML file, usually a ConfigMap.
type Document struct {
	// Version of this format; always weir.dev/v1alpha1.
	//
	// Default: There is no other version.
	APIVersion string `yaml:"apiVersion" default:"weir.dev/v1alpha1" page:"rare"`
	// Kind of document; always EndpointPickerConfig.
	//
	// Default: There is no other kind.
	Kind string `yaml:"kind" default:"EndpointPickerConfig" page:"rare"`
	// Named set of defaults that the rest of the file changes: wfq, recommended, dynamo-drr, smg-priority or
	// mindrouter-fairshare.
	//
	// Default: The values of the queueing proposal that Weir began with; a file that names no profile has recommended.
	Profile string `yaml:"profile" default:"wfq" page:"first"`
	// The queue: its room, time limits and tiers.
	FairRequestQueue FairRequestQueue `yaml:"fairRequestQueue"`
	// The controller: when requests pass, wait and are released.
	RequestQueueController RequestQueueController `yaml:"requestQueueController"`
	// The flows: their identities and their shares.
	Flows Flows `yaml:"flows"`
	// Whether the list of tiers is the whole list. If not, it may only name tiers of the profile, which it changes. In
	// both cases a tier with the name of one of the profile's keeps the fields that it does not name.
	//
	// Default: A misspelt name would otherwise take the tiers of the profile away.
	ReplaceTiers bool `yaml:"replaceTiers" default:"false"`
	// Strict priority levels, highest first. A listed tier of the profile changes only the fields it names; one that the
	// profile lacks needs replaceTiers: true, and so does leaving one out.
	//
	// Default: The three criticalities of the Gateway API's first objectives, which the proposal uses.
	Tiers []Tier `yaml:"tiers" default:"[{name: critical, minPriority: 1}, {name: default, minPriority: 0}, {name: sheddable}]" sets:"controller.Queue.Tiers controller.Tiers streams.Tiers" page:"first"`
	// Policy classes that share a tier by deficit round robin.
	//
	// Default: One class is the common case and costs nothing.
	Classes []Class `yaml:"classes" default:"[]" sets:"controller.Queue.Classes controller.Classes streams.Classes"`
	// Models that clients may ask for: their criticality and their targets; in Kubernetes they go before the resources that
	// name models (docs/names.md).
	//
	// Default: Clients may ask for any model; the engines refuse unknown ones.
	Models []Model `yaml:"models" default:"[]" sets:"streams.Models" page:"first"`
	// Named priorities that a request may refer to; in Kubernetes they go before InferenceObjectives (docs/names.md).
	//
	// Default: Priorities are the operator's to name.
	Objectives []Objective `yaml:"objectives" default:"[]" sets:"streams.Objectives"`
	// The highest tier that a tenant may ask for, and the tenant's quota, by the tenant's identity (its flow's identity);
	// anonymous: requests without one.
	//
	// Default: Tenants may ask for any tier until the operator sets a limit.
	TenantPolicies map[string]TenantPolicy `yaml:"tenantPolicies" default:"{}" sets:"streams.TenantPolicies controller.Quotas.Tenants"`
	// Roles of tenants (flows.role, tenantPolicies[].role): the weight, the cap, the tiers and the quota of each tenant that
	// has the role.
	//
	// Default: Tenants are equal until the operator gives them roles.
	Roles map[string]Role `yaml:"roles" default:"{}" sets:"controller.Queue.Roles controller.Roles controller.Quotas.Roles streams.Roles"`
	// The HTTP status of each rejection.
	Responses Responses `yaml:"responses"`
	// Where a request's tier may be named.
	Criticality Criticality `yaml:"criticality"`
	// The sources of a request's class, and of its priorities within the class.
	PolicyClass PolicyClass `yaml:"policyClass"`
	// Request headers that only the gateway can set, never a client.
	TrustedHeaders TrustedHeaders `yaml:"trustedHeaders"`
	// The unit in which flows are charged: requests (1 each), tokens (the estimate when a request is dispatched,
	// corrected by the usage of its answer; tokens.stockWeights sets the weights for the stock) or uncached (the tokens of its
	// prompt that are not cached at the engine with most of it when the request arrives, without correction, and the
	// answer as with tokens). A cost that the gateway states (trustedHeaders.cost) counts instead, also in the stock,
	// as it is and uncorrected.
	//
	// Default: The proposal's unit, which needs nothing from Envoy or the engines.
	Cost string `yaml:"cost" default:"requests" sets:"streams.Cost"`
	// The costs of tokens, and how tokens are estimated; with cost: tokens.
	Tokens Tokens `yaml:"tokens"`
	// Source of an answer's usage: trailers (Envoy reads it and sends it with the response trailers, docs/envoy.md),
	// body (Weir reads it in answers that Envoy shows: STREAMED and FULL_DUPLEX_STREAMED), none, or auto (trailers, and
	// with cost: tokens also body, whichever comes). A request without usage is charged the estimate, or more if its
	// answer took longer.
	//
	// Default: Weir then follows a change of Envoy's configuration by itself.
	Usage string `yaml:"usage" default:"auto" sets:"streams.Usage"`
	// When the request body is read: auto (only if the headers do not suffice), always or never.
	//
	// Default: A body that is not needed costs Envoy and Weir a copy of it.
	RequestBody string `yaml:"requestBody" default:"auto" sets:"streams.RequestBody"`
	// Whether a gateway that does not name its body modes has FULL_DUPLEX_STREAMED in both directions, as load balancers of
	// GKE have (docs/gateways.md). If not, its bodies are not read.
	//
	// Default: A wrong assumption breaks every answer; without it only bodies go unread.
	AssumeFullDuplex bool `yaml:"assumeFullDuplex" default:"false" sets:"streams.AssumeFullDuplex"`
	// The treatment of requests that are known not to be inference: GET, HEAD, OPTIONS and DELETE without a body, and
	// the paths that docs/envoy.md lists: pick (placed without queueing) or queue. All others queue.
	//
	// Default: A list of models or a health check should not wait behind prompts, and takes no slot of an engine.
	PassOn string `yaml:"passOn" default:"pick" sets:"streams.PassOn"`
	// More paths to which passOn applies, with any method: each exactly as clients send it, without the query.
	//
	// Default: Each path past the queue is a way around it, so only requests that are certainly no inference are built
	// in.
	PassOnPaths []string `yaml:"passOnPaths" default:"[]" sets:"streams.PassOnPaths"`
	// Sizes and counts that bound Weir's memory.
	Limits Limits `yaml:"limits"`
	// The choice of an endpoint.
	Scheduling Scheduling `yaml:"scheduling"`
	// MiB of the last decisions that are kept at /debug/recording, for weir explain, weir replay and weir simulate; 0 records
	// nothing, and so does an epp without --debug-port. A change counts at once; from 0, requests that wait or are in flight are
	// in the recording too. From 0 to 1024.
	//
	// Default: Why a request waited is asked afterwards; 16 MiB reach back some minutes at a thousand requests a second.
	Recording int64 `yaml:"recording" default:"16" sets:"recording.MiB" flag:"record" help:"<MiB> of the last decisions to keep at /debug/recording, for weir explain and weir replay; 0: none"`
	// Records of single decisions.
	Decisions Decisions `yaml:"decisions"`
}

// Marshal returns the whole document as YAML. Decoding it gives an equal document.
func (d Document) Marshal() ([]byte, error) {
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(d); err != nil {
		return nil, fmt.Errorf("config: writing YAML: %w", err)
	}
	if err := enc.Close(); err != nil {
		return nil, fmt.Errorf("config: writing YAML: %w", err)
	}
	return b.Bytes(), nil
}
