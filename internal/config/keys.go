package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/weir-epp/weir/internal/spelling"
	"github.com/weir-epp/weir/pkg/invalid"
	"github.com/weir-epp/weir/pkg/request"
)

// Each limit is checked by the package that relies on it, in terms of its own fields. Only this file maps these fields
// to keys of the document. [] stands for the index of a list or the key of a map.

// controllerKeys maps the fields of FlowcontrolConfig to keys.
var controllerKeys = map[string]string{
	"Queue.TotalCapacity":               "fairRequestQueue.totalCapacity",
	"Queue.FlowCapacity":                "fairRequestQueue.flowCapacity",
	"Queue.FlowCapacities[]":            "flows.capacities[]",
	"Queue.CapacityMode":                "fairRequestQueue.capacityMode",
	"Queue.QueueTTL":                    "fairRequestQueue.queueTTL",
	"Queue.Weights[]":                   "flows.weights[]",
	"Queue.Discipline":                  "flows.discipline",
	"Queue.TieBreak":                    "flows.tieBreak",
	"Queue.TierMode":                    "fairRequestQueue.tierMode",
	"Queue.PromotionBudget":             "fairRequestQueue.promotionBudget",
	"Queue.GuaranteedTop":               "fairRequestQueue.topTier",
	"Queue.Classes":                     "classes",
	"Queue.Cursor":                      "fairRequestQueue.cursor",
	"Queue.Classes[].Name":              "classes[].name",
	"Queue.Classes[].Quantum":           "classes[].quantum",
	"Queue.Classes[].Order":             "classes[].order",
	"Queue.Order":                       "flows.order",
	"Queue.Tiers":                       "tiers",
	"Queue.Tiers[].Name":                "tiers[].name",
	"Queue.Tiers[].Weight":              "tiers[].weight",
	"Queue.Tiers[].QueueSize":           "tiers[].queueSize",
	"Queue.Tiers[].QueueTimeout":        "tiers[].queueTimeout",
	"Queue.Tiers[].StarvationThreshold": "tiers[].starvationThreshold",

	"Stock.WatermarkPerBackend":          "requestQueueController.watermarkPerBackend",
	"Stock.PercentageDeviationForBounds": "requestQueueController.percentageDeviationForBounds",
	"Stock.LowerBoundPerBackend":         "requestQueueController.lowerBoundPerBackend",
	"Stock.UpperBoundPerBackend":         "requestQueueController.upperBoundPerBackend",
	"Stock.SlotsPerBackend":              "requestQueueController.slotsPerBackend",
	"Stock.Unbounded":                    "requestQueueController.slotsPerBackend",
	"Stock.Tokens.Watermark":             "requestQueueController.watermarkTokensPerBackend",
	"Stock.Tokens.Lower":                 "requestQueueController.lowerBoundTokensPerBackend",
	"Stock.Tokens.Upper":                 "requestQueueController.upperBoundTokensPerBackend",

	"Tiers":                              "tiers",
	"Tiers[].ReservedFloor":              "tiers[].reservedFloor",
	"Tiers[].ReservedPerSlot":            "tiers[].reservedPerSlot",
	"Tiers[].CanPreempt":                 "tiers[].canPreempt",
	"Enabled":                            "requestQueueController.enabled",
	"EnqueueAll":                         "requestQueueController.enqueueAll",
	"HoldWhenEmpty":                      "requestQueueController.holdWhenEmpty",
	"NumPoppers":                         "requestQueueController.numPoppers",
	"PopperWaitBase":                     "requestQueueController.popperWaitBase",
	"PopperWaitJitterMax":                "requestQueueController.popperWaitJitterMax",
	"ExpiryCleanupInterval":              "requestQueueController.expiryCleanupInterval",
	"ReleaseSpacing":                     "requestQueueController.releaseSpacing",
	"MaxInFlightPerFlow":                 "requestQueueController.maxInFlightPerFlow",
	"MaxInFlightPerFlowPerBackend":       "requestQueueController.maxInFlightPerFlowPerBackend",
	"MaxTokensInFlightPerFlow":           "requestQueueController.maxTokensInFlightPerFlow",
	"MaxTokensInFlightPerFlowPerBackend": "requestQueueController.maxTokensInFlightPerFlowPerBackend",
	"VictimOrder":                        "requestQueueController.victimOrder",
	"MaxLabels":                          "limits.maxFlows",
}

