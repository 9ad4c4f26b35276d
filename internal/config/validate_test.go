package config

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// Each change of the defaults causes exactly the listed problems.
func TestValidate(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Document)
		want   []string
	}{
		"defaults": {func(*Document) {}, nil},
		"caps of flows without flows": {
			func(d *Document) {
				d.Flows.Discipline = DisciplineNone
				d.RequestQueueController.MaxInFlightPerFlow, d.RequestQueueController.MaxInFlightPerFlowPerBackend = 3, 2
			},
			[]string{
				"requestQueueController.maxInFlightPerFlow: 3: must be 0 with flows.discipline none, which knows no flows",
				"requestQueueController.maxInFlightPerFlowPerBackend: 2: must be 0 with flows.discipline none, which knows no flows",
			},
		},
		"a quantum of flows without flows": {
			func(d *Document) { d.Flows.Discipline, d.Flows.LocalityQuantum = DisciplineNone, 5 },
			[]string{"flows.localityQuantum: 5: must be 0 with discipline none, which knows no flows"},
		},
		"a quantum that is no cost": {
			func(d *Document) { d.Flows.LocalityQuantum = 1 << 31 },
			[]string{"flows.localityQuantum: 2147483648: must be from 0 to 1073741824"},
		},
		"watermark = lower = upper": {
			func(d *Document) {
				c := &d.RequestQueueController
				c.WatermarkPerBackend, c.LowerBoundPerBackend, c.UpperBoundPerBackend = 64, new(int64(64)), new(int64(64))
			}, nil,
		},
		"bounds around the old watermark": {
			func(d *Document) {
				d.RequestQueueController.LowerBoundPerBackend = new(int64(8))
				d.RequestQueueController.UpperBoundPerBackend = new(int64(1))
			},
			[]string{
				"requestQueueController.lowerBoundPerBackend: 8: must be at most watermarkPerBackend (2); to keep n batch " +
					"slots busy, set watermarkPerBackend, lowerBoundPerBackend and upperBoundPerBackend all to n",
				"requestQueueController.upperBoundPerBackend: 1: must be at least watermarkPerBackend (2); to keep n batch " +
					"slots busy, set watermarkPerBackend, lowerBoundPerBackend and upperBoundPerBackend all to n",
			},
		},
		"least and most": {
			func(d *Document) {
				d.RequestQueueController.MinDrain = d.RequestQueueController.DrainWindow
				d.Limits.BodyTimeout = Duration(time.Hour)
				d.Criticality.ObjectiveHeaders = []string{"a", "b", "c", "d"}
			}, nil,
		},
		"no key, no tiers": {
			func(d *Document) { d.Flows.Key, d.Tiers = nil, nil },
			[]string{`flows.key: []: must name at least one source`, `tiers: []: must have at least one tier`},
		},
		"tiers": {
			func(d *Document) {
				d.Tiers = []Tier{
					{Name: "a", MinPriority: new(int64(1)), QueueSize: new(int64(-1)), QueueTimeout: new(Duration(0))},
					{Name: "b", Weight: One, StarvationThreshold: new(Duration(0)), ReservedFloor: -1, ReservedPerSlot: -1},
					{Name: "a", Weight: One, MinPriority: new(int64(1))},
				}
				d.TenantPolicies = map[string]TenantPolicy{"t": {MaxClass: "c"}, "u": {MaxClass: "b"}, "*": {MaxClass: "b"}}
				d.Criticality.MaxClass = "d"
			},
			[]string{
				"tiers[0].weight: 0: must be from 0.001 to 1000000",
				"tiers[0].queueSize: -1: must be from 0 to 2147483647",
				"tiers[0].queueTimeout: 0s: must be above 0s",
				"tiers[1].starvationThreshold: 0s: must be above 0s",
				"tiers[1].reservedFloor: -1: must be at least 0",
				"tiers[1].reservedPerSlot: -0.000001: must be at least 0",
				`tiers[2].name: "a": must be unique`,
				"tiers[2].minPriority: 1: must be below that of the tiers above (1)",
				`tenantPolicies.*: "*": must be a tenant's identity; criticality.maxClass is for the tenants that have no policy`,
				`criticality.maxClass: "d": must be one of Critical, Standard, Sheddable, a, b, a (did you mean a?)`,
				`tenantPolicies.t.maxClass: "c": must be one of Critical, Standard, Sheddable, a, b, a (did you mean a?)`,
			},
		},
		"classes, models, objectives": {
			func(d *Document) {
				d.Classes = []Class{{Name: "a/b", Quantum: 1, Order: "fcfs"}, {Order: "lcfs"}, {Name: "c", Quantum: 1, Order: OrderEDF}}
				d.PolicyClass = PolicyClass{Headers: []string{"a", "A", "b c"}, PriorityHeader: "ä", StrictPriorityHeader: "a:b", MaxStrictPriority: 8192}
				d.FairRequestQueue.Cursor = "leap"
				d.Models = []Model{
					{Name: "chat", Criticality: "Critcal", Targets: []ModelTarget{{Name: "x"}, {Name: "x", Weight: 1}}},
					{Name: "chat", Criticality: "Sheddable"},
				}
				d.Objectives = []Objective{{Name: "batch", Priority: -1}, {Name: "batch"}, {}}
			},
			[]string{
				`classes[0].name: "a/b": must consist of letters, digits, '_', '.' and '-'`,
				`classes[1].name: "": must be given`,
				"classes[1].quantum: 0: must be from 1 to 1073741824",
				`classes[1].order: "lcfs": must be one of fcfs, wspt, edf, locality (did you mean fcfs?)`,
				`fairRequestQueue.cursor: "leap": must be one of stay, advance`,
				"policyClass.headers: 3 headers: must be at most 2",
				`policyClass.headers[1]: "a": must be unique`,
				`policyClass.headers[2]: "b c": must be the name of a header`,
				`policyClass.priorityHeader: "ä": must be the name of a header`,
				`policyClass.strictPriorityHeader: "a:b": must be the name of a header`,
				"policyClass.maxStrictPriority: 8192: must be from 0 to 8191",
				`models[0].criticality: "Critcal": must be one of Critical, Standard, Sheddable, critical, default, sheddable (did you mean Critical?)`,
				"models[0].targets[0].weight: 0: must be from 1 to 1000000",
				`models[0].targets[1].name: "x": must be unique`,
				`models[1].name: "chat": must be unique`,
				`objectives[1].name: "batch": must be unique`,
				`objectives[2].name: "": must be given`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := Default()
			test.change(&d)
			got := problemsOf(t, d.Validate())
			for _, line := range got {
				if !slices.Contains(test.want, line) {
					t.Errorf("unexpected: %s", line)
				}
			}
			for _, line := range test.want {
				if !slices.Contains(got, line) {
					t.Errorf("missing: %s", line)
				}
			}
		})
	}
}

