package config

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// reasons are why the defaults are what they are, and the values of the profile recommended, by key.
type reasons struct {
	Defaults, Recommended map[string]string
}

func readReasons(t *testing.T) reasons {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "reasons.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var r reasons
	if err := yaml.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// required lists the keys of list elements that have no default: whoever lists an element has to say them.
var required = []string{
	"tiers[].name", "classes[].name", "classes[].quantum", "models[].name", "models[].targets[].name", "objectives[].name",
	"scheduling.scorers[].name",
}

// keysWithDefault returns every key below a type that has a default, and what it is: of a whole list, and of the fields
// of its elements.
func keysWithDefault(v reflect.Value, prefix string) (keys, values []string) {
	names := fieldNames(v.Type())
	for i, name := range names {
		key, field := prefix+name, v.Field(i)
		if slices.Contains(required, key) {
			continue
		}
		if field.Kind() == reflect.Struct {
			more, theirs := keysWithDefault(field, key+".")
			keys, values = append(keys, more...), append(values, theirs...)
			continue
		}
		keys, values = append(keys, key), append(values, docsValue(field))
		if isList(field.Type()) {
			element := reflect.New(field.Type().Elem())
			if d, ok := reflect.TypeAssert[defaulter](element); ok {
				d.setDefaults()
			}
			more, theirs := keysWithDefault(element.Elem(), key+"[].")
			keys, values = append(keys, more...), append(values, theirs...)
		}
	}
	return keys, values
}

// Every default has a reason, and so has every value in which the profile recommended differs. No reason is left of a key
// that is gone.
func TestDefaultsHaveReasons(t *testing.T) {
	all := readReasons(t)
	keys, _ := keysWithDefault(reflect.ValueOf(Default()), "")
	check := func(what string, keys []string, reasons map[string]string) {
		for _, key := range keys {
			if len(strings.Fields(reasons[key])) < 3 {
				t.Errorf("%s: no reason for %s in testdata/reasons.yaml", what, key)
			}
		}
		for key := range reasons {
			if !slices.Contains(keys, key) {
				t.Errorf("%s: %s has a reason and is no key with a default of its own", what, key)
			}
		}
	}
	check("defaults", keys, all.Defaults)
	check("recommended", changedByRecommended(t), all.Recommended)
	if len(keys) < 100 {
		t.Errorf("only %d keys", len(keys))
	}
}

// changedByRecommended returns the keys in which the profile recommended differs from the defaults.
func changedByRecommended(t *testing.T) []string {
	t.Helper()
	d, err := Profile(ProfileRecommended)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(Changed(Default(), d), func(key string) bool { return key == "profile" })
}

// docsReasons returns the tables of reasons.
func docsReasons(t *testing.T) string {
	t.Helper()
	all := readReasons(t)
	var b strings.Builder
	b.WriteString("\n## Why these values in `wfq`\n\nEvery profile begins with these. \"The proposal\" is the queueing proposal that they come from.\n\n" +
		"| key | value | why |\n|---|---|---|\n")
	keys, values := keysWithDefault(reflect.ValueOf(Default()), "")
	for i, key := range keys {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", key, values[i], all.Defaults[key])
	}
	b.WriteString("\n## Why these values in `recommended`\n\n| key | value | why |\n|---|---|---|\n")
	d, err := Profile(ProfileRecommended)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range changedByRecommended(t) {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", key, docsValue(elementAt(t, reflect.ValueOf(d), key)), all.Recommended[key])
	}
	return b.String()
}

// elementAt returns what is at a path such as tiers[1].weight.
func elementAt(t *testing.T, v reflect.Value, path string) reflect.Value {
	t.Helper()
	for step := range strings.SplitSeq(path, ".") {
		name, place, listed := strings.Cut(strings.TrimSuffix(step, "]"), "[")
		v = v.Field(slices.Index(fieldNames(v.Type()), name))
		if listed {
			i, err := strconv.Atoi(place)
			if err != nil {
				t.Fatal(err)
			}
			v = v.Index(i)
		}
	}
	return v
}