// streamKeys maps the fields of ExtprocConfig to keys.
var streamKeys = map[string]string{
	"FlowKey":                          "flows.key",
	"FlowKey[]":                        "flows.key[]",
	"UnknownModels":                    "flows.unknownModels",
	"Anonymous":                        "flows.anonymous",
	"OneFlow":                          "flows.discipline",
	"Models[].Name":                    "models[].name",
	"Models[].Criticality":             "models[].criticality",
	"Models[].Targets[].Name":          "models[].targets[].name",
	"Models[].Targets[].Weight":        "models[].targets[].weight",
	"Objectives[].Name":                "objectives[].name",
	"Objectives[].Priority":            "objectives[].priority",
	"TenantPolicies[].Class":           "tenantPolicies[].class",
	"TenantPolicies[].MaxClass":        "tenantPolicies[].maxClass",
	"Criticality.Header":               "criticality.header",
	"Criticality.Metadata":             "criticality.metadata",
	"Criticality.Default":              "criticality.default",
	"Criticality.ObjectiveHeaders":     "criticality.objectiveHeaders",
	"Criticality.ObjectiveHeaders[]":   "criticality.objectiveHeaders[]",
	"Tiers":                            "tiers",
	"Tiers[].Name":                     "tiers[].name",
	"Tiers[].MinPriority":              "tiers[].minPriority",
	"PolicyClass.Headers":              "policyClass.headers",
	"PolicyClass.Headers[]":            "policyClass.headers[]",
	"PolicyClass.PriorityHeader":       "policyClass.priorityHeader",
	"PolicyClass.StrictPriorityHeader": "policyClass.strictPriorityHeader",
	"PolicyClass.MaxStrictPriority":    "policyClass.maxStrictPriority",
	"TrustedHeaders.Model":             "trustedHeaders.model",
	"TrustedHeaders.Cost":              "trustedHeaders.cost",
	"TrustedHeaders.InputTokens":       "trustedHeaders.inputTokens",
	"Cost":                             "cost",
	"IncludeUsage":                     "tokens.includeUsage",
	"Tokens.Weights.Input":             "tokens.weights.input",
	"Tokens.Weights.CachedInput":       "tokens.weights.cachedInput",
	"Tokens.Weights.Output":            "tokens.weights.output",
	"Tokens.StockWeights.Input":        "tokens.stockWeights.input",
	"Tokens.StockWeights.CachedInput":  "tokens.stockWeights.cachedInput",
	"Tokens.StockWeights.Output":       "tokens.stockWeights.output",
	"Tokens.ColdRatio":                 "tokens.input.bytesPerToken",
	"Tokens.Quantile":                  "tokens.output.quantile",
	"Tokens.Window":                    "tokens.output.window",
	"Tokens.Floor":                     "tokens.output.floor",
	"Tokens.ColdOutput":                "tokens.output.coldStart",
	"Tokens.ColdRate":                  "tokens.output.coldRate",
	"Usage":                            "usage",
	"RequestBody":                      "requestBody",
	"PassOn":                           "passOn",
	"PassOnPaths[]":                    "passOnPaths[]",
	"Limits.MaxBodyBytes":              "limits.maxBodyBytes",
	"Limits.MaxBodyBytesTotal":         "limits.maxBodyBytesTotal",
	"Limits.BodyTimeout":               "limits.bodyTimeout",
	"Limits.MaxHeaderBytes":            "limits.maxHeaderBytes",
	"Limits.MaxHeaders":                "limits.maxHeaders",
	"Responses.Preset":                 "responses.preset",
	"Responses.Metadata":               "responses.metadata",
	"Responses.Status[]":               "responses.status[]",
	"Responses.QueueState":             "responses.queueState",
	"DeadlineHeaders":                  "requestQueueController.deadlineHeaders",
	"DeadlineHeaders[]":                "requestQueueController.deadlineHeaders[]",
}

