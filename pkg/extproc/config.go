package extproc

import (
	"time"

	"github.com/weir-epp/weir/pkg/estimate"
	"github.com/weir-epp/weir/pkg/request"
)

// Config configures the streams of a Server. The comments name the keys of the configuration file in parentheses.
type Config struct {
	request.Config
	// OneFlow is set if the queue has a single flow (flows.discipline: none), which belongs to no caller.
	OneFlow bool
	// Quotas is set if tenants have quotas (tenantPolicies[].quota), so that the controller needs to know their names.
	Quotas bool
	// Sample is the share of requests that have decision records, in millionths: 0 to decision.SampleOne (decisions.sample).
	Sample int64
	// LongestWait is the longest TTL in the queue of any request (fairRequestQueue.queueTTL, tiers[].queueTimeout).
	LongestWait time.Duration
	// Responses are the answers about outcomes to clients and Envoy (responses).
	Responses Responses
	// ClearRouteCache makes Envoy choose the route again after Weir has changed request headers (clearRouteCache). Other
	// endpoint pickers always do. The default is false: the load balancer of the cluster that was chosen reads the
	// destination, and the same answer removes control headers that routes may match on (x-gateway-model-name), so a second
	// choice could only go wrong. It also costs Envoy a route match.
	ClearRouteCache bool
	// AssumeFullDuplex is set if a stream whose modes Envoy does not name has FULL_DUPLEX_STREAMED both ways
	// (assumeFullDuplex).
	AssumeFullDuplex bool
	// Cost is the unit of charges (cost).
	Cost CostUnit
	// Tokens is how costs in tokens are estimated (tokens).
	Tokens estimate.Config
	// Usage is how the usage of answers is learned (usage).
	Usage UsageWay
	// IncludeUsage asks for the usage of streamed answers on behalf of clients, and takes it out of the answers again
	// (tokens.includeUsage). It needs the bodies of requests and answers: Usage and RequestBody must let them be read.
	IncludeUsage bool
}

// CostUnit is the unit of charges. A cost that the gateway states (TrustedHeaders.Cost) is in either unit.
type CostUnit string

// The units of cost.
const (
	CostRequests CostUnit = "requests" // each request costs 1
	CostTokens   CostUnit = "tokens"   // the estimate, corrected by usage
	// CostUncached is the tokens of the prompt that the best of the engines that the request may use has not cached at its
	// arrival, which nothing corrects, and the answer as with CostTokens: nothing with an output weight of 0.
	CostUncached CostUnit = "uncached"
)

// inTokens reports whether requests are estimated in tokens.
func (u CostUnit) inTokens() bool { return u != CostRequests }

// UsageWay is how the usage of answers is learned.
type UsageWay string

// The ways of usage.
const (
	// UsageAuto takes what Envoy tells in trailers; else, with CostTokens, what is in a response body that comes here
	// anyway.
	UsageAuto     UsageWay = "auto"
	UsageTrailers UsageWay = "trailers" // only what Envoy tells in trailers
	UsageBody     UsageWay = "body"     // only what is in a response body that comes here (STREAMED, FULL_DUPLEX_STREAMED)
	UsageNone     UsageWay = "none"
)

// Responses is what Weir tells clients and Envoy about outcomes.
type Responses struct {
	// Preset is the table of statuses: seed, gateway, smg or dynamo.
	Preset string
	// Metadata adds the decision on a request to Envoy's dynamic metadata, for its access log.
	Metadata bool
	// Status overrides statuses by reason, for example queue-full: 429. From 400 to 599.
	Status map[string]int
	// QueueState lets clients ask for the time that they waited and the number of waiting requests.
	QueueState bool
}

// DefaultConfig returns the configuration of the profile wfq.
func DefaultConfig() Config {
	return Config{
		Config:      request.DefaultConfig(),
		LongestWait: 30 * time.Second,
		Responses:   Responses{Preset: "seed"},
		Cost:        CostRequests,
		Tokens:      estimate.DefaultConfig(),
		Usage:       UsageAuto,
	}
}
