package config

import (
	"strings"
	"testing"
)

// The configurations of other endpoint pickers are refused, and the message has a replacement for each of their keys.
func TestForeignConfigurationIsRefused(t *testing.T) {
	const file = `apiVersion: %s
kind: EndpointPickerConfig
featureGates: [flowControl]
plugins:
- type: queue-scorer
- type: prefix-cache-scorer
schedulingProfiles:
- name: default
  plugins:
  - { pluginRef: queue-scorer, weight: 2 }
flowControl: { maxRequests: 1000, defaultRequestTTL: 60s }
saturationDetector: { pluginRef: utilization-detector }
dataLayer: {}
requestHandler: {}
`
	for _, apiVersion := range []string{"inference.networking.x-k8s.io/v1alpha1", "llm-d.ai/v1alpha1", "llm-d.ai/v1"} {
		_, err := Load(source(strings.Replace(file, "%s", apiVersion, 1)))
		if err == nil {
			t.Fatalf("%s is accepted", apiVersion)
		}
		for _, want := range []string{
			`apiVersion: "` + apiVersion + `": is another endpoint picker's configuration; write apiVersion: weir.dev/v1alpha1, ` +
				`profile: recommended`, "(line 1)",
			"featureGates: leave it out", "(line 3)",
			"plugins: write scheduling:", "schedulingProfiles: write scheduling:",
			"flowControl: write fairRequestQueue: { totalCapacity, flowCapacity, queueTTL } and tiers",
			"saturationDetector: write requestQueueController:", "dataLayer: leave it out", "requestHandler: leave it out",
		} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: the error lacks %q:\n%v", apiVersion, want, err)
			}
		}
		if strings.Contains(err.Error(), "unknown field") {
			t.Errorf("%s: the error lists keys as misspelt ones of ours:\n%v", apiVersion, err)
		}
	}
}

// A document of Weir's own with a foreign key is read as Weir's.
func TestForeignKeyInOurDocument(t *testing.T) {
	_, err := Load(source("apiVersion: weir.dev/v1alpha1\nplugins: []\n"))
	if err == nil || !strings.Contains(err.Error(), "plugins: unknown field") {
		t.Errorf("got %v, want an unknown field", err)
	}
}

// The replacements of foreign keys consist of keys that exist, and docs/llm-d.md has each of them.
func TestForeignKeysAreDocumented(t *testing.T) {
	page := contents(t, "..", "..", "docs", "llm-d.md")
	for key := range foreignKeys {
		if !strings.Contains(page, "`"+key) {
			t.Errorf("docs/llm-d.md lacks %s", key)
		}
	}
	for _, text := range []string{
		"scheduling: { filters: [ready, subset, model], policy: cost, tieBreak: rotate }",
		"requestQueueController: { enabled: true, watermarkPerBackend: 4, lowerBoundPerBackend: 4, upperBoundPerBackend: 4 }",
		"fairRequestQueue: { totalCapacity: 1000, flowCapacity: 100, queueTTL: 60s }\ntiers: [ { name: default } ]",
	} {
		if _, err := Load(source(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
