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
	// Bad is a file with the value, Says the only problem in it.
	Bad  string `yaml:"bad"`
	Says string `yaml:"says"`
	// Right is a file with the nearest value that is allowed, if there is one.
	Right string `yaml:"right"`
}

func badKeys(t *testing.T) (bad []badKey) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "badkeys.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &bad); err != nil {
		t.Fatal(err)
	}
	return bad
}

// anyValue lists the keys that accept every value of their type.
var anyValue = []string{
	"requestQueueController.enabled", "requestQueueController.enqueueAll", "requestQueueController.holdWhenEmpty",
	"replaceTiers", "tiers[].canPreempt", "objectives[].priority", "responses.metadata", "responses.queueState",
}

// Every key of the document has a bad value, whose message begins with the key, shows the value and says what is
// allowed. The nearest allowed value is indeed accepted.
func TestEveryKeyHasABadValue(t *testing.T) {
	missing := map[string]bool{}
	for _, key := range keysOfSchema(reflect.TypeFor[Document](), "") {
		missing[key] = !slices.Contains(anyValue, key)
	}
	for _, bad := range badKeys(t) {
		if _, known := missing[bad.Key]; !known && bad.Key != "tiers" && bad.Key != "tenantPolicies" {
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
	for _, key := range keysOfSchema(reflect.TypeFor[Document](), "") {
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
	for _, bad := range badKeys(t) {
		_, atStart := Load(source(bad.Bad))
		_, later := Reload(source(bad.Bad), Default())
		got := slices.DeleteFunc(problemsOf(t, later), func(line string) bool { return strings.Contains(line, "cannot change at run time") })
		want := problemsOf(t, atStart)
		if len(got) < len(want) { // of a key there is one problem, here that it cannot change
			want = slices.DeleteFunc(want, func(line string) bool { return !slices.Contains(got, line) })
		}
		if !slices.Equal(got, want) || later == nil {
			t.Errorf("%s\nat the start %q\nlater %q", bad.Bad, want, got)
		}
	}
}

// keysOfSchema returns the keys that have values. Lists and maps of structs are represented by the keys of their
// elements.
func keysOfSchema(schema reflect.Type, key string) []string {
	switch kind := schema.Kind(); {
	case kind == reflect.Pointer:
		return keysOfSchema(schema.Elem(), key)
	case kind == reflect.Struct:
		var keys []string
		for i, name := range fieldNames(schema) {
			keys = append(keys, keysOfSchema(schema.Field(i).Type, join(key, name))...)
		}
		return keys
	case kind == reflect.Slice && schema.Elem().Kind() == reflect.String && strings.HasSuffix(key, "passOnPaths"):
		return []string{key + "[]"} // as many as you like
	case kind == reflect.Slice && schema.Elem().Kind() == reflect.String:
		return []string{key, key + "[]"}
	case kind == reflect.Slice || kind == reflect.Map:
		return keysOfSchema(schema.Elem(), key+"[]")
	default:
		return []string{key}
	}
}

// withValue returns a file with one key, in lists of one element and under the map key "any".
func withValue(key, value string) string {
	parts := strings.Split(key, ".")
	text := value
	for _, part := range slices.Backward(parts) {
		name, element := strings.CutSuffix(part, "[]")
		if element && slices.Contains([]string{"weights", "capacities", "tenantPolicies", "status"}, name) {
			text = "{ any: " + text + " }"
		} else if element {
			text = "[ " + text + " ]"
		}
		text = "{ " + name + ": " + text + " }"
	}
	return text
}
