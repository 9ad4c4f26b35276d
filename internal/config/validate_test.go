package config

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// Each change of the defaults causes exactly the problems beside it.
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
		"watermark = lower = upper": {
			func(d *Document) {
				c := &d.RequestQueueController
				c.WatermarkPerBackend, c.LowerBoundPerBackend, c.UpperBoundPerBackend = 64, new(int64(64)), new(int64(64))
			}, nil,
		},
		"lower bound 0 is allowed": {
			func(d *Document) { d.RequestQueueController.LowerBoundPerBackend = new(int64(0)) }, nil,
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
		"positive values": {
			func(d *Document) {
				d.FairRequestQueue = FairRequestQueue{
					CapacityMode: CapacityShared, TierMode: TiersStrict, TopTier: TopFair, Cursor: CursorStay, PromotionBudget: MustDecimal("1.1"),
				}
				d.RequestQueueController = RequestQueueController{
					SlotsPerBackend: new(Slots(0)), PopperWaitJitterMax: -1, ReleaseSpacing: -1, MaxInFlightPerFlow: -1,
					MaxInFlightPerFlowPerBackend: -2, VictimOrder: VictimNewest, DrainWindow: Duration(-time.Second),
					MinDrain:        Duration(-time.Second),
					DeadlineHeaders: []string{"x-deadline", "a b", ""},
				}
				d.Limits = Limits{}
			},
			[]string{
				"fairRequestQueue.totalCapacity: 0: must be at least 1",
				"fairRequestQueue.flowCapacity: 0: must be at least 1",
				"fairRequestQueue.queueTTL: 0s: must be above 0s",
				"fairRequestQueue.promotionBudget: 1.1: must be from 0 to 1",
				"requestQueueController.percentageDeviationForBounds: 0: must be above 0 and below 1",
				"requestQueueController.watermarkPerBackend: 0: must be from 1 to 1000000",
				"requestQueueController.slotsPerBackend: 0: must be from 1 to 1000000",
				"requestQueueController.numPoppers: 0: must be from 1 to 1000",
				"requestQueueController.popperWaitBase: 0s: must be above 0s",
				"requestQueueController.popperWaitJitterMax: -1ns: must be at least 0s",
				"requestQueueController.expiryCleanupInterval: 0s: must be above 0s",
				"requestQueueController.releaseSpacing: -1ns: must be from 0s to 1s",
				"requestQueueController.maxInFlightPerFlow: -1: must be at least 0",
				"requestQueueController.maxInFlightPerFlowPerBackend: -2: must be at least 0",
				"requestQueueController.drainWindow: -1s: must be from 0s to 1h",
				"requestQueueController.minDrain: -1s: must be at least 0s",
				`requestQueueController.deadlineHeaders[1]: "a b": must be the name of a header`,
				`requestQueueController.deadlineHeaders[2]: "": must be the name of a header`,
				"limits.maxBodyBytes: 0: must be at least 1",
				"limits.maxBodyBytesTotal: 0: must be at least 1",
				"limits.bodyTimeout: 0s: must be above 0s and at most 1h",
				"limits.maxHeaderBytes: 0: must be at least 1",
				"limits.maxHeaders: 0: must be at least 1",
				"limits.maxFlows: 0: must be at least 1",
			},
		},
		"least and most": {
			func(d *Document) {
				d.RequestQueueController.MinDrain = d.RequestQueueController.DrainWindow
				d.Limits.BodyTimeout = Duration(time.Hour)
				d.Criticality.ObjectiveHeaders = []string{"a", "b", "c", "d"}
			}, nil,
		},
		"more than the most": {
			func(d *Document) {
				d.RequestQueueController.MinDrain = d.RequestQueueController.DrainWindow + 1
				d.Limits.BodyTimeout = Duration(time.Hour + 1)
				d.Criticality.ObjectiveHeaders = []string{"a", "b", "c", "d", "e"}
			},
			[]string{
				"requestQueueController.minDrain: 30.000000001s: must be at most drainWindow (30s)",
				"criticality.objectiveHeaders: 5 headers: must be at most 4",
				"limits.bodyTimeout: 1h0m0.000000001s: must be above 0s and at most 1h",
			},
		},
		"lists of headers and paths": {
			func(d *Document) {
				d.Criticality.ObjectiveHeaders = []string{"x-a", "X-A", "a b"}
				d.PassOnPaths = []string{"/a", "/a", "b", "/c?d", "/e#f", "/g%0A"}
				d.Flows.UnknownModels = "share"
			},
			[]string{
				`flows.unknownModels: "share": must be one of own, shared (did you mean shared?)`,
				`criticality.objectiveHeaders[1]: "x-a": must be unique`,
				`criticality.objectiveHeaders[2]: "a b": must be the name of a header`,
				`passOnPaths[1]: "/a": must be unique`,
				`passOnPaths[2]: "b": must be a path as clients send it: from its first slash, without the query`,
				`passOnPaths[3]: "/c?d": must be a path as clients send it: from its first slash, without the query`,
				`passOnPaths[4]: "/e#f": must be a path as clients send it: from its first slash, without the query`,
			},
		},
		"the percentage is below 1": {
			func(d *Document) { d.RequestQueueController.PercentageDeviationForBounds = One },
			[]string{"requestQueueController.percentageDeviationForBounds: 1: must be above 0 and below 1"},
		},
		"known words": {
			func(d *Document) {
				d.FairRequestQueue.CapacityMode = "share"
				d.FairRequestQueue.TierMode = ""
				d.RequestBody, d.PassOn = "sometimes", "Pick"
				d.Scheduling = Scheduling{
					Filters: []string{"ready", "ready", "quick"},
					Scorers: []Scorer{{Name: "least-stok", Weight: 1}, {Name: "least-stock"}},
					Picker:  "any", TieBreak: "newest", Fallbacks: 9,
				}
			},
			[]string{
				`fairRequestQueue.capacityMode: "share": must be one of reserved, shared, reject (did you mean shared?)`,
				`fairRequestQueue.tierMode: "": must be one of strict, weighted`,
				`requestBody: "sometimes": must be one of auto, always, never`,
				`passOn: "Pick": must be one of pick, queue (did you mean pick?)`,
				`scheduling.filters[1]: "ready": must be unique`,
				`scheduling.filters[2]: "quick": must be one of model, ready, subset`,
				`scheduling.scorers[0].name: "least-stok": must be one of least-stock (did you mean least-stock?)`,
				"scheduling.scorers[1].weight: 0: must be from 1 to 1000",
				`scheduling.picker: "any": must be one of max-score`,
				`scheduling.tieBreak: "newest": must be one of rotate, first, random`,
				"scheduling.fallbacks: 9: must be from 0 to 8",
			},
		},
		"flows": {
			func(d *Document) {
				d.Flows.TieBreak = "newcomers"
				d.Flows.Key = []string{
					"header:x-tenant", "header:", "header:x tenant", "metadata:ns/a/b", "metadata:ns", "attribute:a.b",
					"attribute:", "model", "model", "tenant",
				}
				d.Flows.Weights = map[string]Decimal{"b": -1, "a": 0, "c": One}
				d.Flows.Capacities = map[string]int64{"a": 0, "b": 1000, "c": 1001}
			},
			[]string{
				`flows.key[1]: "header:": must name the header, as in header:x-tenant`,
				`flows.key[2]: "x tenant": must be the name of a header`,
				`flows.key[4]: "ns": must be NAMESPACE/PATH, as in envoy.filters.http.jwt_authn/payload/sub`,
				`flows.key[6]: "attribute:": must name the attribute, as in attribute:source.principal`,
				`flows.key[8]: "model": must be unique`,
				`flows.key[9]: "tenant": must be model, header:NAME, metadata:NAMESPACE/PATH or attribute:NAME`,
				"flows.weights.a: 0: must be from 0.001 to 1000000",
				"flows.weights.b: -0.000001: must be from 0.001 to 1000000",
				"flows.capacities.a: 0: must be at least 1",
				"flows.capacities.c: 1001: must be at most fairRequestQueue.totalCapacity (1000)",
				`flows.tieBreak: "newcomers": must be one of arrival, newcomer (did you mean newcomer?)`,
			},
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
				d.Classes = []Class{{Name: "a/b", Quantum: 1, Order: OrderFCFS}, {Order: "lcfs"}, {Name: "c", Quantum: 1, Order: OrderEDF}}
				d.PolicyClass = PolicyClass{Headers: []string{"a", "A", "b c"}, PriorityHeader: "ä", StrictPriorityHeader: "a:b", MaxStrictPriority: 8192}
				d.FairRequestQueue.Cursor = "leap"
				d.Models = []Model{
					{Name: "chat", Criticality: "Critcal", Targets: []ModelTarget{{Name: "x"}, {Name: "x", Weight: 1}}},
					{Name: "chat", Criticality: Sheddable},
				}
				d.Objectives = []Objective{{Name: "batch", Priority: -1}, {Name: "batch"}, {}}
			},
			[]string{
				`classes[0].name: "a/b": must consist of letters, digits, '_', '.' and '-'`,
				`classes[1].name: "": must be given`,
				"classes[1].quantum: 0: must be from 1 to 1073741824",
				`classes[1].order: "lcfs": must be one of fcfs, wspt, edf (did you mean fcfs?)`,
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
		"serving": {
			func(d *Document) {
				d.Responses = Responses{Preset: "gatway", Status: map[string]int64{
					"queue-full": 429, "shed": 399, "internal": 600, "queue_full": 429, "dispatched": 200,
				}}
				d.Criticality = Criticality{Header: "x:y", Metadata: "ns/", Default: Critical}
				d.TrustedHeaders = TrustedHeaders{Model: "", Cost: "a b"}
				d.Limits.MaxBodyBytesTotal = d.Limits.MaxBodyBytes - 1
			},
			[]string{
				`responses.preset: "gatway": must be one of seed, gateway, smg, dynamo (did you mean gateway?)`,
				`responses.status.dispatched: "dispatched": must be one of flow-full, queue-full, shed, displaced, ` +
					`ttl-expired, preempted, client-cancelled, deadline-exceeded, no-endpoint, draining, bad-request, ` +
					`too-large, body-timeout, no-memory, internal, unknown-model (did you mean displaced?)`,
				"responses.status.internal: 600: must be a status from 400 to 599",
				`responses.status.queue_full: "queue_full": must be one of flow-full, queue-full, shed, displaced, ` +
					`ttl-expired, preempted, client-cancelled, deadline-exceeded, no-endpoint, draining, bad-request, ` +
					`too-large, body-timeout, no-memory, internal, unknown-model (did you mean queue-full?)`,
				"responses.status.shed: 399: must be a status from 400 to 599",
				`criticality.header: "x:y": must be the name of a header`,
				`trustedHeaders.cost: "a b": must be the name of a header`,
				`criticality.metadata: "ns/": must be NAMESPACE/PATH, as in envoy.filters.http.jwt_authn/payload/sub`,
				"limits.maxBodyBytes: 33554432: must be at most maxBodyBytesTotal (33554431)",
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

// If the model is the only source, nobody has an identity, and all would share one flow.
func TestAnonymousNeedsOthers(t *testing.T) {
	const want = `flows.anonymous: "shared": needs another source in key than model: nobody would have an identity`
	if _, err := Load(source("flows: { anonymous: shared }")); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v", err)
	}
}

// Warnings are about what is allowed but hardly intended, and about what is configured but has no effect.
func TestWarnings(t *testing.T) {
	const allThree = "to keep n batch slots busy (vLLM: --max-num-seqs n), set all three of watermarkPerBackend, " +
		"lowerBoundPerBackend and upperBoundPerBackend to n"
	const byTTL = "requests go by the end of their TTL, so first come, first served, since " +
		"requestQueueController.deadlineHeaders is empty"
	const pastTheQueue = "requests at this path run a model, and pass the queue: no limit and no share holds for them"
	const noTokens = "has no effect, since cost is requests: no request is counted in tokens"
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"the defaults": {"", nil},
		"recommended":  {"profile: recommended", nil},
		"a threshold that never fires, and one that does; a queue that never queues": {
			"tiers: [ { name: default, starvationThreshold: 29s, queueSize: 0 }, { name: sheddable, starvationThreshold: 30s } ]",
			[]string{"tiers[2].starvationThreshold: 30s: never fires, since a waiter of this tier expires after 30s"},
		},
		"queueing off": {
			"requestQueueController: { enabled: false, enqueueAll: true }",
			[]string{"requestQueueController.enqueueAll: true: has no effect, since requestQueueController.enabled is false"},
		},
		"weighted tiers": {
			"fairRequestQueue: { tierMode: weighted }\ntiers: [ { name: critical, weight: 7, canPreempt: true, starvationThreshold: 1s } ]",
			[]string{
				"tiers[0].starvationThreshold: 1s: has no effect: weighted tiers need no starvation guard",
				"tiers[0].canPreempt: true: has no effect: weighted tiers do not preempt",
			},
		},
		"strict tiers": {
			"tiers: [ { name: critical, weight: 7, canPreempt: true }, { name: sheddable, canPreempt: true } ]",
			[]string{
				"tiers[0].weight: 7: has no effect, since fairRequestQueue.tierMode is strict",
				"tiers[2].canPreempt: true: has no effect, since there is no lower tier",
			},
		},
		"a reservation of the profile's that is raised, for a tier that nobody may use": {
			"profile: smg-priority\ntiers: [ { name: interactive, reservedFloor: 12 } ]",
			[]string{
				"tiers[1].reservedFloor: 12: not held: nobody may use tier interactive (criticality.maxClass is default, and " +
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
			[]string{"tenantPolicies.vip: matches nobody, since flows.key names no source of a tenant's identity: every tenant is anonymous"},
		},
		"reservations of more than everything, and a share without requests": {
			"tiers: [ { name: critical, reservedPerSlot: 0.75 }, { name: default, reservedPerSlot: 0.5 } ]",
			[]string{"tiers: the tiers' reservedPerSlot are 1.25 together: what is more than the capacity is taken from the lowest tiers"},
		},
		"a share that nobody may use": {
			"tiers: [ { name: critical, reservedPerSlot: 0.75 } ]\ncriticality: { maxClass: Standard }",
			[]string{
				"tiers[0].reservedPerSlot: 0.75: not held: nobody may use tier critical (criticality.maxClass is Standard, and " +
					"no tenant's policy goes higher than default)",
			},
		},
		"a queue larger than its only flow": {
			"profile: smg-priority\ncriticality: { maxClass: system }\nfairRequestQueue: { flowCapacity: 600 }",
			[]string{
				"tiers[3].queueSize: 1024: never reached: with flows.discipline none a tier has one flow, of which at most " +
					"fairRequestQueue.flowCapacity (600) wait",
			},
		},
		"bounds beside slots": {
			"requestQueueController: { slotsPerBackend: 8, watermarkPerBackend: 9, lowerBoundPerBackend: 8 }",
			[]string{"requestQueueController.watermarkPerBackend: 9: has no effect, since slotsPerBackend (8) takes its place"},
		},
		"priorities below the lowest tier": {
			"replaceTiers: true\ntiers: [ { name: high, minPriority: 5 }, { name: low, minPriority: 0 } ]",
			[]string{"tiers[1].minPriority: 0: no tier is for lower priorities: they go to this one all the same, as null says"},
		},
		"one tier with a priority, of the profile": {"profile: dynamo-drr", nil},
		"a watermark alone": {
			"profile: recommended\nrequestQueueController: { watermarkPerBackend: 64 }",
			[]string{"requestQueueController.watermarkPerBackend: 64: under load each backend is kept at the lower bound, which " +
				"is derived from it: 57.6; " + allThree},
		},
		"a lower bound below the watermark": {
			"profile: recommended\nrequestQueueController: { lowerBoundPerBackend: 40 }",
			[]string{"requestQueueController.lowerBoundPerBackend: 40: under load each backend is kept there, below the " +
				"watermark of 64; " + allThree},
		},
		"one request at a time": {
			"requestQueueController: { watermarkPerBackend: 1, lowerBoundPerBackend: 1, upperBoundPerBackend: 8 }",
			[]string{"requestQueueController.lowerBoundPerBackend: 1: under load each backend has one request at a time, and " +
				"batches none; " + allThree},
		},
		"one slot": {"requestQueueController: { watermarkPerBackend: 1, lowerBoundPerBackend: 1, upperBoundPerBackend: 1 }", nil},
		"the lowest lower bound": {
			"profile: recommended\nrequestQueueController: { lowerBoundPerBackend: 1 }",
			[]string{"requestQueueController.lowerBoundPerBackend: 1: under load each backend has one request at a time, and " +
				"batches none; " + allThree},
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
			[]string{"classes: 2 given: every request belongs to the first one, a, since policyClass.headers is empty"},
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
				"requestQueueController.watermarkTokensPerBackend: 1000: counts requests, since cost is requests: each takes 1",
				"requestQueueController.maxTokensInFlightPerFlow: 1000: counts requests, since cost is requests: each takes 1",
			},
		},
		"tokens that the gateway counts": {
			"profile: wfq\ntrustedHeaders: { cost: x-cost }\nrequestQueueController: { watermarkTokensPerBackend: 1000 }", nil,
		},
		"tokens": {"profile: recommended\ntokens: { weights: { output: 3 } }", nil},
		"a pattern that is none": {
			"profile: recommended\nflows: { weights: { \"*\": 2 }, capacities: { \"*\": 2 } }",
			[]string{
				"flows.weights.*: is for the flow that is called *, not for all flows: there are no patterns",
				"flows.capacities.*: is for the flow that is called *, not for all flows: there are no patterns",
			},
		},
		"a floor above a backend's bound": {
			"profile: recommended\ntiers: [ { name: critical, reservedFloor: 65 }, { name: default, reservedFloor: 64 } ]",
			[]string{"tiers[0].reservedFloor: 65: takes 2 backends of 64 requests each: with fewer ready, lower tiers get what this " +
				"one leaves"},
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
