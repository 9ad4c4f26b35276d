package config

import (
	"slices"
	"strings"
	"testing"
)

// A weight that no flow can have is reported at the start and at each change: with the default key a flow is
// MODEL/TARGET.
func TestNamesThatMatchNoFlowAreWarnedAbout(t *testing.T) {
	const models = "models: [ { name: chat, targets: [ { name: v1 }, { name: v2 } ] }, { name: plain } ]\n"
	for _, test := range []struct{ text, want string }{
		{"flows: { weights: { m: 3 } }", "flows.weights.m"},
		{"flows: { weights: { m/m: 3, org/m/org/m: 2, anonymous: 2 }, capacities: { m/m: 5 } }", ""},
		{"flows: { weights: { m-m: 3 } }", "flows.weights.m-m"},
		{"flows: { weights: { m/n: 3, /: 2, unknown: 2 }, capacities: { team: 5 } }", "flows.weights./ flows.weights.m/n flows.weights.unknown flows.capacities.team"},
		{"flows: { unknownModels: shared, weights: { unknown: 2 } }", ""},
		{models + "flows: { weights: { chat/v1: 2, chat/v2: 2, plain/plain: 2, other/other: 2 } }", ""},
		{models + "flows: { weights: { chat/chat: 2, chat/v3: 2, plain/v1: 2, chat: 2 } }", "flows.weights.chat flows.weights.chat/chat flows.weights.chat/v3 flows.weights.plain/v1"},
		{"flows: { key: [\"header:x-tenant\", model], weights: { m: 3, m/m: 2 } }", ""}, // a tenant may be called m
		{"flows: { discipline: none, weights: { m: 3 } }", "flows.weights"},
		{"tenantPolicies: { team: { maxClass: default }, anonymous: { maxClass: default } }", "tenantPolicies.team"},
		{"profile: recommended\ntenantPolicies: { team: { maxClass: default } }", ""},
	} {
		d, err := Load(source(test.text))
		if err != nil {
			t.Fatal(err)
		}
		var paths []string
		for _, w := range d.Warnings() {
			if strings.HasPrefix(w.Path, "flows.") || strings.HasPrefix(w.Path, "tenantPolicies.") {
				paths = append(paths, w.Path)
			}
		}
		if want := strings.Fields(test.want); !slices.Equal(paths, want) {
			t.Errorf("%s: warned about %q, want %q", test.text, paths, want)
		}
	}
}

// A tenant never gets a class above its own maxClass.
func TestClassAboveTheMaximumIsWarnedAbout(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"{ a: { class: critical, maxClass: default } }", "tenantPolicies.a"},
		{"{ b: { class: Critical, maxClass: sheddable }, a: { class: default, maxClass: Sheddable } }", "tenantPolicies.a tenantPolicies.b"},
		{"{ a: { class: default, maxClass: default }, b: { class: sheddable, maxClass: critical } }", ""},
		{"{ a: { class: critical }, b: { maxClass: sheddable } }", ""}, // class alone is its own maximum
		{"{ a: { class: critical } }\ncriticality: { maxClass: sheddable }", ""},
	} {
		d, err := Load(source("profile: recommended\ntenantPolicies: " + test.text))
		if err != nil {
			t.Fatal(err)
		}
		var paths []string
		for _, w := range d.Warnings() {
			paths = append(paths, w.Path)
		}
		if want := strings.Fields(test.want); !slices.Equal(paths, want) {
			t.Errorf("%s: warned about %q, want %q", test.text, paths, want)
		}
	}
}
