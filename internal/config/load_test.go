package config

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/golden"
)

// The full profiles, as `weir config show --profile NAME` prints them. Each is valid and reads back unchanged.
func TestProfilesGolden(t *testing.T) {
	for _, name := range Profiles() {
		t.Run(name, func(t *testing.T) {
			d, err := Profile(name)
			if err != nil {
				t.Fatal(err)
			}
			if err := d.Validate(); err != nil {
				t.Error(err)
			}
			text, err := d.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			golden.Check(t, filepath.Join("testdata", name+".yaml"), string(text))
			if back, err := Decode(text); err != nil || !reflect.DeepEqual(back, d) {
				t.Errorf("read back: %+v, %v", back, err)
			}
		})
	}
}

// Every profile is valid.
func TestLoadProfiles(t *testing.T) {
	for _, name := range Profiles() {
		if _, err := Load(Source{Profile: name}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !strings.Contains(ProfileList()+",", name+",") {
			t.Errorf("%s: %s", name, ProfileList())
		}
	}
}

// Defaults, profile, file, flags: the later one wins, field by field.
func TestLoadLayers(t *testing.T) {
	d, err := Load(Source{
		Text: []byte("profile: dynamo-drr\nfairRequestQueue: { totalCapacity: 500, flowCapacity: 50, queueTTL: 5s }"),
		// The flag's profile wins over the file's.
		Profile:  ProfileWFQ,
		Override: func(d *Document) { d.FairRequestQueue.FlowCapacity = 20 },
	})
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.FairRequestQueue.TotalCapacity = 500
	want.FairRequestQueue.FlowCapacity = 20
	want.FairRequestQueue.QueueTTL = d.FairRequestQueue.QueueTTL
	if !reflect.DeepEqual(d, want) || d.FairRequestQueue.QueueTTL.String() != "5s" {
		t.Errorf("got %+v\nwant %+v", d, want)
	}
}

// Decoding, validation and missing features are reported together, with the lines of the file.
func TestLoadReportsEverything(t *testing.T) {
	_, err := Load(Source{
		Text: []byte(strings.Join([]string{
			"apiVersion: v2",
			"kind: EndpointPickerConfig",
			"profile: recommendd",
			"fairRequestQueue:",
			"  totalCapacity: 10",
			"  flowCapacity: 20",
			"  tierMode: even",
			"  queueTTL: 2h",
			"flows: { weights: { a: 0 }, key: [tenant], discipline: fair, order: efd }",
			"unknown: 1",
		}, "\n")),
		Override: func(d *Document) { d.RequestQueueController.NumPoppers = 0 },
	})
	want := []string{
		`apiVersion: "v2": must be weir.dev/v1alpha1 (line 1)`,
		`profile: "recommendd": must be one of wfq, recommended, dynamo-drr, smg-priority, mindrouter-fairshare ` +
			"(did you mean recommended?) (line 3)",
		"fairRequestQueue.flowCapacity: 20: must be at most totalCapacity (10) (line 6)",
		`fairRequestQueue.tierMode: "even": must be one of strict, weighted (line 7)`,
		`flows.discipline: "fair": must be one of wfq, vtc, fairshare, none (did you mean fairshare?) (line 9)`,
		`flows.order: "efd": must be one of fcfs, wspt, edf, locality (line 9)`,
		"fairRequestQueue.queueTTL: 2h: must be above 0s and at most 1h (line 8)",
		"flows.weights.a: 0: must be from 0.001 to 1000000 (line 9)",
		`flows.key[0]: "tenant": must be model, header:NAME, metadata:NAMESPACE/PATH or attribute:NAME (line 9)`,
		"unknown: unknown field (line 10)",
		"requestQueueController.numPoppers: 0 (from a flag): must be from 1 to 1000",
	}
	got := problemsOf(t, err)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// The message of a value from the profile says that it is the profile's default.
func TestProblemsOfDefaults(t *testing.T) {
	const advice = "; to keep n batch slots busy, set watermarkPerBackend, lowerBoundPerBackend and upperBoundPerBackend all to n"
	for text, want := range map[string][]string{
		"fairRequestQueue: { flowCapacity: 1001 }": {
			"fairRequestQueue.flowCapacity: 1001: must be at most totalCapacity (1000) (line 1)",
		},
		"fairRequestQueue: { totalCapacity: 50, flowCapacity: 100 }": { // written, although it is the default
			"fairRequestQueue.flowCapacity: 100: must be at most totalCapacity (50) (line 1)",
		},
		"profile: recommended\nrequestQueueController: { lowerBoundPerBackend: 80 }": {
			"requestQueueController.lowerBoundPerBackend: 80: must be at most watermarkPerBackend (64)" + advice + " (line 2)",
		},
		"profile: smg-priority\nreplaceTiers: true\ntiers: [ { name: gold, minPriority: 0 } ]": {
			`criticality.default: "default" (the default of profile smg-priority): must be one of Critical, Standard, Sheddable, gold`,
			`criticality.maxClass: "default" (the default of profile smg-priority): must be one of Critical, Standard, Sheddable, gold`,
		},
		"profile: none\nfairRequestQueue: { totalCapacity: 50 }": { // the wrong profile comes first
			`profile: "none": must be one of wfq, recommended, dynamo-drr, smg-priority, mindrouter-fairshare (line 1)`,
		},
	} {
		_, err := Load(source(text))
		if got := problemsOf(t, err); !slices.Equal(got, want) {
			t.Errorf("%s:\ngot  %q\nwant %q", text, got, want)
		}
	}
	// Flags have no line in the file: a value from a flag is the default only if it equals it.
	for capacity, want := range map[int64]string{
		60:  "fairRequestQueue.flowCapacity: 60 (from a flag): must be at most totalCapacity (50)",
		100: "fairRequestQueue.flowCapacity: 100 (the default of profile wfq): must be at most totalCapacity (50)",
	} {
		_, err := Load(Source{Profile: ProfileWFQ, Override: func(d *Document) {
			d.FairRequestQueue.TotalCapacity, d.FairRequestQueue.FlowCapacity = 50, capacity
		}})
		if got := problemsOf(t, err); !slices.Equal(got, []string{want}) {
			t.Errorf("got %q", got)
		}
	}
}

// The message of a value from a flag says so, and does not have the line of the overridden value.
func TestProblemsOfFlags(t *testing.T) {
	for text, want := range map[string][]string{
		"fairRequestQueue: { queueTTL: 5s, totalCapacity: 0 }": {
			"fairRequestQueue.totalCapacity: 0: must be at least 1 (line 1)",
			"fairRequestQueue.queueTTL: 2h (from a flag): must be above 0s and at most 1h",
		},
		"fairRequestQueue: { queueTTL: soon }": {
			`fairRequestQueue.queueTTL: "soon": must be a duration with a unit, such as 30s or 1m30s (line 1)`,
		},
		"": {"fairRequestQueue.queueTTL: 2h (from a flag): must be above 0s and at most 1h"},
	} {
		_, err := Load(Source{Profile: ProfileWFQ, Text: []byte(text), Override: func(d *Document) {
			if err := d.FairRequestQueue.QueueTTL.Set("2h"); err != nil {
				t.Fatal(err)
			}
		}})
		if got := problemsOf(t, err); !slices.Equal(got, want) {
			t.Errorf("%s:\ngot  %q\nwant %q", text, got, want)
		}
	}
}

// The message of a whole number that is too large says so.
func TestNumbersTooLarge(t *testing.T) {
	for _, number := range []string{"99999999999999999999", "9223372036854775808", "-9223372036854775809"} {
		_, err := Load(source("requestQueueController: { watermarkPerBackend: " + number + " }"))
		want := "requestQueueController.watermarkPerBackend: " + number + ": must be a whole number of at most 18 digits (line 1)"
		if got := problemsOf(t, err); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q", number, got)
		}
	}
}

// Messages have the name of a changed tier, or its place in a whole list, with its line in the file. The same goes for
// a tier that the profile lacks, for a duplicate, and for other keys in a message.
func TestTierProblemsHaveTheirLines(t *testing.T) {
	for text, want := range map[string][]string{
		"tiers:\n- { name: default, weight: 0 }\n- { name: sheddable, queueSize: many }": {
			"tiers[default].weight: 0: must be from 0.001 to 1000000 (line 2)",
			`tiers[sheddable].queueSize: "many": must be a whole number (line 3)`,
		},
		"tiers:\n- { name: sheddable, canPrempt: true }\n- { name: shedable, weight: 0 }": {
			`tiers[sheddable].canPrempt: unknown field (did you mean canPreempt?) (line 2)`,
			`tiers[1].name: "shedable": not a tier of the profile (critical, default, sheddable) (did you mean sheddable?); to use this ` +
				`list instead of the profile's, add the line "replaceTiers: true" (line 3)`,
		},
		"profile: smg-priority\ntiers:\n- { name: bulk, minPriority: 200 }": {"tiers[bulk].minPriority: 200: must be below that of the tiers above (0) (line 3)"},
		"replaceTiers: true\ntiers:\n- { name: gold, minPriority: 3, weight: 0 }\n- { name: sheddable, weight: 0 }": {
			"tiers[0].weight: 0: must be from 0.001 to 1000000 (line 3)",
			"tiers[1].weight: 0: must be from 0.001 to 1000000 (line 4)",
		},
	} {
		_, err := Load(source(text))
		if got := problemsOf(t, err); !slices.Equal(got, want) {
			t.Errorf("%s:\ngot  %q\nwant %q", text, got, want)
		}
	}
}

// A configuration without a profile has recommended, whatever else it has.
func TestDefaultProfile(t *testing.T) {
	recommended, err := Profile(ProfileRecommended)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "apiVersion: weir.dev/v1alpha1\nkind: EndpointPickerConfig\n", "{}"} {
		if d, err := Load(Source{Text: []byte(text)}); err != nil || !reflect.DeepEqual(d, recommended) {
			t.Errorf("%q: %+v, %v", text, d, err)
		}
	}
	if d, err := Load(Source{Text: []byte("profile: wfq")}); err != nil || !reflect.DeepEqual(d, Default()) {
		t.Errorf("wfq: %+v, %v", d, err)
	}
}

