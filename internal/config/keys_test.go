package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weir-epp/weir/pkg/extproc"
	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/invalid"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// Every field of the configurations of the packages has a key, except those that no document sets; and every such key
// is one of the document.
func TestEveryFieldHasItsKey(t *testing.T) {
	schema := keysOfSchema(reflect.TypeFor[Document](), "")
	for name, part := range map[string]struct {
		config  reflect.Type
		keys    map[string]string
		without []string
	}{
		"flowcontrol": {
			reflect.TypeFor[flowcontrol.Config](), controllerKeys, []string{"Stock.Tokens.Watermark", "Stock.Tokens.Lower", "Stock.Tokens.Upper", "Queue.Levels", "Queue.Priorities"},
		},
		"extproc": {
			reflect.TypeFor[extproc.Config](), streamKeys, []string{"HashFlowKeys", "RoutesByModel", "LongestWait", "ClearRouteCache", "OtherTargets[].Name", "OtherTargets[].Weight"},
		},
		"scheduling": {reflect.TypeFor[scheduling.Config](), schedulingKeys, nil},
	} {
		fields := fieldsOf(part.config, nil)
		for _, field := range fields {
			if part.keys[field] == "" && !slices.Contains(part.without, field) {
				t.Errorf("%s: %s has no key", name, field)
			}
		}
		for field, key := range part.keys {
			if !slices.Contains(fields, field) && !slices.Contains(fields, field+"[]") && !slices.ContainsFunc(fields, func(f string) bool {
				return strings.HasPrefix(f, field+"[].")
			}) {
				t.Errorf("%s: there is no field %s", name, field)
			}
			if !slices.ContainsFunc(schema, func(k string) bool { return k == key || strings.HasPrefix(k, key+"[]") }) {
				t.Errorf("%s: %s: there is no key %s", name, field, key)
			}
		}
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

// Keys of maps may be anything, even something that looks like a path. Other keys are named without the section if both
// are in the same one.
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
	if got := problemsOf(t, d.inKeys(controllerKeys, ps.Err())); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// A given value is never mistaken for the "not given" of a package.
func TestGiven(t *testing.T) {
	value := func(n int64) *int64 { return &n }
	for _, test := range []struct {
		value       *int64
		unset, want int64
	}{
		{nil, -1, -1},
		{value(-1), -1, -2},
		{value(-2), -1, -2},
		{value(0), -1, 0},
		{nil, 0, 0},
		{value(0), 0, -1},
		{value(-1), 0, -1},
		{value(1), 0, 1},
	} {
		if got := given(test.value, test.unset); got != test.want {
			t.Errorf("%v, unset %d: %d", test.value, test.unset, got)
		}
	}
}
