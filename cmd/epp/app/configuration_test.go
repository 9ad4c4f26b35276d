package app

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/config"
	"github.com/weir-epp/weir/pkg/extproc"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// An invalid configuration ends the start with every problem.
func TestInvalidConfigFails(t *testing.T) {
	o := testOptions()
	o.ConfigFile = filepath.Join(t.TempDir(), "weir.yaml")
	if _, err := New(o); problemsIn(err, "--config-file: open ", "no such file") != nil {
		t.Error(err)
	}
	text := "fairRequestQueue: { totalCapcity: 5, queueTTL: 0s }\nflows: { weights: { a: 0 } }\n"
	if err := os.WriteFile(o.ConfigFile, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := New(o)
	if err := problemsIn(err, "3 problems", "fairRequestQueue.totalCapcity: unknown field (did you mean totalCapacity?) (line 1)",
		"fairRequestQueue.queueTTL: 0s: must be", "flows.weights.a: 0: must be"); err != nil {
		t.Error(err)
	}
}

// A flag that is wrong is not blamed on the profile, nor on the file.
func TestInvalidFlag(t *testing.T) {
	for configText, want := range map[string]string{
		"": "epp: invalid flags:\n" +
			"fairRequestQueue.queueTTL: 2h (from a flag): must be above 0s and at most 1h\n",
		"fairRequestQueue: { queueTTL: 5s }": "epp: --config-text: invalid: " +
			"fairRequestQueue.queueTTL: 2h (from a flag): must be above 0s and at most 1h\n",
	} {
		var stdout, stderr bytes.Buffer
		code := Main([]string{"--endpoints=127.0.0.1:1", "--queue-ttl=2h", "--config-text=" + configText}, &stdout, &stderr)
		if code != 1 || stderr.String() != want {
			t.Errorf("exit code %d, %s", code, stderr.String())
		}
	}
	for argument, want := range map[string]string{"--queue-ttl=2m": "the profile and the flags", "--v=1": "the profile"} {
		f := newFlags()
		if err := f.parse([]string{"--endpoints=127.0.0.1:1", argument}); err != nil || f.configName() != want {
			t.Errorf("%s: %q, %v", argument, f.configName(), err)
		}
	}
}

// --on-invalid-config=defaults starts all the same, says so in the log, and shows it in the metrics.
func TestInvalidConfigDefaults(t *testing.T) {
	log := &syncBuffer{}
	o := testOptions()
	o.OnInvalidConfig = InvalidDefaults
	o.ConfigText = "fairRequestQueue: { totalCapacity: -5, queueTTL: 7s }"
	o.Override = func(d *config.Document) {
		d.RequestQueueController.NumPoppers, d.RequestQueueController.MinDrain = 3, 0
	}
	o.Log, _ = newLogger(log, encoderJSON, 0)
	r := start(t, o)
	if _, metrics := r.get("/metrics"); !strings.Contains(metrics, "weir_config_valid 0") {
		t.Error("weir_config_valid is not 0")
	}
	want := config.Default()
	want.RequestQueueController.NumPoppers, want.RequestQueueController.MinDrain = 3, 0
	if !reflect.DeepEqual(r.Config(), want) {
		t.Errorf("in use: %+v\nwant %+v", r.Config(), want)
	}
	if got := log.String(); !strings.Contains(got, "THE CONFIGURATION IS INVALID") || !strings.Contains(got, "totalCapacity: -5") {
		t.Errorf("log:\n%s", got)
	}
	// When the flags are what is wrong, they are left out as well.
	o.Override = func(d *config.Document) { d.RequestQueueController.NumPoppers = 0 }
	o.DrainTimeout = 0 // with minDrain's default it would take 5 s to stop
	if r := start(t, o); !reflect.DeepEqual(r.Config(), config.Default()) {
		t.Errorf("in use: %+v", r.Config())
	}
}

// The advice is given until all three bounds are set, and says what the lower bound is.
func TestWatermarkAdvice(t *testing.T) {
	const farBelow = "the lower bound, which is far below what an engine batches: to keep"
	for controller, want := range map[string]string{
		"":                                  farBelow,
		"percentageDeviationForBounds: 0.2": farBelow,
		"watermarkPerBackend: 64":           "the lower bound, a derived 57.6 of the watermark's 64: to keep",
		"watermarkPerBackend: 64, percentageDeviationForBounds: 0.25":                 "the lower bound, a derived 48 of the watermark's 64: to keep",
		"watermarkPerBackend: 64, lowerBoundPerBackend: 40":                           "the lower bound, 40 of the watermark's 64: to keep",
		"lowerBoundPerBackend: 2":                                                     "the lower bound, 2 of the watermark's 2: to keep",
		"watermarkPerBackend: 64, lowerBoundPerBackend: 64, upperBoundPerBackend: 64": "",
		"slotsPerBackend: 64":                                                         "",
		"enabled: false":                                                              "",
	} {
		log := &syncBuffer{}
		logger, _ := newLogger(log, encoderConsole, 0)
		d, err := config.Load(config.Source{Text: []byte("requestQueueController: { " + controller + " }")})
		if err != nil {
			t.Fatal(err)
		}
		advise(&d, false, logger)
		got := log.String()
		advised := strings.Contains(got, "set all three of watermarkPerBackend")
		if advised != (want != "") || !strings.Contains(got, want) {
			t.Errorf("%q: %q is not in %q", controller, want, got)
		}
	}
}

// Every profile becomes configurations that the packages accept, also where this build does not yet act on all of it.
func TestProfilesConvert(t *testing.T) {
	for _, name := range config.Profiles() {
		d, err := config.Profile(name)
		if err != nil {
			t.Fatal(err)
		}
		queue, streams := flowcontrolConfig(&d), extprocConfig(&d)
		for what, err := range map[string]error{
			"flowcontrol": queue.Validate(), "extproc": streams.Validate(), "scheduling": schedulingConfig(&d).Validate(),
		} {
			if err != nil {
				t.Errorf("%s: %s: %v", name, what, err)
			}
		}
	}
}

// The wfq profile is what the packages themselves take for default.
func TestDefaultsAgree(t *testing.T) {
	d := config.Default()
	got, want := flowcontrolConfig(&d), flowcontrol.DefaultConfig()
	want.Queue.Tiers, want.Tiers = got.Queue.Tiers, got.Tiers // theirs has one tier
	want.Queue.GuaranteedTop = true                           // only in shared mode
	want.Queue.Weights, want.Queue.FlowCapacities = map[string]fairqueue.Weight{}, map[string]int{}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("flowcontrol: %+v\nwant %+v", got, want)
	}
	streams, own := extprocConfig(&d), extproc.DefaultConfig()
	own.TenantPolicies, own.Responses.Status = map[string]extproc.TenantPolicy{}, map[string]int{}
	if !reflect.DeepEqual(streams, own) {
		t.Errorf("extproc: %+v\nwant %+v", streams, own)
	}
	if got, want := schedulingConfig(&d), scheduling.DefaultConfig(); !reflect.DeepEqual(got, want) {
		t.Errorf("scheduling: %+v\nwant %+v", got, want)
	}
}

