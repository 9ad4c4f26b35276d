package config

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// badKey is one bad value of a key.
type badKey struct {
	// Key is the key, with [] for the index of a list or the key of a map.
	Key string `yaml:"key"`
	// Bad is a file with the value, and Says the only problem in it.
	Bad  string `yaml:"bad"`
	Says string `yaml:"says"`
	// Right is a file with the nearest allowed value, if there is one.
	Right string `yaml:"right,omitempty"`
}

func badKeys(t *testing.T, file string) (bad []badKey) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &bad); err != nil || len(bad) < 80 {
		t.Fatalf("%s: %d values, %v", file, len(bad), err)
	}
	return bad
}

// anyValue lists the keys that accept every value of their type.
var anyValue = []string{
	"requestQueueController.enabled", "requestQueueController.enqueueAll", "requestQueueController.holdWhenEmpty", "requestQueueController.circuits", "requestQueueController.statedSlots",
	"assumeFullDuplex", "replaceTiers", "tiers[].canPreempt", "objectives[].priority", "responses.metadata", "responses.queueState",
	"scheduling.affinitySeed",
}

// Every key of the document has a bad value, here or in ranges.yaml. The message begins with the key, and has the value
// and the allowed ones. The nearest allowed value is accepted.
func TestEveryKeyHasABadValue(t *testing.T) {
	missing := map[string]bool{}
	for _, key := range keysWithValues() {
		missing[key] = !slices.Contains(anyValue, key)
	}
	for _, bad := range badKeys(t, "ranges.yaml") {
		missing[bad.Key] = false
	}
	for _, bad := range badKeys(t, "badkeys.yaml") {
		if _, known := missing[bad.Key]; !known && bad.Key != "tiers" && bad.Key != "tenantPolicies" && bad.Key != "flows.levels" {
			t.Errorf("%s is no key that has a value", bad.Key)
		}
		missing[bad.Key] = false
		_, err := Load(source(bad.Bad))
		if got := problemsOf(t, err); len(got) == 0 || got[0] != bad.Says+" (line 1)" && got[0] != bad.Says {
			t.Errorf("%s\ngot  %q\nwant %q", bad.Bad, got, bad.Says)
		} else if len(got) > 1 {
			t.Errorf("%s: also %q", bad.Bad, got[1:])
		}
		if bad.Right == "" {
			continue
		}
		if _, err := Load(source(bad.Right)); err != nil {
			t.Errorf("%s: %v", bad.Right, err)
		}
	}
	for key, without := range missing {
		if without {
			t.Errorf("testdata/badkeys.yaml has no bad value of %s", key)
		}
	}
}

// A value of the wrong type is reported with its key, for every key.
func TestEveryKeyHasAType(t *testing.T) {
	for _, key := range keysWithValues() {
		_, err := Load(source(withValue(key, "{ [a]: b }")))
		var paths []string
		for _, line := range problemsOf(t, err) {
			path, message, _ := strings.Cut(line, ": ")
			if strings.HasPrefix(message, "a mapping: must be ") || strings.Contains(message, "a list as a key") {
				paths = append(paths, regexp.MustCompile(`\[\d\]|\.any`).ReplaceAllString(path, "[]"))
			}
		}
		if !slices.Contains(paths, key) {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// A file at the start and a change of it are checked by the same rules.
func TestReloadHasTheSameRules(t *testing.T) {
	for _, bad := range slices.Concat(badKeys(t, "badkeys.yaml"), badKeys(t, "ranges.yaml")) {
		_, atStart := Load(source(bad.Bad))
		_, later := Reload(source(bad.Bad), Default())
		got := slices.DeleteFunc(problemsOf(t, later), func(line string) bool { return strings.Contains(line, "cannot change at run time") })
		want := problemsOf(t, atStart)
		if len(got) < len(want) { // a key has one problem, here that it cannot change
			want = slices.DeleteFunc(want, func(line string) bool { return !slices.Contains(got, line) })
		}
		if !slices.Equal(got, want) || later == nil {
			t.Errorf("%s\nat the start %q\nlater %q", bad.Bad, want, got)
		}
	}
}

// keysWithValues returns the keys that have values. For a key with a list of words or a map of values it adds one for
// the elements, with [].
func keysWithValues() (paths []string) {
	for _, k := range keys() {
		words := k.Type == reflect.TypeFor[[]string]()
		if k.Type.Kind() != reflect.Struct && k.Type.Kind() != reflect.Map && !isList(k.Type) && k.path != "passOnPaths" {
			paths = append(paths, k.path) // there may be any number of passOnPaths
		}
		if words || k.Type.Kind() == reflect.Map && !isList(k.Type) {
			paths = append(paths, k.path+"[]")
		}
	}
	return paths
}

// withValue returns a file with one key, in lists of one element and under the map key "any".
func withValue(key, value string) string {
	parts := strings.Split(key, ".")
	text := value
	for _, part := range slices.Backward(parts) {
		name, element := strings.CutSuffix(part, "[]")
		if element && slices.Contains([]string{"weights", "capacities", "tenantPolicies", "roles", "status", "byModel"}, name) {
			text = "{ any: " + text + " }"
		} else if element {
			text = "[ " + text + " ]"
		}
		text = "{ " + name + ": " + text + " }"
	}
	return text
}
