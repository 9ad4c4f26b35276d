package extproc

import (
	"maps"
	"slices"

	"github.com/weir-epp/weir/pkg/decision"
	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/invalid"
	"github.com/weir-epp/weir/pkg/request"
)

// The statuses that responses may set.
const leastStatus, mostStatus = 400, 599

// Validate reports every problem at once, as invalid.Problems.
func (c *Config) Validate() error {
	var ps invalid.Problems
	ps.Under(nil, c.Config.Validate())
	oneOf(&ps, invalid.At("Cost"), c.Cost, CostRequests, CostTokens, CostUncached)
	if c.Usage == usageALS {
		ps.Add(invalid.At("Usage"), string(c.Usage), "Envoy's access log is read no more: use trailers, as config/envoy/recommended.yaml does")
	} else {
		oneOf(&ps, invalid.At("Usage"), c.Usage, UsageAuto, UsageTrailers, UsageBody, UsageNone)
	}
	if c.IncludeUsage {
		c.checkIncludeUsage(&ps)
	}
	ps.Under(invalid.At("Tokens"), c.Tokens.Validate())
	if c.Sample < 0 || c.Sample > decision.SampleOne {
		ps.Add(invalid.At("Sample"), c.Sample, "must be from 0 to 1")
	}
	c.Responses.check(&ps, invalid.At("Responses"))
	return ps.Err()
}

// checkIncludeUsage checks that IncludeUsage's bodies are read. Whether Envoy shows them is known only at the first
// requests.
func (c *Config) checkIncludeUsage(ps *invalid.Problems) {
	at := invalid.At("IncludeUsage")
	switch {
	case c.Usage == UsageBody:
	case c.Usage != UsageAuto:
		ps.Add(at, true, "needs %s %s or %s, is %s: only answers that Weir reads can lose their usage again", invalid.At("Usage"),
			UsageBody, UsageAuto, c.Usage)
	case !c.Cost.inTokens():
		ps.Add(at, true, "needs %s %s, or %s %s: otherwise no answer is read", invalid.At("Cost"), CostTokens,
			invalid.At("Usage"), UsageBody)
	}
	if c.RequestBody == request.BodyNever {
		ps.Add(at, true, "needs %s %s or %s, is %s: the body of the request asks for the usage", invalid.At("RequestBody"),
			request.BodyAuto, request.BodyAlways, request.BodyNever)
	}
}

func (r *Responses) check(ps *invalid.Problems, at invalid.Path) {
	invalid.OneOf(ps, at.At("Preset"), r.Preset, presetNames)
	for _, reason := range slices.Sorted(maps.Keys(r.Status)) {
		at, status := at.At("Status", invalid.Key(reason)), r.Status[reason]
		if !invalid.OneOf(ps, at, reason, rejectionReasons()) {
			continue
		}
		if status < leastStatus || status > mostStatus {
			ps.Add(at, status, "must be a status from %d to %d", leastStatus, mostStatus)
		}
	}
}

// rejectionReasons returns the reasons of all outcomes that are rejections.
func rejectionReasons() []string {
	var reasons []string
	for o := range flowcontrol.Outcome(flowcontrol.NumOutcomes) {
		if o != flowcontrol.OutcomeDispatched {
			reasons = append(reasons, o.String())
		}
	}
	return reasons
}

// usageALS is a way of usage that existed once.
const usageALS UsageWay = "als"

// oneOf is invalid.OneOf for words of a type of their own.
func oneOf[T ~string](ps *invalid.Problems, at invalid.Path, word T, known ...T) {
	words := make([]string, len(known))
	for i, k := range known {
		words[i] = string(k)
	}
	invalid.OneOf(ps, at, string(word), words)
}