// schedulingKeys maps the fields of SchedulingConfig to keys.
var schedulingKeys = map[string]string{
	"Filters":          "scheduling.filters",
	"Filters[]":        "scheduling.filters[]",
	"Scorers":          "scheduling.scorers",
	"Scorers[].Name":   "scheduling.scorers[].name",
	"Scorers[].Weight": "scheduling.scorers[].weight",
	"Picker":           "scheduling.picker",
	"TieBreak":         "scheduling.tieBreak",
	"Fallbacks":        "scheduling.fallbacks",
}

// problemsOfParts returns the problems that the packages find in the converted document, in terms of the document's
// keys.
func (d *Document) problemsOfParts() Problems {
	controller, streams := d.FlowcontrolConfig(), d.ExtprocConfig()
	return slices.Concat(
		d.inKeys(controllerKeys, controller.Validate()),
		d.inKeys(streamKeys, streams.Validate()),
		d.inKeys(schedulingKeys, d.SchedulingConfig().Validate()),
	)
}

// Refused returns the problems that a running controller has with this document, in terms of the document's keys.
func (d *Document) Refused(err error) error { return d.inKeys(controllerKeys, err).err() }

// inKeys returns a package's problems with the keys and the values of the document.
func (d *Document) inKeys(keys map[string]string, err error) Problems {
	var ps Problems
	for _, p := range invalid.Of(err) {
		key := keyOf(keys, p.Path)
		found := p.Found()
		switch p.Value.(type) {
		case string, nil:
		default: // in the package's unit
			if value, ok := valueAt(reflect.ValueOf(*d), key); ok && !slices.Contains(composite, value.Kind()) {
				found = fmt.Sprint(value.Interface())
			}
		}
		message := p.Want(func(other invalid.Path) string { return nameBeside(key, keyOf(keys, other)) })
		if word, ok := p.Value.(string); ok {
			message += spelling.Suggest(word, p.Known)
		}
		ps = append(ps, Problem{Path: pathText(key), Found: found, Message: message})
	}
	return ps
}

// composite lists the kinds of values that are too long for a message.
var composite = []reflect.Kind{reflect.Slice, reflect.Map, reflect.Struct}

// keyOf returns the key of a package's field. Its steps are names of keys (string), indexes (int) and keys of maps
// (invalid.Key).
func keyOf(keys map[string]string, field invalid.Path) invalid.Path {
	pattern, known := keys[field.Pattern()]
	if !known {
		return field // TestEveryFieldHasItsKey
	}
	elements := field.Elements()
	if len(elements) == 1 && elements[0] == invalid.Key(request.OtherTenants) && pattern == "tenantPolicies[].maxClass" {
		return invalid.At("criticality", "maxClass")
	}
	var key invalid.Path
	for name := range strings.SplitSeq(pattern, ".") {
		name, element := strings.CutSuffix(name, "[]")
		key = key.At(name)
		if element {
			key, elements = key.At(elements[0]), elements[1:]
		}
	}
	return key
}

// pathText returns a key as messages spell it: tiers[3].queueSize, flows.weights.team-a.
func pathText(key invalid.Path) string {
	text := ""
	for _, step := range key {
		switch step := step.(type) {
		case int:
			text = index(text, step)
		default:
			text = join(text, fmt.Sprint(step))
		}
	}
	return text
}

// nameBeside returns the name of another key in a message about key: without the section if both are in the same one.
func nameBeside(key, other invalid.Path) string {
	n := len(other) - 1
	if n > 0 && n < len(key) && slices.Equal(key[:len(key)-1], other[:n]) {
		return pathText(other[n:])
	}
	return pathText(other)
}

// valueAt returns the value at a key; false if there is none.
func valueAt(v reflect.Value, key invalid.Path) (reflect.Value, bool) {
	for _, step := range key {
		switch step := step.(type) {
		case string:
			var ok bool
			if v, ok = lookUp(v, step); !ok {
				return v, false
			}
		case int:
			if v.Kind() != reflect.Slice || step >= v.Len() {
				return v, false
			}
			v = v.Index(step)
		case invalid.Key:
			if v.Kind() != reflect.Map {
				return v, false
			}
			if v = v.MapIndex(reflect.ValueOf(string(step))); !v.IsValid() {
				return v, false
			}
		}
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return v, false
			}
			v = v.Elem()
		}
	}
	return v, true
}
