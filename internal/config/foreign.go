package config

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// foreignGroups are the API groups of the EndpointPickerConfig of other endpoint pickers, GIE's and llm-d's. It has
// Weir's kind, and none of its keys.
var foreignGroups = []string{"inference.networking.x-k8s.io/", "llm-d.ai/"}

// foreignKeys has the replacement of each key of such a document.
var foreignKeys = map[string]string{
	"plugins":            "write scheduling: { filters, policy, tieBreak }, or nothing: Weir counts each endpoint's requests",
	"schedulingProfiles": "write scheduling: { filters, policy, tieBreak }; there is one profile",
	"featureGates":       "leave it out: the queue is on unless requestQueueController.enabled is false",
	"flowControl":        "write fairRequestQueue: { totalCapacity, flowCapacity, queueTTL } and tiers",
	"saturationDetector": "write requestQueueController: { slotsPerBackend }",
	"dataLayer":          "leave it out: Weir scrapes nothing",
	"data":               "leave it out: Weir scrapes nothing",
	"requestHandler":     "leave it out: Weir knows a request's format by its path",
	"parser":             "leave it out: Weir knows a request's format by its path",
}

// envoyKeys begin the bootstrap of an Envoy.
var envoyKeys = []string{"static_resources", "dynamic_resources"}

// foreign returns the problems of a document that is Envoy's, or another endpoint picker's, one problem for each of its
// keys; nil for any other document.
func foreign(root *yaml.Node) Problems {
	if root == nil || root.Kind != yaml.MappingNode {
		return nil
	}
	var problems Problems
	theirs := false
	for i := 0; i+1 < len(root.Content); i += 2 {
		if key := root.Content[i]; slices.Contains(envoyKeys, key.Value) {
			return Problems{{
				Path: key.Value, Line: key.Line, Message: "is Envoy's configuration, which Envoy reads by envoy -c; " +
					"Weir's keys are in docs/config.md, and config/weir.yaml is an example",
			}}
		}
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		if key.Value == "apiVersion" && isForeign(value.Value) {
			theirs = true
			problems = append(problems, Problem{
				Path: key.Value, Found: describe(value), Line: key.Line,
				Message: "is another endpoint picker's configuration; write apiVersion: " + APIVersion +
					", profile: " + ProfileRecommended + ", and the equivalent in docs/llm-d.md of each of its keys",
			})
		} else if instead, ok := foreignKeys[key.Value]; ok {
			problems = append(problems, Problem{Path: key.Value, Message: instead, Line: key.Line})
		}
	}
	if !theirs {
		return nil
	}
	return problems
}

func isForeign(apiVersion string) bool {
	for _, group := range foreignGroups {
		if strings.HasPrefix(apiVersion, group) {
			return true
		}
	}
	return false
}
