package scheduling

import (
	"fmt"
	"slices"
	"time"

	"github.com/weir-epp/weir/pkg/invalid"
)

// Limits of a Config.
const (
	MaxFallbacks = 8
	// MaxPrefillTokens is the largest PrefillTokens.
	MaxPrefillTokens = 1 << 30
)

// The ways to break a tie.
const (
	TieFirst  = "first"
	TieRotate = "rotate"
	TieRandom = "random"
)

// The policies.
const (
	PolicyCost       = "cost"
	PolicyMindRouter = "mindrouter"
	PolicyNone       = "none"
)

// Config configures how an endpoint is chosen.
type Config struct {
	// Policy is the comparison of endpoints: cost (by a request's cost in tokens), mindrouter (by Points) or none (all
	// are equal).
	Policy string `json:"policy"`
	// Points are the constants of policy mindrouter.
	Points Points `json:"points"`
	// Filters names the filters that rule endpoints out. ready is required, since only ready endpoints may get
	// requests. Without subset or model, a request's subset or model is ignored.
	Filters []string `json:"filters"`
	// TieBreak chooses among equal endpoints: rotate, first or random.
	TieBreak string `json:"tieBreak"`
	// Fallbacks is the number of further endpoints, next best first, that are named after the chosen one; 0 to 8.
	Fallbacks int `json:"fallbacks"`
	// PrefillThreshold is the least number of uncached tokens of a prompt that a prefill engine reads, if there is one;
	// 0 to MaxPrompt. The decode engine reads shorter prompts.
	PrefillThreshold int64 `json:"prefillThreshold"`
	// PrefillTokens is the number of tokens to read at which a prefill engine is full and gets no further prompt; at
	// most MaxPrefillTokens, and 0 means that it is never full. An endpoint may state its own.
	PrefillTokens int64 `json:"prefillTokens"`
}

// DefaultConfig returns a configuration with every filter, Weir's own count, MindRouter's points for its policy, and
// rotation among equals.
func DefaultConfig() Config {
	return Config{
		Policy: PolicyCost,
		Points: Points{
			Loaded: 100, Utilisation: 50, UtilisationUnknown: 25, Queue: 30, Throughput: 20, Latency: 40, LatencyUnknown: 20,
			Priority: 10, QueueSlope: 500_000, Alpha: 300_000, Scale: 5 * time.Second,
		},
		Filters:   []string{FilterReady, FilterSubset, FilterModel},
		TieBreak:  TieRotate,
		Fallbacks: 0,

		PrefillThreshold: 5000,
		PrefillTokens:    2 * 8192,
	}
}

// Validate reports every problem at once, as invalid.Problems.
func (c Config) Validate() error {
	var ps invalid.Problems
	var filters invalid.Names
	for i, name := range c.Filters {
		at := invalid.At("Filters", i)
		_ = filters.Check(&ps, at, name) && invalid.OneOf(&ps, at, name, filterNames())
	}
	if !slices.Contains(c.Filters, FilterReady) {
		ps.Add(invalid.At("Filters"), invalid.Shown(fmt.Sprint(c.Filters)), "must contain %s", FilterReady)
	}
	invalid.OneOf(&ps, invalid.At("Policy"), c.Policy, []string{PolicyCost, PolicyMindRouter, PolicyNone})
	c.Points.check(&ps)
	invalid.OneOf(&ps, invalid.At("TieBreak"), c.TieBreak, []string{TieRotate, TieFirst, TieRandom})
	invalid.Within(&ps, invalid.At("Fallbacks"), c.Fallbacks, 0, MaxFallbacks)
	invalid.Within(&ps, invalid.At("PrefillThreshold"), c.PrefillThreshold, 0, MaxPrompt)
	invalid.Within(&ps, invalid.At("PrefillTokens"), c.PrefillTokens, 0, MaxPrefillTokens)
	return ps.Err()
}
