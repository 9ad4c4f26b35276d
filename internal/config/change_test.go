package config

import (
	"slices"
	"strings"
	"testing"
)

// A change names the fields in which the documents differ, tier by tier as long as they keep their names.
func TestChanged(t *testing.T) {
	for text, want := range map[string][]string{
		"":                                    nil,
		"profile: wfq":                        nil,
		"flows: { weights: {} }":              nil,
		"flows: { weights: { a: 2 } }":        {"flows.weights"},
		"fairRequestQueue: { queueTTL: 31s }": {"fairRequestQueue.queueTTL"},
		"tiers: [ { name: default, weight: 2, queueSize: 3 } ]": {"tiers[1].weight", "tiers[1].queueSize"},
		"replaceTiers: true\ntiers: [ { name: one } ]":          {"replaceTiers", "tiers"},
		"profile: recommended": {
			"profile", "fairRequestQueue.flowCapacity", "fairRequestQueue.capacityMode", "fairRequestQueue.topTier",
			"requestQueueController.enqueueAll", "requestQueueController.watermarkPerBackend",
			"requestQueueController.lowerBoundPerBackend", "requestQueueController.upperBoundPerBackend",
			"requestQueueController.slotsPerBackend", "requestQueueController.circuits", "flows.key", "flows.discipline",
			"flows.tieBreak", "flows.order", "flows.localityQuantum", "tiers[1].starvationThreshold", "tiers[2].starvationThreshold",
			"responses.preset", "criticality.default", "cost", "tokens.weights.cachedInput", "scheduling.affinity",
		},
	} {
		d, err := Load(source(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := Changed(Default(), d); !slices.Equal(got, want) {
			t.Errorf("%q: got %q", text, got)
		}
	}
}

// A change of a field that needs a restart is reported by name and line, together with all other problems.
func TestReload(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"nothing frozen": {"fairRequestQueue: { queueTTL: 5s }\nreplaceTiers: true\ntiers: [ { name: one } ]\nrequestQueueController: { numPoppers: 1 }\nlimits: { maxFlows: 5 }", nil},
		"each by name": {
			strings.Join([]string{
				"fairRequestQueue: { capacityMode: shared,",
				"  tierMode: weighted,",
				"  queueTTL: 0s }",
				"flows: { discipline: none,",
				"  key: [ \"header:x-tenant\", model ] }",
			}, "\n"),
			[]string{
				`fairRequestQueue.capacityMode: "shared": cannot change at run time (running: "reserved"); restart to change it (line 1)`,
				`fairRequestQueue.tierMode: "weighted": cannot change at run time (running: "strict"); restart to change it (line 2)`,
				"fairRequestQueue.queueTTL: 0s: must be above 0s (line 3)",
				`flows.discipline: "none": cannot change at run time (running: "wfq"); restart to change it (line 4)`,
				`flows.key: "header:x-tenant, model": cannot change at run time (running: "model"); restart to change it (line 5)`,
			},
		},
		"another version": {
			"apiVersion: v2", []string{`apiVersion: "v2": must be weir.dev/v1alpha1 (line 1)`},
		},
		"another profile, which freezes": {
			"profile: recommended",
			[]string{
				`fairRequestQueue.capacityMode: "shared": cannot change at run time (running: "reserved"); restart to change it`,
				`flows.key: "metadata:envoy.filters.http.jwt_authn/payload/sub, header:x-llm-d-inference-fairness-id, model": cannot change at run time (running: "model"); restart to change it`,
				`flows.discipline: "vtc": cannot change at run time (running: "wfq"); restart to change it`,
			},
		},
		"a profile that does not exist says nothing of its fields": {
			"profile: none",
			[]string{`profile: "none": must be one of wfq, recommended, dynamo-drr, smg-priority, mindrouter-fairshare (line 1)`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Reload(source(test.text), Default())
			if got := problemsOf(t, err); !slices.Equal(got, test.want) {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
	// An unreadable text is one problem, even if the running document is far from the defaults.
	running, _ := Profile(ProfileSMG)
	_, err := Reload(source("a: ["), running)
	if got := problemsOf(t, err); len(got) != 1 || !strings.HasPrefix(got[0], "not YAML") {
		t.Errorf("got %q", got)
	}
}

// AtNextStart returns the changed keys that count only from the next start on.
func TestAtNextStart(t *testing.T) {
	changed := []string{"flows.weights", "flows.key", "limits.maxFlows"}
	if got := AtNextStart(changed); !slices.Equal(got, []string{"limits.maxFlows"}) {
		t.Errorf("got %q", got)
	}
}

// The keys of levels and their number cannot change at run time. Weights, capacities and caps can. A single level is
// the same as flows.key, so a file may go from one to the other.
func TestReloadOfLevels(t *testing.T) {
	text := func(flows string) []byte {
		return []byte("apiVersion: weir.dev/v1alpha1\nkind: EndpointPickerConfig\nflows: " + flows)
	}
	const two = `{ levels: [ { key: ["header:x-org"] }, { key: ["header:x-user"] } ] }`
	for _, c := range []struct{ from, to, says string }{
		{two, `{ levels: [ { key: ["header:x-org"], weights: { a: 2 }, maxInFlight: 4 }, { key: ["header:x-user"], maxQueued: 9, maxInFlight: 1 } ] }`, ""},
		{two, `{ levels: [ { key: ["header:x-org"] }, { key: ["header:x-device"] } ] }`, "flows.levels: \"header:x-org over header:x-device\": cannot change at run time (running: \"header:x-org over header:x-user\"); restart to change its keys"},
		{two, `{ levels: [ { key: ["header:x-org"] } ] }`, "flows.levels: \"header:x-org\": cannot change at run time (running: \"header:x-org over header:x-user\"); restart to change its keys"},
		{two, `{ key: ["header:x-org"] }`, "flows.levels: \"header:x-org\": cannot change at run time (running: \"header:x-org over header:x-user\"); restart to change its keys"},
		{`{ levels: [ { key: ["header:x-org"] } ] }`, `{ key: ["header:x-org"], weights: { a: 2 } }`, ""},
		{`{ key: ["header:x-org"] }`, `{ levels: [ { key: ["header:x-org"], weights: { a: 2 } } ] }`, ""},
	} {
		running, err := Load(Source{Text: text(c.from)})
		if err != nil {
			t.Fatal(err)
		}
		_, err = Reload(Source{Text: text(c.to)}, running)
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("from %s\nto   %s\n%v", c.from, c.to, err)
		}
	}
}
