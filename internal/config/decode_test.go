package config

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// source is a file with this text. Without a profile it has the proposal's.
func source(text string) Source {
	if strings.Contains(text, "profile:") {
		return Source{Text: []byte(text)}
	}
	return Source{Profile: ProfileWFQ, Text: []byte(text)}
}

// Decode returns the document of a YAML text over its profile, without validating its values. The error is Problems.
func Decode(text []byte) (Document, error) {
	d, dec := overlay(source(string(text)))
	return d, d.inText(dec.problems.locate(dec.lines)).err()
}

// problemsOf returns the messages of an error, one per problem.
func problemsOf(t *testing.T, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	var ps Problems
	if !errors.As(err, &ps) {
		t.Fatalf("%T is not Problems: %v", err, err)
	}
	var lines []string
	for _, p := range ps {
		lines = append(lines, p.Error())
	}
	return lines
}

// Each document has one or several problems. All are reported, in the order of the lines.
func TestDecodeProblems(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"unknown field": {
			"fairRequestQueue: { totalCapcity: 5 }",
			[]string{"fairRequestQueue.totalCapcity: unknown field (did you mean totalCapacity?) (line 1)"},
		},
		"keys of an earlier version": {
			"scheduling: { scorers: [], picker: max-score }",
			[]string{
				"scheduling.scorers: is gone: leave it out, or write policy: none for an empty list (line 1)",
				"scheduling.picker: is gone: leave it out; tieBreak chooses among equal endpoints (line 1)",
			},
		},
		"unknown field, nothing near": {
			"spam: 1",
			[]string{"spam: unknown field (line 1)"},
		},
		"snake case outside the two sections": {
			"trusted_headers: {}",
			[]string{"trusted_headers: unknown field (did you mean trustedHeaders?) (line 1)"},
		},
		"wrong types": {
			"fairRequestQueue: { totalCapacity: many, flowCapacity: 1.5, queueTTL: [] }\n" +
				"requestQueueController: { enabled: 1, enqueueAll: \"true\" }\nrequestBody: true\nmodels: chat\nflows: [a]",
			[]string{
				`fairRequestQueue.totalCapacity: "many": must be a whole number (line 1)`,
				"fairRequestQueue.flowCapacity: 1.5: must be a whole number (line 1)",
				"fairRequestQueue.queueTTL: a list: must be a duration with a unit, such as 30s (line 1)",
				"requestQueueController.enabled: 1: must be true or false (line 2)",
				`requestQueueController.enqueueAll: "true": must be true or false (line 2)`,
				"requestBody: true: must be text (line 3)",
				`models: "chat": must be a list (line 4)`,
				"flows: a list: must be a mapping (line 5)",
			},
		},
		"a large number in quotes": {
			"fairRequestQueue: { totalCapacity: \"99999999999999999999\" }",
			[]string{`fairRequestQueue.totalCapacity: "99999999999999999999": must be a whole number (line 1)`},
		},
		"durations want a unit": {
			"fairRequestQueue:\n  queueTTL: 30\nrequestQueueController:\n  popperWaitBase: soon",
			[]string{
				"fairRequestQueue.queueTTL: 30: must be a duration with a unit, such as 30s or 30ms (line 2)",
				`requestQueueController.popperWaitBase: "soon": must be a duration with a unit, such as 30s or 1m30s (line 4)`,
			},
		},
		"decimals are exact": {
			"flows: { weights: { a: 0.1234567, b: 1e3, c: .inf, d: heavy, e: 12345678901 } }",
			[]string{
				"flows.weights.a: 0.1234567: must have at most six digits after the point (line 1)",
				"flows.weights.b: 1e3: must be a plain decimal number, such as 0.1 (line 1)",
				"flows.weights.c: .inf: must be a plain decimal number, such as 0.1 (line 1)",
				`flows.weights.d: "heavy": must be a number (line 1)`,
				"flows.weights.e: 12345678901: must have at most nine digits before the point (line 1)",
			},
		},
		"twice": {
			"fairRequestQueue: { queueTTL: 1s, queueTTL: 2s, queue_ttl: 3s }\nfair_request_queue: {}",
			[]string{
				"fairRequestQueue.queueTTL: given twice (line 1)",
				"fairRequestQueue.queue_ttl: given twice (also as queueTTL) (line 1)",
				"fair_request_queue: given twice (also as fairRequestQueue) (line 2)",
			},
		},
		"deep paths": {
			"models:\n- name: chat\n  targets:\n  - { name: a, wieght: 2 }\n  - { name: b, weight: x }",
			[]string{
				"models[0].targets[0].wieght: unknown field (did you mean weight?) (line 4)",
				`models[0].targets[1].weight: "x": must be a whole number (line 5)`,
			},
		},
		"not YAML":      {"a: [", []string{"not YAML: line 1: did not find expected node content"}},
		"two documents": {"profile: wfq\n---\nprofile: wfq", []string{"more than one YAML document (line 2)"}},
		"not a mapping": {"- a", []string{"a list: must be a mapping (line 1)"}},
		"null is no value": {
			"fairRequestQueue: { totalCapacity: null }",
			[]string{"fairRequestQueue.totalCapacity: nothing: must be a whole number (line 1)"},
		},
		"merge keys": {
			"fairRequestQueue: &a {}\nrequestQueueController: { <<: *a }",
			[]string{"requestQueueController.<<: merge keys are not supported (line 2)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Decode([]byte(test.text))
			if got := problemsOf(t, err); !slices.Equal(got, test.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

// The proposal's own spelling of its two sections means the same.
func TestDecodeSnakeCase(t *testing.T) {
	snake, err := Decode([]byte(`
fair_request_queue: { total_capacity: 2000, flow_capacity: 200, queue_ttl: "90s" }
request_queue_controller:
  watermark_per_backend: 3
  percentage_deviation_for_bounds: 0.15
  lower_bound_per_backend: 1
  upper_bound_per_backend: 4
  expiry_cleanup_interval: "5s"
`))
	if err != nil {
		t.Fatal(err)
	}
	camel, err := Decode([]byte(`
fairRequestQueue: { totalCapacity: 2000, flowCapacity: 200, queueTTL: 90s }
requestQueueController:
  watermarkPerBackend: 3
  percentageDeviationForBounds: 0.15
  lowerBoundPerBackend: 1
  upperBoundPerBackend: 4
  expiryCleanupInterval: 5s
`))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(snake, camel) {
		t.Errorf("snake case: %+v\ncamel case: %+v", snake, camel)
	}
	if got := snake.FairRequestQueue.QueueTTL.Std(); got != 90*time.Second {
		t.Errorf("queueTTL %s, want 90s", got)
	}
}

// An empty file, an empty section and a null section change nothing.
func TestDecodeNothing(t *testing.T) {
	for _, text := range []string{"", "\n# only a comment\n", "---\n", "flows:\n", "flows: {}\ntiers:\nmodels: []\n"} {
		d, err := Decode([]byte(text))
		if err != nil || !reflect.DeepEqual(d, Default()) {
			t.Errorf("Decode(%q) = %+v, %v; want the defaults", text, d, err)
		}
	}
}

// A listed tier changes only its given fields. The rest is as in the profile.
func TestTiersInPlace(t *testing.T) {
	d, err := Decode([]byte("profile: smg-priority\ntiers: [ { name: bulk, queueSize: 10 }, ]"))
	if err != nil {
		t.Fatal(err)
	}
	want, _ := Profile(ProfileSMG)
	want.Tiers[3].QueueSize = new(int64(10))
	if !reflect.DeepEqual(d, want) {
		t.Errorf("tiers %+v\nwant %+v", d.Tiers, want.Tiers)
	}
	again, _ := Profile(ProfileSMG)
	if *again.Tiers[3].QueueSize != 1024 {
		t.Error("decoding changed the profile itself")
	}
}

// A tier that the profile lacks is one problem, with the line to add, and the only one.
func TestTiersOfOthers(t *testing.T) {
	for text, want := range map[string]string{
		"tiers: [ { name: gold } ]": `tiers[0].name: "gold": not a tier of the profile (critical, default, sheddable); ` +
			`to use this list instead of the profile's, add the line "replaceTiers: true" (line 1)`,
		"tiers:\n- { name: default }\n- { name: Critical, queueSize: 5 }": `tiers[1].name: "Critical": not a tier of the profile ` +
			`(critical, default, sheddable) (did you mean critical?); to use this list instead of the profile's, add the line ` +
			`"replaceTiers: true" (line 3)`,
	} {
		_, err := Load(source(text))
		if got := problemsOf(t, err); !slices.Equal(got, []string{want}) {
			t.Errorf("%s:\ngot  %q\nwant %q", text, got, want)
		}
		if _, err := Load(source("replaceTiers: true\n" + text)); err != nil {
			t.Error(err)
		}
	}
}

// With replaceTiers the list replaces the profile's tiers. A listed name keeps its values of the profile.
func TestTiersWholeList(t *testing.T) {
	d, err := Decode([]byte("replaceTiers: true\ntiers: [ { name: gold, minPriority: 5 }, { name: default }, { name: last, weight: 0.5 } ]"))
	if err != nil {
		t.Fatal(err)
	}
	want := []Tier{
		{Name: "gold", MinPriority: new(int64(5)), Weight: One},
		{Name: "default", MinPriority: new(int64(0)), Weight: One},
		{Name: "last", Weight: mustDecimal("0.5")},
	}
	if !reflect.DeepEqual(d.Tiers, want) {
		t.Errorf("tiers %+v\nwant %+v", d.Tiers, want)
	}
}

func TestTiersOrder(t *testing.T) {
	_, err := Decode([]byte("tiers: [ { name: sheddable }, { name: critical } ]"))
	want := []string{"tiers: in another order than the profile's tiers: list them highest first, as in the profile (line 1)"}
	if got := problemsOf(t, err); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	_, err = Decode([]byte("tiers: [ { name: critical }, { name: critical, weight: 2 } ]"))
	want = []string{"tiers[1]: critical: listed twice (line 1)"}
	if got := problemsOf(t, err); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// Nested aliases for a billion values give a problem and no crash.
func TestDecodeAliasBomb(t *testing.T) {
	text := "flows:\n  key: &k [" + strings.Repeat("model, ", 1000) + "]\nmodels:\n"
	text += "- &m { name: a, targets: [" + strings.Repeat("{ name: x }, ", 1000) + "] }\n" + strings.Repeat("- *m\n", 1000)
	_, err := Decode([]byte(text))
	if err == nil || !strings.Contains(err.Error(), "the document is too large") {
		t.Errorf("got %v", err)
	}
}

// mustDecimal is ParseDecimal for constants; it panics on text that is not a decimal.
func mustDecimal(text string) Decimal {
	d, err := ParseDecimal(text)
	if err != nil {
		panic(err)
	}
	return d
}
