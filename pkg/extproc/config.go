package extproc

import (
	"time"

	"github.com/weir-epp/weir/pkg/estimate"
	"github.com/weir-epp/weir/pkg/request"
)

// Config configures the streams of a Server. The comments name the keys of the configuration file in parentheses.
type Config struct {
	request.Config
	// OneFlow is set if the queue has a single flow shared by all callers (flows.discipline: none).
	OneFlow bool
	// Quotas is set if tenants have quotas (tenantPolicies[].quota), so that the controller needs to know their names.
	Quotas bool
	// Sample is the share of requests that have decision records, in millionths: 0 to decision.SampleOne (decisions.sample).
	Sample int64
	// LongestWait is the longest TTL in the queue of any request (fairRequestQueue.queueTTL, tiers[].queueTimeout).
	LongestWait time.Duration
	// Responses configures the replies about outcomes to clients and Envoy (responses).
	Responses Responses
	// AssumeFullDuplex is set if streams without stated modes have FULL_DUPLEX_STREAMED both ways (assumeFullDuplex).
	AssumeFullDuplex bool
	// Cost is the unit of charges (cost).
	Cost CostUnit
	// Tokens configures the estimate of costs in tokens (tokens).
	Tokens estimate.Config
	// Usage is the source of answers' usage (usage).
	Usage UsageWay
	// IncludeUsage requests the usage of streamed answers on behalf of clients, and removes it from the answers
	// (tokens.includeUsage). It needs the bodies of requests and answers: Usage and RequestBody must permit reading
	// them.
	IncludeUsage bool
}

// CostUnit is the unit of charges. A cost stated by the gateway (TrustedHeaders.Cost) is taken in the configured unit.
type CostUnit string

// The units of cost.
const (
	CostRequests CostUnit = "requests" // each request costs 1
	CostTokens   CostUnit = "tokens"   // the estimate, corrected by usage
	// CostUncached is the prompt tokens not cached, at the request's arrival, at the best engine that it may use, never
	// corrected, plus the answer as with CostTokens: nothing with an output weight of 0.
	CostUncached CostUnit = "uncached"
)

// inTokens reports whether requests are estimated in tokens.
func (u CostUnit) inTokens() bool { return u != CostRequests }

// UsageWay is the source of answers' usage.
type UsageWay string

// The ways of usage.
const (
	// UsageAuto takes the usage from Envoy's trailers or, with CostTokens, from a response body that Weir gets anyway.
	UsageAuto     UsageWay = "auto"
	UsageTrailers UsageWay = "trailers" // only from Envoy's trailers
	UsageBody     UsageWay = "body"     // only from a response body that Weir gets (STREAMED, FULL_DUPLEX_STREAMED)
	UsageNone     UsageWay = "none"
)

// Responses configures Weir's replies about outcomes to clients and Envoy.
type Responses struct {
	// Preset is the table of statuses: seed, gateway, smg or dynamo.
	Preset string
	// Metadata adds the decision on a request to Envoy's dynamic metadata, for its access log.
	Metadata bool
	// Status overrides statuses by reason, for example queue-full: 429. From 400 to 599.
	Status map[string]int
	// QueueState lets clients request their time in the queue and the number of waiting requests.
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