// Each field has its place: a document with everything set differently arrives whole.
func TestConvertEverything(t *testing.T) {
	d, err := config.Decode([]byte(`
fairRequestQueue: { totalCapacity: 50, flowCapacity: 5, queueTTL: 3s, capacityMode: shared, tierMode: weighted, promotionBudget: 0.25, topTier: fair }
requestQueueController: { enabled: false, enqueueAll: true, watermarkPerBackend: 9, percentageDeviationForBounds: 0.2, lowerBoundPerBackend: 8,
  upperBoundPerBackend: 10, slotsPerBackend: 4, numPoppers: 2, popperWaitBase: 1s, popperWaitJitterMax: 2s, expiryCleanupInterval: 4s, releaseSpacing: 7ms,
  holdWhenEmpty: false, deadlineHeaders: [x-deadline], maxInFlightPerFlow: 12, maxInFlightPerFlowPerBackend: 6, victimOrder: least-cost }
flows: { key: ["header:x-tenant"], weights: { a: 2.5 }, capacities: { b: 7 }, discipline: none, tieBreak: newcomer, unknownModels: shared }
tiers: [ { name: one, minPriority: 4, weight: 3, queueSize: 0, queueTimeout: 6s, starvationThreshold: 5s, canPreempt: true, reservedFloor: 1, reservedPerSlot: 0.125 } ]
models: [ { name: m, criticality: Sheddable, targets: [ { name: t, weight: 3 } ] } ]
objectives: [ { name: o, priority: -2 } ]
tenantPolicies: { vip: { maxClass: one } }
passOnPaths: [/cheap]
responses: { preset: smg, status: { shed: 529 }, metadata: true, queueState: true }
criticality: { header: x-class, metadata: ns/tier, default: one, maxClass: Critical, objectiveHeaders: [x-objective] }
trustedHeaders: { model: x-model, cost: x-cost }
requestBody: never
passOn: queue
limits: { maxBodyBytes: 1, maxBodyBytesTotal: 2, maxHeaderBytes: 3, bodyTimeout: 5s, maxFlows: 4 }
scheduling: { filters: [ready], scorers: [ { name: least-stock, weight: 5 } ], tieBreak: random, fallbacks: 7 }
`))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Validate(); err == nil || !strings.Contains(err.Error(), "2 problems") { // caps of flows, and no flows
		t.Fatal(err)
	}
	queue := flowcontrolConfig(&d)
	got := []any{
		queue.Queue, queue.Stock, queue.Tiers, queue.Enabled, queue.EnqueueAll, queue.HoldWhenEmpty, queue.MaxLabels,
		queue.MaxInFlightPerFlow, queue.MaxInFlightPerFlowPerBackend, queue.VictimOrder, queue.ReleaseSpacing,
	}
	for i, want := range []string{
		"{TotalCapacity:50 FlowCapacity:5 FlowCapacities:map[b:7] CapacityMode:1 QueueTTL:3s Weights:map[a:2500000] Discipline:1 " +
			"TieBreak:1 TierMode:1 PromotionBudget:250000 GuaranteedTop:false Tiers:[{Name:one Weight:3000000 QueueSize:0 QueueTimeout:6s " +
			"StarvationThreshold:5s}] Classes:[] Order:0 Levels:0}",
		"{WatermarkPerBackend:9 PercentageDeviationForBounds:200000 LowerBoundPerBackend:8 UpperBoundPerBackend:10 SlotsPerBackend:4 " +
			"Cost:{Watermark:0 Lower:0 Upper:0}}",
		"[{ReservedFloor:1 ReservedPerSlot:125000 CanPreempt:true}]", "false", "true", "false", "4", "12", "6", "1", "7ms",
	} {
		if text := sprint(got[i]); text != want {
			t.Errorf("got  %s\nwant %s", text, want)
		}
	}
	streams := extprocConfig(&d)
	minPriority := streams.Tiers[0].MinPriority
	if minPriority == nil || *minPriority != 4 {
		t.Errorf("minPriority %v, want 4", minPriority)
	}
	streams.Tiers[0].MinPriority = nil
	want := "{FlowKey:[header:x-tenant] Models:[{Name:m Criticality:Sheddable Targets:[{Name:t Weight:3}]}] " +
		"Objectives:[{Name:o Priority:-2}] TenantPolicies:map[*:{MaxClass:Critical} vip:{MaxClass:one}] " +
		"Criticality:{Header:x-class Metadata:ns/tier Default:one ObjectiveHeaders:[x-objective]} Tiers:[{Name:one MinPriority:<nil>}] " +
		"TrustedHeaders:{Model:x-model Cost:x-cost} RequestBody:never OneFlow:true HashFlowKeys:false UnknownModels:shared PassOn:queue PassOnPaths:[/cheap] " +
		"Limits:{MaxBodyBytes:1 MaxBodyBytesTotal:2 BodyTimeout:5s MaxHeaderBytes:3} Responses:{Preset:smg Metadata:true Status:map[shed:529] QueueState:true} " +
		"DeadlineHeaders:[x-deadline]"
	if text := sprint(streams); !strings.HasPrefix(text, want) {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	want = "{Filters:[ready] Scorers:[{Name:least-stock Weight:5}] Picker:max-score TieBreak:random Fallbacks:7}"
	if text := sprint(schedulingConfig(&d)); text != want {
		t.Errorf("got %s", text)
	}
}

// The reasons that a configuration may name are flowcontrol's outcomes, all but the one that is no rejection.
func TestReasonsAreOutcomes(t *testing.T) {
	var want []string
	for o := range flowcontrol.Outcome(flowcontrol.NumOutcomes) {
		if o != flowcontrol.OutcomeDispatched {
			want = append(want, o.String())
		}
	}
	got := config.Reasons()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("config knows %v, flowcontrol %v", got, want)
	}
}

