package datastore

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/weir-epp/weir/pkg/scheduling"
)

// endpointFields are the fields of an endpoint; docs/endpoints.md documents them.
var endpointFields = []string{"address", "models", "labels", "slots", "role", "prefillTokens", "maxBatchedTokens", "capabilities", "priority", "taints"}

// DecodeEndpoints reads an endpoints file:
//
//	endpoints:
//	- address: "127.0.0.1:8000"   # ip:port, required; IPv6 as "[::1]:8000"
//	  models: [llama]             # names that it serves; empty or absent: any
//	  labels: {zone: a}
//	  slots: 0                    # requests that it runs at once; 0: unknown
//	  role: prefill               # decode, prefill, both or encode; absent: both
//	  prefillTokens: 16384        # of a prefill engine; 0: scheduling.prefillTokens
//	  maxBatchedTokens: 8192      # tokens that it processes in one step; 0: unknown
//	  capabilities: [image]       # what it can do besides text; absent: everything
//	  priority: 0                 # -100 to 100; with scheduling.policy: mindrouter
//	  taints: [old]               # only requests that tolerate them go there
//
// An empty pool must be written as endpoints: []. An empty file is an error, since a file being written may be empty.
// Unknown fields are errors, and every problem is returned at once, with its path.
func DecodeEndpoints(content []byte) ([]scheduling.Endpoint, error) {
	if err := oneDocument(content); err != nil {
		return nil, err
	}
	asJSON, err := yaml.YAMLToJSONStrict(content)
	if err != nil {
		return nil, fmt.Errorf("reading YAML: %w", err)
	}
	var root any
	decoder := json.NewDecoder(bytes.NewReader(asJSON))
	decoder.UseNumber()
	if err := decoder.Decode(&root); err != nil {
		return nil, fmt.Errorf("reading YAML: %w", err)
	}
	if root == nil {
		return nil, errNoEndpoints
	}
	var w walk
	endpoints := w.file(root)
	if len(w.problems) > 0 {
		return nil, errors.Join(w.problems...)
	}
	return endpoints, nil
}

// oneDocument refuses a second YAML document, which the decoder would silently ignore.
func oneDocument(content []byte) error {
	begun, ended := false, false
	for line := range bytes.Lines(content) {
		text := string(bytes.TrimRight(line, " \t\r\n"))
		switch {
		case text == "---" || strings.HasPrefix(text, "--- "):
			if begun {
				return errors.New("reading YAML: more than one document (---)")
			}
			begun = text != "---"
		case text == "..." || strings.HasPrefix(text, "... "):
			ended = begun
		case text != "" && !strings.HasPrefix(strings.TrimLeft(text, " \t"), "#") && !strings.HasPrefix(text, "%"):
			if ended {
				return errors.New("reading YAML: more than one document (...)")
			}
			begun = true
		}
	}
	return nil
}

// walk descends into the decoded values and collects their problems.
type walk struct {
	problems []error
}

func (w *walk) bad(path, format string, args ...any) {
	w.problems = append(w.problems, fmt.Errorf("%s: %s", path, fmt.Sprintf(format, args...)))
}

func (w *walk) file(root any) []scheduling.Endpoint {
	fields := w.object("", root, "endpoints")
	value, given := fields["endpoints"]
	if fields != nil && (!given || value == nil) {
		w.problems = append(w.problems, errNoEndpoints)
		return nil
	}
	seen := map[string]string{}
	var endpoints []scheduling.Endpoint
	for i, item := range w.list("endpoints", value) {
		path := fmt.Sprintf("endpoints[%d]", i)
		e := w.endpoint(path, item)
		if first, twice := seen[e.Address]; twice && e.Address != "" {
			w.bad(path+".address", "%q is that of %s", e.Address, first)
		} else {
			seen[e.Address] = path
		}
		endpoints = append(endpoints, e)
	}
	return endpoints
}