// If the model is the only source, no request has an identity, and all would share one flow.
func TestAnonymousNeedsOthers(t *testing.T) {
	const want = `flows.anonymous: "shared": needs another source in key than model: no request would have an identity`
	if _, err := Load(source("flows: { anonymous: shared }")); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v", err)
	}
}

// Warnings are about allowed but unlikely values, and about keys without effect.
func TestWarnings(t *testing.T) {
	const setSlots = "to keep n batch slots busy (vLLM: --max-num-seqs n), set slotsPerBackend to n"
	const byTTL = "requests are ordered by the end of their TTL, that is first come, first served, since " +
		"requestQueueController.deadlineHeaders is empty"
	const pastTheQueue = "requests at this path run a model, but do not queue: limits and shares do not apply to them"
	const noTokens = "has no effect, since cost is requests: no request is counted in tokens"
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"the defaults": {"", nil},
		"recommended":  {"profile: recommended", nil},
		"a threshold that never fires, and one that does; a queue that never queues": {
			"tiers: [ { name: default, starvationThreshold: 29s, queueSize: 0 }, { name: sheddable, starvationThreshold: 30s } ]",
			[]string{"tiers[sheddable].starvationThreshold: 30s: never fires, since a waiter of this tier expires after 30s"},
		},
		"queueing off": {
			"requestQueueController: { enabled: false, enqueueAll: true }",
			[]string{"requestQueueController.enqueueAll: true: has no effect, since requestQueueController.enabled is false"},
		},
		"queueing off, with a profile that queues all": {"profile: recommended\nrequestQueueController: { enabled: false }", nil},
		"hints of bodies that nobody reads": {
			"profile: dynamo-drr\nrequestBody: never\nscheduling: { affinity: off }",
			[]string{"policyClass.hints: priority, strict_priority: have no effect, since requestBody is never: no body is read"},
		},
		"no hints where no body is read": {"profile: dynamo-drr\nrequestBody: never\npolicyClass: { hints: [] }\nscheduling: { affinity: off }", nil},
		"weighted tiers": {
			"fairRequestQueue: { tierMode: weighted }\ntiers: [ { name: critical, weight: 7, canPreempt: true, starvationThreshold: 1s } ]",
			[]string{
				"tiers[critical].starvationThreshold: 1s: has no effect: weighted tiers need no starvation guard",
				"tiers[critical].canPreempt: true: has no effect: weighted tiers do not preempt",
			},
		},
		"strict tiers": {
			"tiers: [ { name: critical, weight: 7, canPreempt: true }, { name: sheddable, canPreempt: true } ]",
			[]string{
				"tiers[critical].weight: 7: has no effect, since fairRequestQueue.tierMode is strict",
				"tiers[sheddable].canPreempt: true: has no effect, since there is no lower tier",
			},
		},
		"a reservation of the profile's that is raised, for a tier that nobody may use": {
			"profile: smg-priority\ntiers: [ { name: interactive, reservedFloor: 12 } ]",
			[]string{
				"tiers[interactive].reservedFloor: 12: not reserved: no tenant may use tier interactive (criticality.maxClass is default, and " +
					"no tenant's policy goes higher than default)",
			},
		},
		"one tenant may": {
			"profile: smg-priority\nflows: { key: [\"header:x-tenant\"] }\ntenantPolicies: { a: { maxClass: bulk }, vip: { maxClass: system } }",
			nil,
		},
		"all tenants may": {"profile: smg-priority\ncriticality: { maxClass: \"\" }", nil},
		"policies that match nobody": {
			"tenantPolicies: { anonymous: { maxClass: default }, vip: { maxClass: Critical } }",
			[]string{"tenantPolicies.vip: matches no tenant, since flows.key has no source of a tenant's identity: every tenant is anonymous"},
		},
		"reservations of more than everything, and a share without requests": {
			"tiers: [ { name: critical, reservedPerSlot: 0.75 }, { name: default, reservedPerSlot: 0.5 } ]",
			[]string{"tiers: the tiers' reservedPerSlot add up to 1.25: the excess over the capacity is taken from the lowest tiers"},
		},
		"a share that nobody may use": {
			"tiers: [ { name: critical, reservedPerSlot: 0.75 } ]\ncriticality: { maxClass: Standard }",
			[]string{
				"tiers[critical].reservedPerSlot: 0.75: not reserved: no tenant may use tier critical (criticality.maxClass is Standard, and " +
					"no tenant's policy goes higher than default)",
			},
		},
		"a queue larger than its only flow": {
			"profile: smg-priority\ncriticality: { maxClass: system }\nfairRequestQueue: { flowCapacity: 600 }",
			[]string{
				"tiers[bulk].queueSize: 1024: never reached: with flows.discipline none a tier has one flow, of which at most " +
					"fairRequestQueue.flowCapacity (600) wait",
			},
		},
		"bounds beside slots": {
			"requestQueueController: { slotsPerBackend: 8, watermarkPerBackend: 9, lowerBoundPerBackend: 8 }",
			[]string{"requestQueueController.watermarkPerBackend: 9: has no effect, since slotsPerBackend (8) overrides it"},
		},
		"priorities below the lowest tier": {
			"replaceTiers: true\ntiers: [ { name: high, minPriority: 5 }, { name: low, minPriority: 0 } ]",
			[]string{"tiers[1].minPriority: 0: no tier has a lower minPriority, so lower priorities go to this tier, as with null"},
		},
		"one tier with a priority, of the profile": {"profile: dynamo-drr", nil},
		"a watermark alone": {
			"profile: recommended\nrequestQueueController: { watermarkPerBackend: 64 }",
			[]string{"requestQueueController.watermarkPerBackend: 64: under load each backend stays at the lower bound, which " +
				"is derived from it: 57.6; " + setSlots},
		},
		"a lower bound below the watermark": {
			"profile: recommended\nrequestQueueController: { lowerBoundPerBackend: 40 }",
			[]string{"requestQueueController.lowerBoundPerBackend: 40: under load each backend stays at this bound, below the " +
				"watermark of 64; " + setSlots},
		},
		"one request at a time": {
			"requestQueueController: { watermarkPerBackend: 1, lowerBoundPerBackend: 1, upperBoundPerBackend: 8 }",
			[]string{"requestQueueController.lowerBoundPerBackend: 1: under load each backend has one request at a time, and " +
				"no batch; " + setSlots},
		},
		"one slot": {"requestQueueController: { watermarkPerBackend: 1, lowerBoundPerBackend: 1, upperBoundPerBackend: 1 }", nil},
		"the lowest lower bound": {
			"profile: recommended\nrequestQueueController: { lowerBoundPerBackend: 1 }",
			[]string{"requestQueueController.lowerBoundPerBackend: 1: under load each backend has one request at a time, and " +
				"no batch; " + setSlots},
		},
		"a prompt's path past the queue, in any spelling, and one that is none": {
			"passOnPaths: [ /health, /v1/completions, /x/v1/chat%2Fcompletions ]",
			[]string{
				"passOnPaths[1]: \"/v1/completions\": " + pastTheQueue, "passOnPaths[2]: \"/x/v1/chat%2Fcompletions\": " + pastTheQueue,
			},
		},
		"a prompt's path that queues": {"passOn: queue\npassOnPaths: [ /v1/completions ]", nil},
		"classes that no request names": {
			"classes: [ { name: a, quantum: 1 }, { name: b, quantum: 2 } ]",
			[]string{"classes: 2 given: every request belongs to the first class, a, since policyClass.headers is empty"},
		},
		"deadlines that nobody states": {
			"profile: dynamo-drr\nflows: { order: edf }\nclasses: [ { name: a, quantum: 1 }, { name: b, quantum: 2, order: edf } ]",
			[]string{"flows.order: edf: " + byTTL, "classes[1].order: edf: " + byTTL},
		},
		"deadlines that a header states": {
			"flows: { order: edf }\nrequestQueueController: { deadlineHeaders: [ x-deadline-ms ] }", nil,
		},
		"classes that requests name": {
			"profile: dynamo-drr\nclasses: [ { name: a, quantum: 1 }, { name: b, quantum: 2 } ]", nil,
		},
		"objectives that no request names": {
			"objectives: [ { name: o, priority: 1 } ]\ncriticality: { objectiveHeaders: [] }",
			[]string{"objectives: 1 given: no request names one, since criticality.objectiveHeaders is empty"},
		},
		"objectives that requests name": {"objectives: [ { name: o, priority: 1 } ]", nil},
		"tokens where requests are counted": {
			"profile: wfq\ntokens: { weights: { output: 3 }, output: { floor: 1 } }\ntrustedHeaders: { inputTokens: x-tokens }\n" +
				"requestQueueController: { maxTokensInFlightPerFlow: 1000, watermarkTokensPerBackend: 1000 }",
			[]string{
				"tokens.weights: " + noTokens, "tokens.output: " + noTokens, "trustedHeaders.inputTokens: " + noTokens,
				"requestQueueController.watermarkTokensPerBackend: 1000: counts requests, since cost is requests: each request counts 1",
				"requestQueueController.maxTokensInFlightPerFlow: 1000: counts requests, since cost is requests: each request counts 1",
			},
		},
		"tokens that the gateway counts": {
			"profile: wfq\ntrustedHeaders: { cost: x-cost }\nrequestQueueController: { watermarkTokensPerBackend: 1000 }", nil,
		},
		"tokens": {"profile: recommended\ntokens: { weights: { output: 3 } }", nil},
		"a pattern that is none": {
			"profile: recommended\nflows: { weights: { \"*\": 2 }, capacities: { \"*\": 2 } }",
			[]string{
				"flows.weights.*: applies to a flow named *, not to all flows: there are no patterns",
				"flows.capacities.*: applies to a flow named *, not to all flows: there are no patterns",
			},
		},
		"a floor above a backend's bound": {
			"profile: recommended\nrequestQueueController: { slotsPerBackend: 64 }\ntiers: [ { name: critical, reservedFloor: 65 }, { name: default, reservedFloor: 64 } ]",
			[]string{"tiers[critical].reservedFloor: 65: needs 2 backends of 64 requests each: with fewer ready, lower tiers get the rest " +
				"of the capacity"},
		},
		"all three bounds": {
			"requestQueueController: { watermarkPerBackend: 8, lowerBoundPerBackend: 8, upperBoundPerBackend: 8 }", nil,
		},
		"the profile's bounds beside other slots": {
			"profile: smg-priority\ncriticality: { maxClass: \"\" }\nrequestQueueController: { slotsPerBackend: 8 }", nil,
		},
	} {
		d, err := Load(source(test.text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var got []string
		for _, w := range d.Warnings() {
			got = append(got, w.Error())
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

// Nothing warns about a profile's own values.
func TestProfilesAloneAreNotWarnedAbout(t *testing.T) {
	for _, name := range Profiles() {
		d, err := Profile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range d.Warnings() {
			t.Errorf("%s: %v", name, w)
		}
	}
}
