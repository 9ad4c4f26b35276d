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
	APIVersion string `yaml:"apiVersion"`
	// Kind of document; always EndpointPickerConfig.
	Kind string `yaml:"kind"`
	// Named set of defaults that the rest of the file changes: wfq, recommended, dynamo-drr, smg-priority or
	// mindrouter-fairshare.
	Profile string `yaml:"profile"`
	// The queue: how much it holds, for how long, and for whom.
	FairRequestQueue FairRequestQueue `yaml:"fairRequestQueue"`
	// The controller: when requests pass, wait and are released.
	RequestQueueController RequestQueueController `yaml:"requestQueueController"`
	// The flows: what makes one, and how they share.
	Flows Flows `yaml:"flows"`
	// Whether the list of tiers is the whole list. If not, it may only name tiers of the profile, which it changes.
	ReplaceTiers bool `yaml:"replaceTiers"`
	// Strict priority levels, highest first. A listed tier of the profile changes only the fields it names; one that the
	// profile lacks needs replaceTiers: true, and so does leaving one out.
	Tiers []Tier `yaml:"tiers"`
	// Policy classes that share a tier by deficit round robin.
	Classes []Class `yaml:"classes"`
	// Models that clients may ask for: their criticality and their targets; in Kubernetes they go before the resources that
	// name models (docs/names.md).
	Models []Model `yaml:"models"`
	// Named priorities that a request may refer to; in Kubernetes they go before InferenceObjectives (docs/names.md).
	Objectives []Objective `yaml:"objectives"`
	// What a tenant may ask for, by the tenant's identity (its flow's identity).
	TenantPolicies map[string]TenantPolicy `yaml:"tenantPolicies"`
	// The HTTP status of each rejection.
	Responses Responses `yaml:"responses"`
	// Where a request's tier may be named.
	Criticality Criticality `yaml:"criticality"`
	// Where a request's class may be named, and its priorities within the class.
	PolicyClass PolicyClass `yaml:"policyClass"`
	// Request headers that only the gateway can set, never a client.
	TrustedHeaders TrustedHeaders `yaml:"trustedHeaders"`
	// What flows are charged in: requests (1 each) or tokens (the estimate when a request is dispatched, corrected by the
	// usage of its answer; what it takes of the stock is weighted apart, by tokens.stockWeights). A cost that the gateway
	// states (trustedHeaders.cost) counts instead, also in the stock, as it is and uncorrected.
	Cost string `yaml:"cost"`
	// What tokens cost, and how they are estimated; with cost: tokens.
	Tokens Tokens `yaml:"tokens"`
	// How the usage of an answer is learned: trailers (Envoy has read it and tells it in the message of the response
	// trailers, docs/envoy.md), body (Weir reads it, where Envoy shows it the answer: STREAMED and FULL_DUPLEX_STREAMED),
	// als (Envoy's access log tells it, within 5 s after the answer, docs/envoy.md), none, or auto (trailers, and with cost:
	// tokens also body and als, whichever comes). A request whose usage is not learned is charged the estimate, or more if
	// its answer took longer than that.
	Usage string `yaml:"usage"`
	// When the request body is read: auto (only if the headers do not say enough), always or never.
	RequestBody string `yaml:"requestBody"`
	// What happens to requests that are known not to be inference: GET, HEAD, OPTIONS and DELETE without a body, and
	// the paths that docs/envoy.md lists: pick (placed without queueing) or queue. All others queue.
	PassOn string `yaml:"passOn"`
	// More paths to which passOn applies, whatever the method: each exactly as clients send it, without the query.
	PassOnPaths []string `yaml:"passOnPaths"`
	// Sizes and counts that bound Weir's memory.
	Limits Limits `yaml:"limits"`
	// How an endpoint is chosen.
	Scheduling Scheduling `yaml:"scheduling"`
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
