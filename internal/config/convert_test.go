package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weir-epp/weir/pkg/decision/sink"
	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/extproc"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/quota"
	"github.com/weir-epp/weir/pkg/request"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// The wfq profile equals the defaults of the packages.
func TestDefaultsAgree(t *testing.T) {
	d := Default()
	got, want := d.FlowcontrolConfig(), flowcontrol.DefaultConfig()
	want.Queue.Tiers, want.Tiers = got.Queue.Tiers, got.Tiers // theirs has one tier
	want.Queue.GuaranteedTop = true                           // only in shared mode
	want.Queue.Weights, want.Queue.FlowCapacities = map[string]fairqueue.Weight{}, map[string]int{}
	want.Quotas.Tenants, want.Quotas.Roles = map[string]quota.Limit{}, map[string]quota.Limit{}
	want.Queue.Roles, want.Roles = map[string]fairqueue.RoleConfig{}, map[string]dispatch.RoleConfig{}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("flowcontrol: %+v\nwant %+v", got, want)
	}
	streams, own := d.ExtprocConfig(), extproc.DefaultConfig()
	own.Roles = map[string]request.RoleTiers{}
	own.TenantPolicies, own.Responses.Status, own.ModelRings = map[string]request.TenantPolicy{}, map[string]int{}, map[string]request.Ring{}
	if !reflect.DeepEqual(streams, own) {
		t.Errorf("extproc: %+v\nwant %+v", streams, own)
	}
	if got, want := d.SchedulingConfig(), scheduling.DefaultConfig(); !reflect.DeepEqual(got, want) {
		t.Errorf("scheduling: %+v\nwant %+v", got, want)
	}
	if got, want := d.SinkConfig(), sink.DefaultConfig(); got != want {
		t.Errorf("sink: %+v\nwant %+v", got, want)
	}
}

