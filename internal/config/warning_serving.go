package config

import (
	"reflect"
	"strings"

	"github.com/weir-epp/weir/pkg/extproc"
	"github.com/weir-epp/weir/pkg/request"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// servingWarnings is about keys of requests that no request reaches, and about paths that hardly should pass the queue.
func (d Document) servingWarnings(warn warner) {
	for i, path := range d.PassOnPaths {
		if d.PassOn == string(request.PassOnPick) && request.IsInference(path) {
			warn(index("passOnPaths", i), "%q: requests at this path run a model, but do not queue: limits and shares do not apply "+
				"to them", path)
		}
	}
	if s := d.Scheduling; s.Policy == scheduling.PolicyMindRouter && s.Affinity != string(request.AffinityOff) {
		warn("scheduling.affinity", "%s: has no effect on the choice of an endpoint, since scheduling.policy is %s", s.Affinity, s.Policy)
	}
	if len(d.PolicyClass.Hints) > 0 && d.RequestBody == string(request.BodyNever) {
		warn("policyClass.hints", "%s: have no effect, since requestBody is %s: no body is read", strings.Join(d.PolicyClass.Hints, ", "), d.RequestBody)
	}
	if len(d.Classes) > 1 && len(d.PolicyClass.Headers) == 0 {
		warn("classes", "%d given: every request belongs to the first class, %s, since policyClass.headers is empty",
			len(d.Classes), d.Classes[0].Name)
	}
	if len(d.RequestQueueController.DeadlineHeaders) == 0 {
		const reason = "requests are ordered by the end of their TTL, that is first come, first served, since " +
			"requestQueueController.deadlineHeaders is empty"
		if d.Flows.Order == OrderEDF {
			warn("flows.order", "edf: "+reason)
		}
		for i, c := range d.Classes {
			if c.Order == OrderEDF {
				warn(index("classes", i)+".order", "edf: "+reason)
			}
		}
	}
	if len(d.Objectives) > 0 && len(d.Criticality.ObjectiveHeaders) == 0 {
		warn("objectives", "%d given: no request names one, since criticality.objectiveHeaders is empty", len(d.Objectives))
	}
}

// tokenWarnings is about keys of tokens where requests are not counted in tokens.
func (d Document) tokenWarnings(warn warner) {
	if d.Cost != string(extproc.CostRequests) {
		return
	}
	profile, err := Profile(d.Profile)
	if err != nil {
		return
	}
	const reason = "has no effect, since cost is requests: no request is counted in tokens"
	for _, key := range []string{
		"tokens.weights", "tokens.stockWeights", "tokens.input", "tokens.output", "trustedHeaders.inputTokens",
	} {
		value := fieldAt(reflect.ValueOf(d), key)
		if !same(value, fieldAt(reflect.ValueOf(profile), key)) {
			warn(key, reason)
		}
	}
	if d.TrustedHeaders.Cost != "" {
		return // the gateway may count them
	}
	for _, key := range []string{
		"watermarkTokensPerBackend", "maxTokensInFlightPerFlow", "maxTokensInFlightPerFlowPerBackend",
	} {
		key = "requestQueueController." + key
		if value := fieldAt(reflect.ValueOf(d), key); !same(value, fieldAt(reflect.ValueOf(profile), key)) && value.Int() > 0 {
			warn(key, "%d: counts requests, since cost is requests: each request counts 1", value.Int())
		}
	}
}
