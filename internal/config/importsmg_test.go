package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// imported returns the result of an SMG file, as an overlay of the smg-priority profile without its head, and the
// notes.
func imported(t *testing.T, text string) (overlay string, notes []string) {
	t.Helper()
	im, err := ImportSMG([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	written := wantReadsBack(t, im.Document)
	const head = "apiVersion: weir.dev/v1alpha1\nkind: EndpointPickerConfig\nprofile: smg-priority\n"
	body, ok := strings.CutPrefix(written, head)
	if !ok {
		t.Errorf("no head in\n%s", written)
	}
	return body, im.Notes
}

// has reports whether a note begins with the text.
func has(notes []string, text string) bool {
	return slices.ContainsFunc(notes, func(n string) bool { return strings.HasPrefix(n, text) })
}

// A missing field keeps its default, class by class. The capacities of the queue follow the sizes of the tiers.
func TestImportSMG(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"nothing": {"", ""},
		"one field of one class": {
			"classes: { interactive: { queue_size: 512 } }",
			"fairRequestQueue:\n  totalCapacity: 2112\ntiers:\n  - name: system\n  - name: interactive\n    queueSize: 512\n  - name: default\n  - name: bulk\n",
		},
		"the defaults, in full": {
			"classes: { bulk: { reserved_floor: 0, reserved_per_slot: 0.0, queue_size: 1024, queue_timeout_secs: 300, " +
				"starvation_threshold_secs: 120, can_preempt: false } }",
			"",
		},
		"every field": {
			"classes: { default: { reserved_floor: 7, reserved_per_slot: 0.5, queue_size: 2000, queue_timeout_secs: 61, " +
				"starvation_threshold_secs: 31, can_preempt: true } }",
			"fairRequestQueue:\n  totalCapacity: 3344\n  flowCapacity: 2000\ntiers:\n  - name: system\n  - name: interactive\n  - name: default\n    queueSize: 2000\n" +
				"    queueTimeout: 1m1s\n    starvationThreshold: 31s\n    canPreempt: true\n    reservedFloor: 7\n    reservedPerSlot: 0.5\n  - name: bulk\n",
		},
		"queues that never queue": {
			"classes: { system: { queue_size: 0 }, interactive: { queue_size: 0 }, default: { queue_size: 0 }, bulk: { queue_size: 0 } }",
			"fairRequestQueue:\n  totalCapacity: 1\n  flowCapacity: 1\ntiers:\n  - name: system\n    queueSize: 0\n" +
				"  - name: interactive\n    queueSize: 0\n  - name: default\n    queueSize: 0\n  - name: bulk\n    queueSize: 0\n",
		},
		"the former name of the floor": {
			"classes: { system: { reserved: 8 } }", "tiers:\n  - name: system\n    reservedFloor: 8\n  - name: interactive\n  - name: default\n  - name: bulk\n",
		},
		"tenants of the header": {
			"tenant_policies: { \"header:acme\": { max_class: interactive }, anonymous: { max_class: bulk } }",
			"flows:\n  key:\n    - header:x-smg-tenant-id\n    - model\ntenantPolicies:\n  acme:\n    maxClass: interactive\n" +
				"  anonymous:\n    maxClass: bulk\n",
		},
		"the header by its name, and the others' class": {
			"default_max_class: interactive\ntrust_tenant_header: true\ntenant_header_name: X-Team",
			"flows:\n  key:\n    - header:x-team\n    - model\ncriticality:\n  maxClass: interactive\n",
		},
		"a header that is not trusted": {
			"trust_tenant_header: false\ntenant_policies: { \"header:acme\": { max_class: system } }",
			"tenantPolicies:\n  acme:\n    maxClass: system\n",
		},
		"nested": {
			"priority_scheduler: { classes: { bulk: { queue_size: 1000 } } }",
			"fairRequestQueue:\n  totalCapacity: 1832\n  flowCapacity: 1000\ntiers:\n  - name: system\n  - name: interactive\n  - name: default\n  - name: bulk\n    queueSize: 1000\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := test.want
			if strings.Contains(want, "tiers:") {
				want = "replaceTiers: true\n" + want // so every tier is listed
			}
			if got, _ := imported(t, test.text); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// The notes have the ignored values, the differences and the advice.
func TestImportSMGNotes(t *testing.T) {
	_, notes := imported(t, strings.Join([]string{
		"priority_scheduler:",
		"  enabled: false",
		"  fallback_capacity: 256",
		"  tenant_metric_top_n: 32",
		"  trust_tenant_header: false",
		"  classes: { interactive: { reserved_floor: 9 }, bulk: { starvation_threshold_secs: 400 } }",
		"  tenant_policies: { \"auth:1f\": { max_class: system }, \"ip:10.0.0.1\": { max_class: bulk }, \"header:a\": { max_class: bulk } }",
	}, "\n"))
	for _, want := range []string{
		"priority_scheduler.enabled: false: ignored",
		"priority_scheduler.fallback_capacity: 256: ignored: the capacity is that of the ready backends",
		"priority_scheduler.tenant_metric_top_n: 32: ignored",
		"priority_scheduler.trust_tenant_header: false: the policies of tenants of the header apply to no request",
		"priority_scheduler.classes.interactive.reserved_per_slot: not given: the default 0.25 stays, where SMG would take 0",
		"priority_scheduler.tenant_policies.auth:1f: is the tenant \"1f\" here",
		"priority_scheduler.tenant_policies.ip:10.0.0.1: ignored",
		"in the new file: tiers[3].starvationThreshold: 6m40s: never fires",
		"in the new file: tenantPolicies.1f: matches no tenant",
		"a request whose queue timeout is over gets 503",
	} {
		if !has(notes, want) {
			t.Errorf("no note %q in\n%s", want, strings.Join(notes, "\n"))
		}
	}
	if _, notes := imported(t, ""); !has(notes, "in the new file: tiers[system].reservedFloor: 32: not reserved") {
		t.Errorf("no note that system's reservation is not held: %q", notes)
	}
	if _, notes := imported(t, "classes: { default: { reserved_per_slot: 0.1 } }\ndefault_max_class: system"); len(notes) != 1 {
		t.Errorf("only the offer was expected: %q", notes)
	}
}

// Impossible values are errors with their path and line in SMG's file, all of them at once.
func TestImportSMGProblems(t *testing.T) {
	wantProblems(t, ImportSMG, map[string][]string{
		"clases: {}": {"clases: unknown field (did you mean classes?) (line 1)"},
		"priority_scheduler: { clases: {} }\nother: 1": {
			"priority_scheduler.clases: unknown field (did you mean classes?) (line 1)", "other: unknown field (line 2)",
		},
		"classes: { bluk: {}, Bulk: {} }": {
			`classes.Bulk: "Bulk": must be one of system, interactive, default, bulk (did you mean bulk?) (line 1)`,
			`classes.bluk: "bluk": must be one of system, interactive, default, bulk (did you mean bulk?) (line 1)`,
		},
		"classes:\n  system:\n    reserved_floor: -1\n    reserved_per_slot: -0.5\n    queue_size: 9999999999\n    queue_timeout_secs: 0\n    starvation_threshold_secs: 0\n    can_preempt: maybe\n    weight: 2": {
			"classes.system.reserved_floor: -1: must be from 0 to 65535 (line 3)",
			"classes.system.reserved_per_slot: -0.5: must be at least 0 (line 4)",
			"classes.system.queue_size: 9999999999: must be from 0 to 536870912 (line 5)",
			"classes.system.queue_timeout_secs: 0: must be from 1 to 3600 (line 6)",
			"classes.system.starvation_threshold_secs: 0: must be from 1 to 1000000000 (line 7)",
			`classes.system.can_preempt: "maybe": must be true or false (line 8)`,
			"classes.system.weight: unknown field (line 9)",
		},
		"classes: { system: { reserved_per_slot: .inf, queue_timeout_secs: 99999999999 } }": {
			"classes.system.reserved_per_slot: .inf: must be a plain decimal number, such as 0.1 (line 1)",
			"classes.system.queue_timeout_secs: 99999999999: must be from 1 to 3600 (line 1)",
		},
		"classes: { system: { reserved: 1, reserved_floor: 1 } }": {
			"classes.system.reserved: 1: given twice (also as reserved_floor) (line 1)",
		},
		"tenant_policies: { a: { max_class: System }, \"header:b\": {}, b: { max_class: bulk }, \"header:\": { max_class: bulk } }": {
			`tenant_policies.a.max_class: "System": must be one of system, interactive, default, bulk (did you mean system?) (line 1)`,
			`tenant_policies.header:: "header:": must name a tenant (line 1)`,
			`tenant_policies.header:b.max_class: "": must be one of system, interactive, default, bulk`,
			`tenant_policies.header:b: "header:b": is the tenant "b" here, and so is b (line 1)`,
		},
		"default_max_class: none\ntrust_tenant_header: true\ntenant_header_name: a b": {
			`default_max_class: "none": must be one of system, interactive, default, bulk (line 1)`,
			`tenant_header_name: "a b": must be the name of a header (line 3)`,
		},
		"[": {"not YAML: line 1: did not find expected node content"},
	})
}

// The page about migrating from SMG names every field of SMG's file, and its example is valid.
func TestSMGPage(t *testing.T) {
	page := contents(t, "..", "..", "docs", "smg.md")
	wantNamed(t, "docs/smg.md", page, reflect.TypeFor[smgClass](), reflect.TypeFor[smgTenant]())
	_, example, _ := strings.Cut(page, "```yaml\napiVersion:")
	example, _, ok := strings.Cut(example, "```")
	if _, err := Load(source("apiVersion:" + example)); err != nil || !ok {
		t.Errorf("the example: %v", err)
	}
}