// A layer with a watermark and without a bound derives the bound from it, whatever the profile's bounds are.
func TestLoneWatermark(t *testing.T) {
	type bounds struct{ lower, upper *int64 }
	const key = "requestQueueController"
	for text, want := range map[string]bounds{
		"":                               {new(int64(64)), new(int64(64))},
		"{ watermarkPerBackend: 32 }":    {},
		"{ watermark_per_backend: 100 }": {},
		"{ watermarkPerBackend: 64 }":    {},
		"{ lowerBoundPerBackend: 32 }":   {new(int64(32)), new(int64(64))},
		"{ upperBoundPerBackend: 100 }":  {new(int64(64)), new(int64(100))},
		"{ watermarkPerBackend: 32, lowerBoundPerBackend: 32 }":                           {lower: new(int64(32))},
		"{ watermarkPerBackend: 100, upperBoundPerBackend: 110 }":                         {upper: new(int64(110))},
		"{ watermarkPerBackend: 32, lowerBoundPerBackend: 32, upperBoundPerBackend: 32 }": {new(int64(32)), new(int64(32))},
	} {
		if text != "" {
			text = key + ": " + text
		}
		d, err := Load(Source{Text: []byte(text)})
		c := d.RequestQueueController
		if got := (bounds{c.LowerBoundPerBackend, c.UpperBoundPerBackend}); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
		written, err := d.MarshalOverlay()
		if err != nil {
			t.Fatal(err)
		}
		if back, err := Load(Source{Text: written}); err != nil || !reflect.DeepEqual(back, d) {
			t.Errorf("%q: read back from\n%s%v", text, written, err)
		}
	}
}