func (w *walk) endpoint(path string, item any) scheduling.Endpoint {
	e := scheduling.Endpoint{Ready: true}
	fields := w.object(path, item, endpointFields...)
	if fields == nil {
		return e
	}
	if text, ok := w.text(path+".address", fields["address"]); ok {
		address, err := parseAddress(strings.TrimSpace(text))
		if err != nil {
			w.bad(path+".address", "%v", err)
		}
		e.Address = address
	}
	for i, model := range w.list(path+".models", fields["models"]) {
		at := fmt.Sprintf("%s.models[%d]", path, i)
		if name, ok := w.text(at, model); ok && name == "" {
			w.bad(at, "is empty")
		} else if ok && !slices.Contains(e.Models, name) {
			e.Models = append(e.Models, name)
		}
	}
	for i, taint := range w.list(path+".taints", fields["taints"]) {
		at := fmt.Sprintf("%s.taints[%d]", path, i)
		if name, ok := w.text(at, taint); ok && name == "" {
			w.bad(at, "is empty")
		} else if ok && !slices.Contains(e.Taints, name) {
			e.Taints = append(e.Taints, name)
		}
	}
	e.Labels = w.labels(path+".labels", fields["labels"])
	e.Slots = w.count(path+".slots", fields["slots"])
	if value := fields["role"]; value != nil {
		if role, ok := w.text(path+".role", value); ok {
			e.Work = w.work(path+".role", role)
		}
	}
	e.PrefillTokens = int64(w.count(path+".prefillTokens", fields["prefillTokens"]))
	if e.PrefillTokens > 0 && e.Work != scheduling.WorkPrefill {
		w.bad(path+".prefillTokens", "is for endpoints with role: prefill")
	}
	e.MaxBatchedTokens = int64(w.count(path+".maxBatchedTokens", fields["maxBatchedTokens"]))
	e.Priority = w.within(path+".priority", fields["priority"], -scheduling.MaxPriority, scheduling.MaxPriority)
	if value := fields["capabilities"]; value != nil {
		e.Lacks, e.LacksStated = scheduling.AllNeeds, true
		for i, item := range w.list(path+".capabilities", value) {
			at := fmt.Sprintf("%s.capabilities[%d]", path, i)
			if name, ok := w.text(at, item); ok {
				need, known := scheduling.NeedOf(name)
				if !known {
					w.bad(at, "%q is no capability (%s)", name, strings.Join(scheduling.NeedNames(), ", "))
				}
				e.Lacks &^= need
			}
		}
	}
	return e
}

// work returns the work of an engine with a role.
func (w *walk) work(path, role string) scheduling.Work {
	work, known := scheduling.WorkOf(role)
	if !known || role == "" {
		w.bad(path, "%q is no role (decode, prefill, both, encode)", role)
	}
	return work
}

// object returns the fields of a mapping and reports unknown ones as problems. It returns nil if the value is not a
// mapping.
func (w *walk) object(path string, value any, known ...string) map[string]any {
	fields, ok := value.(map[string]any)
	if !ok {
		w.bad(cmp.Or(path, "the file"), "want a mapping, have %s", kindOf(value))
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(known, name) {
			w.bad(strings.TrimPrefix(path+"."+name, "."), "unknown field (known: %s)", strings.Join(known, ", "))
		}
	}
	return fields
}

func (w *walk) list(path string, value any) []any {
	items, ok := value.([]any)
	if !ok && value != nil {
		w.bad(path, "want a list, have %s", kindOf(value))
	}
	return items
}

func (w *walk) text(path string, value any) (string, bool) {
	text, ok := value.(string)
	if value == nil {
		w.bad(path, "missing")
	} else if !ok {
		w.bad(path, "want a string, have %s (write it in quotes)", kindOf(value))
	}
	return text, ok
}

func (w *walk) labels(path string, value any) map[string]string {
	if value == nil {
		return nil
	}
	fields, ok := value.(map[string]any)
	if !ok {
		w.bad(path, "want a mapping, have %s", kindOf(value))
		return nil
	}
	labels := make(map[string]string, len(fields))
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		labels[name], _ = w.text(path+"."+name, fields[name])
	}
	return labels
}

func (w *walk) count(path string, value any) int { return w.within(path, value, 0, math.MaxInt32) }

// within returns a whole number in a range; 0 if it is missing.
func (w *walk) within(path string, value any, least, most int64) int {
	if value == nil {
		return 0
	}
	number, ok := value.(json.Number)
	if !ok {
		w.bad(path, "want a whole number, have %s", kindOf(value))
		return 0
	}
	n, err := number.Int64()
	if err != nil || n < least || n > most {
		w.bad(path, "%s is not a whole number from %d to %d", number, least, most)
	}
	return int(n)
}

func kindOf(value any) string {
	switch value.(type) {
	case nil:
		return "nothing"
	case string:
		return "a string"
	case json.Number:
		return "a number"
	case bool:
		return "true or false"
	case []any:
		return "a list"
	default:
		return "a mapping"
	}
}
