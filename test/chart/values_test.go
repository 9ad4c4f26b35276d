package chart

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/weir-epp/weir/internal/golden"
)

const (
	chartDir = "../../charts/weir"
	// tableBegin is the line before the table of values in the chart's README.
	tableBegin = "<!-- values -->\n"
)

// value is a documented key of values.yaml.
type value struct{ path, fallback, meaning string }

// documentedValues returns every value of values.yaml with a comment, in order. A key without one must be a mapping
// whose keys have them.
func documentedValues(t *testing.T) []value {
	t.Helper()
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(readFile(t, chartDir+"/values.yaml")), &doc); err != nil {
		t.Fatal(err)
	}
	var values []value
	var walk func(path string, node *yaml.Node)
	walk = func(path string, node *yaml.Node) {
		for i := 0; i+1 < len(node.Content); i += 2 {
			key, content := node.Content[i], node.Content[i+1]
			at := strings.TrimPrefix(path+"."+key.Value, ".")
			meaning, documented := meaningOf(key.HeadComment)
			switch {
			case documented:
				values = append(values, value{at, fallback(t, content), meaning})
			case content.Kind == yaml.MappingNode && len(content.Content) > 0:
				walk(at, content)
			default:
				t.Errorf("values.yaml: %s has no comment", at)
			}
		}
	}
	walk("", doc.Content[0])
	return values
}

// meaningOf returns a comment's text after "--".
func meaningOf(comment string) (string, bool) {
	_, text, found := strings.Cut(comment, "# -- ")
	return strings.ReplaceAll(text, "\n# ", " "), found
}

// fallback returns a default as compact JSON.
func fallback(t *testing.T, node *yaml.Node) string {
	t.Helper()
	var v any
	if err := node.Decode(&v); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The chart's README lists every value with its default and meaning, and no others.
func TestValuesTable(t *testing.T) {
	var table strings.Builder
	table.WriteString("\n| value | default | meaning |\n|---|---|---|\n")
	for _, v := range documentedValues(t) {
		fmt.Fprintf(&table, "| `%s` | `%s` | %s |\n", v.path, v.fallback, strings.ReplaceAll(v.meaning, "|", `\|`))
	}
	head, _, ok := strings.Cut(readFile(t, chartDir+"/README.md"), tableBegin)
	if !ok {
		t.Fatalf("README.md has no line %q", tableBegin)
	}
	golden.Check(t, chartDir+"/README.md", head+tableBegin+table.String())
}

// schema has the fields read from values.schema.json.
type schema struct {
	Type, Pattern        string
	Enum                 []string
	AnyOf                []schema
	Properties           map[string]schema
	AdditionalProperties json.RawMessage
	Required             []string
	Items                *schema
}

// The schema has each key of values.yaml with a type, and no other: an unknown key is an error, and so is a removed
// one.
func TestSchemaIsOfTheValues(t *testing.T) {
	var s schema
	if err := json.Unmarshal([]byte(readFile(t, chartDir+"/values.schema.json")), &s); err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.Unmarshal([]byte(readFile(t, chartDir+"/values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	delete(s.Properties, "global") // Helm's own, shared with other charts
	s.holds(t, "", values)
}

// free are the values that are objects of Kubernetes' or of Weir's, documented and checked there.
var free = []string{
	"affinity", "autoscaling.behavior", "config", "podSecurityContext", "securityContext", "resources.requests",
	"resources.limits", "resources.claims", "envoy.resources.requests", "envoy.resources.limits", "envoy.resources.claims",
	"metrics.auth.tokenSecret",
}

func (s schema) holds(t *testing.T, path string, values map[string]any) {
	t.Helper()
	if string(s.AdditionalProperties) != "false" {
		t.Errorf("%q accepts any key", path)
	}
	for key, v := range values {
		at := strings.TrimPrefix(path+"."+key, ".")
		property, ok := s.Properties[key]
		if !ok {
			t.Errorf("the schema has no %s", at)
			continue
		}
		if property.Type == "" && property.Enum == nil && property.AnyOf == nil {
			t.Errorf("%s has no type", at)
		}
		if strings.HasSuffix(path, "resources") || slices.Contains(free, at) {
			continue
		}
		if !slices.Contains(s.Required, key) {
			t.Errorf("%s can be taken away with null", at)
		}
		if inner, is := v.(map[string]any); is && property.Properties != nil {
			property.holds(t, at, inner)
		}
	}
	for key := range s.Properties {
		at := strings.TrimPrefix(path+"."+key, ".")
		if _, ok := values[key]; !ok && !slices.Contains(free, at) {
			t.Errorf("values.yaml has no %s", at)
		}
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