// The profile's quantum is in tokens: a file with other costs, or without flows, has none. A quantum in the file stays.
func TestTheProfilesQuantumIsOfTokens(t *testing.T) {
	for text, want := range map[string]int64{
		"profile: recommended": 20_000, "cost: tokens": 20_000, "cost: requests": 0, "flows: { discipline: none }": 0,
		"flows: { discipline: wfq }": 20_000, "cost: requests\nflows: { localityQuantum: 3 }": 3, "profile: wfq": 0,
		"profile: wfq\ncost: tokens": 0, "flows: { localityQuantum: 0 }": 0,
	} {
		d, err := Load(Source{Text: []byte(text)})
		if err != nil || d.Flows.LocalityQuantum != want {
			t.Errorf("%q: %d, %v, want %d", text, d.Flows.LocalityQuantum, err, want)
		}
	}
}

// The default of minDrain is at most the drainWindow. A given value stays.
func TestMinDrainFollowsTheWindow(t *testing.T) {
	for text, want := range map[string]string{
		"drainWindow: 2s": "2s", "drainWindow: 0s": "0s", "drainWindow: 1m": "5s", "minDrain: 1s, drainWindow: 2s": "1s",
	} {
		d, err := Load(Source{Text: []byte("requestQueueController: { " + text + " }")})
		if got := d.RequestQueueController.MinDrain.String(); err != nil || got != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	for _, given := range [][]Flag{nil, Flags(new(Default()))[:1]} { // also with a flag of another key
		from := Default()
		_, err := Load(Source{
			Text:     []byte("requestQueueController: { minDrain: 3s, drainWindow: 2s }"),
			Override: func(d *Document) { Override(d, &from, given) },
		})
		if err == nil || !strings.Contains(err.Error(), "must be at most drainWindow (2s)") {
			t.Error(err)
		}
	}
}

// A totalCapacity without a flowCapacity lowers the profile's flowCapacity.
func TestFlowCapacityFollows(t *testing.T) {
	for text, want := range map[string]int64{
		"totalCapacity: 500": 500, "totalCapacity: 5000": 1000, "totalCapacity: 500, flowCapacity: 20": 20, "flowCapacity: 20": 20,
	} {
		d, err := Load(Source{Profile: ProfileRecommended, Text: []byte("fairRequestQueue: { " + text + " }")})
		if err != nil || d.FairRequestQueue.FlowCapacity != want {
			t.Errorf("%s: %d, %v; want %d", text, d.FairRequestQueue.FlowCapacity, err, want)
		}
	}
	for _, text := range []string{"totalCapacity: 500, flowCapacity: 501", "totalCapacity: 0"} {
		if _, err := Load(Source{Profile: ProfileRecommended, Text: []byte("fairRequestQueue: { " + text + " }")}); err == nil {
			t.Errorf("%s: no problem", text)
		}
	}
}

// A key in the wrong section, with another spelling, or from Envoy's file has one problem, with a hint.
func TestMisplacedKeys(t *testing.T) {
	for text, want := range map[string]string{
		"slotsPerBackend: 8": "slotsPerBackend: unknown field (did you mean requestQueueController.slotsPerBackend?) (line 1)",
		"requestQueueController: { queueTTL: 8s }": "requestQueueController.queueTTL: unknown field (did you mean " +
			"fairRequestQueue.queueTTL?) (line 1)",
		"name: a": "name: unknown field (line 1)", // many have it
		"tenantPolicies: { team-b: { tier: sheddable } }": "tenantPolicies.team-b.tier: unknown field (did you mean class?) (line 1)",
		"node: { id: a }\nstatic_resources: {}\nadmin: {}": "static_resources: is Envoy's configuration, which Envoy reads by envoy -c; " +
			"Weir's keys are in docs/config.md, and config/weir.yaml is an example (line 2)",
	} {
		_, err := Load(source(text))
		if got := problemsOf(t, err); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q\nwant %q", text, got, want)
		}
	}
	_, err := Load(source("tenantPolicies: { a: {}, b: { tier: default } }"))
	if got := problemsOf(t, err); len(got) != 2 {
		t.Errorf("an empty policy: %q", got)
	}
}
