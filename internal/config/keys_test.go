package config

import (
	"go/ast"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weir-epp/weir/pkg/decision/sink"
	"github.com/weir-epp/weir/pkg/extproc"
	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/invalid"
	"github.com/weir-epp/weir/pkg/recording"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// A key sets every field of the packages' configurations, except for the fields that the wiring or other keys decide.
// Every key sets an existing field, except for the keys that only this package and the wiring read.
func TestEveryFieldHasItsKey(t *testing.T) {
	for part, of := range map[string]struct {
		config  reflect.Type
		without []string
	}{
		controllerPart: {reflect.TypeFor[flowcontrol.Config](), []string{"Queue.Levels", "Queue.Priorities", "Stock.Unbounded", "Stock.Follow"}},
		streamsPart: {reflect.TypeFor[extproc.Config](), []string{
			"OneFlow", "Quotas", "HashFlowKeys", "RoutesByModel", "RoutesByNeeds", "LongestWait", "OtherTargets[].Name", "OtherTargets[].Weight",
		}},
		schedulingPart: {reflect.TypeFor[scheduling.Config](), nil},
		recordingPart:  {reflect.TypeFor[recording.Config](), nil},
		sinkPart:       {reflect.TypeFor[sink.Config](), nil},
	} {
		var set []string
		for k := range tagged("sets") {
			set = append(set, k.sets(part)...)
		}
		fields := fieldsOf(of.config, nil)
		for _, field := range fields {
			if !slices.Contains(set, strings.TrimSuffix(field, "[]")) && !slices.Contains(of.without, field) {
				t.Errorf("%s: no key sets %s", part, field)
			}
		}
		for _, field := range set {
			if !slices.ContainsFunc(fields, func(f string) bool { return f == field || strings.HasPrefix(f, field+"[]") }) {
				t.Errorf("%s: there is no field %s", part, field)
			}
		}
	}
	read := []string{"apiVersion", "kind", "profile", "requestQueueController.drainWindow", "requestQueueController.minDrain", "replaceTiers", "criticality.maxClass"}
	for _, k := range keys() {
		if _, sets := k.Tag.Lookup("sets"); sets == slices.Contains(read, k.path) && k.Type.Kind() != reflect.Struct {
			t.Errorf("%s: sets a field: %v", k.path, sets)
		}
	}
}

// A key stands in one place: no other line of the package names its field, except for the rules that relate it to other
// keys.
func TestAKeyIsOnePlace(t *testing.T) {
	named := map[string]bool{}
	for _, file := range goFiles(t) {
		ast.Inspect(file, func(n ast.Node) bool {
			if selector, ok := n.(*ast.SelectorExpr); ok {
				named[selector.Sel.Name] = true
			}
			return true
		})
	}
	const want = "APIVersion Affinity AffinitySession AssumeFullDuplex Bucket BusyFraction BusyRatio BusyTokens ByModel " +
		"CachedTokenLimitPerBackend CanPreempt Capacities Class Classes Cost Criticality DeadlineHeaders " +
		"DefaultFamily DefaultRole Discipline DrainWindow Enabled EnqueueAll Family FlowCapacity Headers " +
		"Hints Key Kind Levels Loaded LocalityQuantum LowerBoundPerBackend MaxBodyBytesTotal MaxClass " +
		"MaxInFlightPerFlow MinDrain MinPriority Model Models Name ObjectiveHeaders Objectives Order PassOn " +
		"PassOnPaths PercentageDeviationForBounds Policy PriorityHeader Profile Quantum QueueLimitPerBackend " +
		"QueueSize QueueTTL QueueTimeout Rate RawTokenLimitPerBackend ReplaceTiers RequestBody ReservedFloor " +
		"ReservedPerSlot Role Roles ShortQueue SlotsPerBackend StarvationThreshold StrictPriorityHeader " +
		"Targets TenantPolicies Threshold Throughput TierMode Tiers Tokens TotalCapacity UncachedBuckets " +
		"UnknownModels UpperBoundPerBackend Utilisation WatermarkPerBackend WatermarkTokensPerBackend Weight " +
		"Weights Window"
	elsewhere := []string{}
	for _, k := range keys() {
		if named[k.Name] && k.Type.Kind() != reflect.Struct && !slices.Contains(elsewhere, k.Name) {
			elsewhere = append(elsewhere, k.Name)
		}
	}
	slices.Sort(elsewhere)
	if got := strings.Join(elsewhere, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// fieldsOf returns the patterns of the fields that have values.
func fieldsOf(config reflect.Type, at invalid.Path) []string {
	switch config.Kind() {
	case reflect.Struct:
		var fields []string
		for field := range config.Fields() {
			if field.Anonymous { // its fields are the outer's
				fields = append(fields, fieldsOf(field.Type, at)...)
				continue
			}
			fields = append(fields, fieldsOf(field.Type, at.At(field.Name))...)
		}
		return fields
	case reflect.Slice:
		return fieldsOf(config.Elem(), at.At(0))
	case reflect.Map:
		return fieldsOf(config.Elem(), at.At(invalid.Key("any")))
	default:
		return []string{at.Pattern()}
	}
}

// Keys of maps may be anything, even a text like a path. Other keys are named without the section if both are in the
// same one.
func TestInKeys(t *testing.T) {
	d := Default()
	d.Flows.Capacities = map[string]int64{"a].b[0": 5}
	var ps invalid.Problems
	at := invalid.At("Queue", "FlowCapacities", invalid.Key("a].b[0"))
	ps.Add(at, 7, "must be at most %s, not above %s, as %s is", invalid.At("Queue", "TotalCapacity"), at, invalid.At("Queue", "Tiers"))
	ps.Add(invalid.At("Queue", "FlowCapacity"), 7, "must be at most %s", invalid.At("Queue", "TotalCapacity"))
	want := []string{
		"flows.capacities.a].b[0: 5: must be at most fairRequestQueue.totalCapacity, not above a].b[0, as tiers is",
		"fairRequestQueue.flowCapacity: 100: must be at most totalCapacity",
	}
	if got := problemsOf(t, d.inKeys(controllerPart, ps.Err())); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// A given value is never mistaken for a package's "not given".
func TestGiven(t *testing.T) {
	value := func(n int64) *int64 { return &n }
	for _, test := range []struct {
		value *int64
		unset string
		want  int64
	}{
		{nil, "-1", -1},
		{value(-1), "-1", -2},
		{value(-2), "-1", -2},
		{value(0), "-1", 0},
		{nil, "0", 0},
		{value(0), "0", -1},
		{value(-1), "0", -1},
		{value(1), "0", 1},
	} {
		if got := given(reflect.ValueOf(test.value), test.unset); got != test.want {
			t.Errorf("%v, unset %s: %d", test.value, test.unset, got)
		}
	}
}