// Every field is converted: a document that differs in every field arrives whole.
func TestConvertEverything(t *testing.T) {
	d, err := Decode([]byte(`
fairRequestQueue: { totalCapacity: 50, flowCapacity: 5, queueTTL: 3s, capacityMode: shared, tierMode: weighted, promotionBudget: 0.25, topTier: fair, cursor: advance }
requestQueueController: { enabled: false, limiter: { rate: 2.5, burst: 7 }, statedSlots: true, enqueueAll: true, watermarkPerBackend: 9, percentageDeviationForBounds: 0.2, lowerBoundPerBackend: 8,
  upperBoundPerBackend: 10, slotsPerBackend: 4, numPoppers: 2, popperWaitBase: 1s, popperWaitJitterMax: 2s, expiryCleanupInterval: 4s, releaseSpacing: 7ms,
  holdWhenEmpty: false, deadlineHeaders: [x-deadline], maxInFlightPerFlow: 12, maxInFlightPerFlowPerBackend: 6, maxTokensInFlightPerFlow: 120,
  maxTokensInFlightPerFlowPerBackend: 60, watermarkTokensPerBackend: 90, lowerBoundTokensPerBackend: 80, upperBoundTokensPerBackend: 100, victimOrder: least-cost }
flows: { key: ["header:x-tenant"], role: ["header:x-role"], defaultRole: dean, weights: { a: 2.5 }, capacities: { b: 7 }, discipline: none, fairshare: { window: 1m, threshold: 0.75, waitBonus: 2.5, burstRate: 7, burstCap: 70, burstDecay: 0.25 }, tieBreak: newcomer, unknownModels: shared, anonymous: shared, order: edf, ageing: 6s }
replaceTiers: true
tiers: [ { name: one, minPriority: 4, weight: 3, queueSize: 0, queueTimeout: 6s, starvationThreshold: 5s, canPreempt: true, reservedFloor: 1, reservedPerSlot: 0.125 } ]
classes: [ { name: c, quantum: 9, order: wspt, ageing: 5s, family: f, bucket: b },
  { name: d, quantum: 8, model: m, family: g, bucket: e, busyTokens: 10, busyFraction: 0.5, busyRatio: 0.95, queueLimitPerBackend: 1, rawTokenLimitPerBackend: 0, cachedTokenLimitPerBackend: 3 } ]
policyClass: { headers: [x-policy], defaultFamily: f, uncachedBuckets: [ { minTokens: 0, bucket: b } ], byModel: { m: { defaultFamily: g, uncachedBuckets: [ { minTokens: 0, bucket: e } ] } }, priorityHeader: x-p, strictPriorityHeader: x-s, maxStrictPriority: 3, hints: [osl], maxPriority: 4 }
models: [ { name: m, criticality: Sheddable, targets: [ { name: t, weight: 3 } ] } ]
objectives: [ { name: o, priority: -2 } ]
roles: { dean: { weight: 2.5, maxInFlight: 8, class: one, maxClass: Critical, quota: { tokens: 99, window: 2s } } }
tenantPolicies: { vip: { maxClass: one, role: dean, quota: { tokens: 1000, window: 90s } } }
passOnPaths: [/cheap]
responses: { preset: smg, status: { shed: 529 }, metadata: true, queueState: true }
criticality: { header: x-class, metadata: ns/tier, default: one, maxClass: Critical, objectiveHeaders: [x-objective] }
trustedHeaders: { model: x-model, cost: x-cost, inputTokens: x-input, requirements: x-needs }
cost: tokens
tokens: { weights: { input: 3, cachedInput: 0.5, output: 7 }, stockWeights: { input: 4, cachedInput: 0.25, output: 8 }, input: { bytesPerToken: 2.5 },
  output: { quantile: 0.75, window: 8, floor: 9, coldStart: 10, coldRate: 11 }, includeUsage: true }
usage: body
requestBody: always
assumeFullDuplex: true
passOn: queue
limits: { maxBodyBytes: 1, maxBodyBytesTotal: 2, maxHeaderBytes: 3, maxHeaders: 98, bodyTimeout: 5s, maxFlows: 4 }
scheduling: { filters: [ready], affinity: prefix, affinityScope: flow, affinitySession: "cookie:s", affinitySeed: x, tieBreak: random, fallbacks: 7, prefillThreshold: 8, prefillTokens: 9,
  policy: mindrouter, mindrouter: { loaded: 1, utilisation: 2, utilisationUnknown: 3, queue: 4, queueSlope: 0.5, throughput: 6, latency: 7, latencyUnknown: 8, priority: 9, scale: 10s, alpha: 0.11 } }
recording: 12
decisions: { sample: 0.25, sink: file, file: /d.json, maxFileBytes: 99999, explain: [ops] }
`))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Validate(); err == nil || !strings.Contains(err.Error(), "6 problems") { // caps of flows, and no flows
		t.Fatal(err)
	}
	queue := d.FlowcontrolConfig()
	limits, busy := queue.Queue.Classes[1].Limits, queue.Classes[1].Busy
	if l := []int64{*limits.Requests, *limits.RawTokens, *limits.CachedTokens}; !slices.Equal(l, []int64{1, 0, 3}) {
		t.Errorf("limits %d", l)
	}
	if b := []int64{*busy.PrefillTokens, *busy.PrefillFraction, busy.WorkerRatio}; !slices.Equal(b, []int64{10, 500_000, 950_000}) || (queue.Classes[0].Busy != scheduling.BusyRule{}) {
		t.Errorf("busy %d, and %+v", b, queue.Classes[0].Busy)
	}
	queue.Queue.Classes[1].Limits = fairqueue.ClassLimits{}
	got := []any{
		queue.Queue, queue.Stock, queue.Tiers, queue.Enabled, queue.EnqueueAll, queue.HoldWhenEmpty, queue.MaxLabels,
		queue.MaxInFlightPerFlow, queue.MaxInFlightPerFlowPerBackend, queue.VictimOrder, queue.ReleaseSpacing,
		queue.MaxTokensInFlightPerFlow, queue.MaxTokensInFlightPerFlowPerBackend, queue.Quotas, queue.Config.Roles, queue.Limiter,
	}
	for i, want := range []string{
		"{TotalCapacity:50 FlowCapacity:5 FlowCapacities:map[b:7] CapacityMode:1 QueueTTL:3s Weights:map[a:2500000] Roles:map[dean:{Weight:2500000}] Discipline:1 " +
			"FairShare:{Window:1m0s Threshold:750000 WaitBonus:2500000 BurstRate:7 BurstCap:70 BurstDecay:250000} " +
			"TieBreak:1 TierMode:1 PromotionBudget:250000 GuaranteedTop:false Tiers:[{Name:one Weight:3000000 QueueSize:0 QueueTimeout:6s " +
			"StarvationThreshold:5s}] Classes:[{Name:c Quantum:9 Order:1 Ageing:5s Ring: Limits:{Requests:<nil> RawTokens:<nil> CachedTokens:<nil>}} " +
			"{Name:d Quantum:8 Order:2 Ageing:0s Ring:m Limits:{Requests:<nil> RawTokens:<nil> CachedTokens:<nil>}}] Order:2 Ageing:6s LocalityQuantum:0 Cursor:1 Priorities:true Levels:0 ByLevel:[]}",
		"{WatermarkPerBackend:9 PercentageDeviationForBounds:200000 LowerBoundPerBackend:8 UpperBoundPerBackend:10 SlotsPerBackend:4 " +
			"Follow:false Stated:true Unbounded:false Tokens:{Watermark:90 Lower:80 Upper:100}}",
		"[{ReservedFloor:1 ReservedPerSlot:125000 CanPreempt:true}]", "false", "true", "false", "4", "12", "6", "1", "7ms",
		"120", "60", "{Tenants:map[vip:{Tokens:1000 Window:1m30s}] Roles:map[dean:{Tokens:99 Window:2s}] MostAccounts:4}", "map[dean:{MaxInFlight:8}]", "{Rate:2500000 Burst:7}",
	} {
		if text := fmt.Sprintf("%+v", got[i]); text != want {
			t.Errorf("got  %s\nwant %s", text, want)
		}
	}
	if got := fmt.Sprintf("%+v %+v", d.RecordingConfig(), d.SinkConfig()); got != "{MiB:12} {Kind:file Path:/d.json MaxBytes:99999}" {
		t.Error(got)
	}
	streams := d.ExtprocConfig()
	minPriority := streams.Tiers[0].MinPriority
	if minPriority == nil || *minPriority != 4 {
		t.Errorf("minPriority %v, want 4", minPriority)
	}
	streams.Tiers[0].MinPriority = nil
	want := "{Config:{FlowKey:[header:x-tenant] Levels:[] Models:[{Name:m Criticality:Sheddable Targets:[{Name:t Weight:3}]}] " +
		"Objectives:[{Name:o Priority:-2}] RoleSources:[header:x-role] DefaultRole:dean Roles:map[dean:{Class:one MaxClass:Critical}] TenantPolicies:map[*:{Role: Class: MaxClass:Critical} vip:{Role:dean Class: MaxClass:one}] " +
		"Criticality:{Header:x-class Metadata:ns/tier Default:one ObjectiveHeaders:[x-objective]} " +
		"PolicyClass:{Headers:[x-policy] PriorityHeader:x-p StrictPriorityHeader:x-s Hints:[osl] MaxPriority:4 MaxStrictPriority:3} Classes:[{Model: Name:c Family:f Bucket:b} {Model:m Name:d Family:g Bucket:e}] " +
		"Ring:{DefaultFamily:f Buckets:[{MinTokens:0 Name:b}]} ModelRings:map[m:{DefaultFamily:g Buckets:[{MinTokens:0 Name:e}]}] Tiers:[{Name:one MinPriority:<nil>}] " +
		"TrustedHeaders:{Model:x-model Cost:x-cost InputTokens:x-input Requirements:x-needs} RequestBody:always HashFlowKeys:false UnknownModels:shared Anonymous:shared PassOn:queue PassOnPaths:[/cheap] Explain:[ops] Affinity:{prefix flow cookie:s} " +
		"Limits:{MaxBodyBytes:1 MaxBodyBytesTotal:2 BodyTimeout:5s MaxHeaderBytes:3 MaxHeaders:98} DeadlineHeaders:[x-deadline] RoutesByModel:true RoutesByNeeds:false OtherTargets:[]} " +
		"OneFlow:true Quotas:true Sample:250000 LongestWait:6s Responses:{Preset:smg Metadata:true Status:map[shed:529] QueueState:true} "
	if text := fmt.Sprintf("%+v", streams); !strings.HasPrefix(text, want) {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	want = " Cost:tokens Tokens:{Weights:{Input:3000000 CachedInput:500000 Output:7000000} StockWeights:{Input:4000000 CachedInput:250000 Output:8000000} Quantile:750000 Window:8 Floor:9 " +
		"ColdOutput:10 ColdRate:11 ColdRatio:2500000} Usage:body IncludeUsage:true}"
	if text := fmt.Sprintf("%+v", streams); !strings.HasSuffix(text, want) {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	want = "{Policy:mindrouter Points:{Loaded:1 Utilisation:2 UtilisationUnknown:3 Queue:4 Throughput:6 Latency:7 LatencyUnknown:8 Priority:9 QueueSlope:500000 Alpha:110000 Scale:10s} Filters:[ready] TieBreak:random Fallbacks:7 PrefillThreshold:8 PrefillTokens:9}"
	if text := fmt.Sprintf("%+v", d.SchedulingConfig()); text != want {
		t.Errorf("got %s", text)
	}
}

// smg 9.4: SMG withholds reservations for unusable classes from the others. Weir does not.
func TestDefectReservationsThatNobodyMayUse(t *testing.T) {
	reserved := func(text string) string {
		d, err := Load(source("profile: smg-priority\n" + text))
		if err != nil {
			t.Fatal(err)
		}
		var floors []int
		for _, tier := range d.FlowcontrolConfig().Tiers {
			floors = append(floors, tier.ReservedFloor+int(tier.ReservedPerSlot))
		}
		return fmt.Sprintf("%+v", floors)
	}
	for text, want := range map[string]string{
		"": "[0 0 100000 0]",
		"tenantPolicies: { a: { maxClass: bulk } }":        "[0 0 100000 0]",
		"tenantPolicies: { a: { maxClass: interactive } }": "[0 250128 100000 0]",
		"tenantPolicies: { a: { maxClass: system } }":      "[32 250128 100000 0]",
		"criticality: { maxClass: Critical }":              "[32 250128 100000 0]",
		"criticality: { maxClass: \"\" }":                  "[32 250128 100000 0]",
		"criticality: { maxClass: bulk }":                  "[0 0 0 0]",
	} {
		if got := reserved(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// Each word is the value of that name in its package.
func TestWords(t *testing.T) {
	read := func(d *Document) map[string]any {
		cfg := d.FlowcontrolConfig()
		return map[string]any{
			"fairRequestQueue.capacityMode": cfg.Queue.CapacityMode, "fairRequestQueue.tierMode": cfg.Queue.TierMode,
			"fairRequestQueue.cursor": cfg.Queue.Cursor, "fairRequestQueue.topTier": cfg.Queue.GuaranteedTop,
			"requestQueueController.victimOrder": cfg.VictimOrder, "flows.discipline": cfg.Queue.Discipline,
			"flows.tieBreak": cfg.Queue.TieBreak, "flows.order": cfg.Queue.Order,
		}
	}
	want := map[string]map[string]any{
		"fairRequestQueue.capacityMode":      {"reserved": fairqueue.Reserved, "shared": fairqueue.Shared, "reject": fairqueue.Reject},
		"fairRequestQueue.tierMode":          {"strict": fairqueue.Strict, "weighted": fairqueue.Weighted},
		"fairRequestQueue.cursor":            {"stay": fairqueue.Stay, "advance": fairqueue.Advance},
		"fairRequestQueue.topTier":           {"guaranteed": true, "fair": false},
		"requestQueueController.victimOrder": {"newest": dispatch.NewestFirst, "least-cost": dispatch.LeastCostFirst},
		"flows.discipline":                   {"wfq": fairqueue.WFQ, "vtc": fairqueue.VTC, "fairshare": fairqueue.FairShare, "none": fairqueue.OneFlow},
		"flows.tieBreak":                     {"arrival": fairqueue.ByArrival, "newcomer": fairqueue.NewcomerFirst},
		"flows.order":                        {"fcfs": fairqueue.FCFS, "wspt": fairqueue.WSPT, "edf": fairqueue.EDF, "locality": fairqueue.Locality},
	}
	for key, words := range want {
		for word, value := range words {
			d, err := Load(source(withValue(key, word)))
			if got := read(&d)[key]; err != nil || got != value {
				t.Errorf("%s: %s is %v, %v", key, word, got, err)
			}
		}
	}
	// A class has its own order, or that of its flows.
	d, err := Load(source("flows: { order: edf }\nclasses: [ { name: a, quantum: 1 }, { name: b, quantum: 1, order: wspt } ]"))
	if classes := d.FlowcontrolConfig().Queue.Classes; err != nil || classes[0].Order != fairqueue.EDF || classes[1].Order != fairqueue.WSPT {
		t.Errorf("%+v, %v", classes, err)
	}
}

// Levels are converted to those of each package. One level is the same as the keys of flows.
func TestConvertLevels(t *testing.T) {
	load := func(flows string) Document {
		t.Helper()
		d, err := Load(Source{Text: []byte("apiVersion: weir.dev/v1alpha1\nkind: EndpointPickerConfig\nflows: " + flows)})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	d := load(`{ levels: [ { key: ["header:x-org"], weights: { a: 2 }, capacities: { b: 7 }, maxInFlight: 5 },
  { key: ["header:x-user"], weights: { nightly: 0.5 }, maxQueued: 20, capacities: { batch: 30 }, maxInFlight: 8, maxTokensInFlight: 900 } ] }`)
	queue, streams := d.FlowcontrolConfig(), d.ExtprocConfig()
	for _, c := range []struct{ got, want any }{
		{queue.Queue.Levels, 2},
		{queue.Queue.ByLevel, "[{Weights:map[a:2000000] Capacity:0 Capacities:map[b:7]} {Weights:map[nightly:500000] Capacity:20 Capacities:map[batch:30]}]"},
		{queue.Levels, "[{MaxInFlight:5 MaxTokensInFlight:0} {MaxInFlight:8 MaxTokensInFlight:900}]"},
		{streams.Levels, "[{Key:[header:x-org]} {Key:[header:x-user]}]"},
		{streams.FlowKey, "[]"},
	} {
		if got, want := fmt.Sprintf("%+v", c.got), fmt.Sprint(c.want); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	if !d.Flows.identifies() {
		t.Error("a tenant in the first level is no identity")
	}
	one := load(`{ levels: [ { key: ["header:x-org"] } ] }`)
	if queue := one.FlowcontrolConfig(); queue.Queue.Levels != 1 {
		t.Errorf("%d levels", queue.Queue.Levels)
	}
}