// smg 9.4: what is reserved for classes that nobody may use is held back from the others. Here it is not.
func TestDefectReservationsThatNobodyMayUse(t *testing.T) {
	reserved := func(text string) string {
		d, err := config.Load(config.Source{Text: []byte("profile: smg-priority\n" + text)})
		if err != nil {
			t.Fatal(err)
		}
		var floors []int
		for _, tier := range flowcontrolConfig(&d).Tiers {
			floors = append(floors, tier.ReservedFloor+int(tier.ReservedPerSlot))
		}
		return sprint(floors)
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

// A pool that is smaller than what is reserved in it is reported, with the golden numbers of SMG's defaults.
func TestClampedReservations(t *testing.T) {
	d, err := config.Load(config.Source{Text: []byte("profile: smg-priority\ncriticality: { maxClass: system }")})
	if err != nil {
		t.Fatal(err)
	}
	backends := func(slots int) []stock.Backend { return []stock.Backend{{Slots: slots}} }
	for slots, want := range map[int]string{
		4:   "system 4 of 32, interactive 0 of 128, default 0 of 1; capacity 4",
		80:  "system 32 of 32, interactive 48 of 128, default 0 of 8; capacity 80",
		256: "",
	} {
		if got := clampedReservations(flowcontrolConfig(&d), backends(slots)); got != want {
			t.Errorf("%d slots: %q, want %q", slots, got, want)
		}
	}
	if got := clampedReservations(flowcontrolConfig(&d), nil); got != "" {
		t.Errorf("no backend: %q", got)
	}
}
