package collect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/weir-epp/weir/internal/placement"
	"github.com/weir-epp/weir/pkg/recording"
	"github.com/weir-epp/weir/pkg/request"
)

// redacted replaces a secret value.
const redacted = "[redacted]"

// hider replaces the names of flows and tenants.
type hider struct {
	names   bool // it leaves them
	bounded func(size int, replay func() error) error
}

// notSecret are names not chosen by a tenant.
var notSecret = []string{"", request.Anonymous, request.UnknownModel, "other"}

// name returns the hash of a name.
func (h *hider) name(name string) string {
	if h.names || slices.Contains(notSecret, name) {
		return name
	}
	return request.HashedFlowName(name)
}

// nameFields are the fields of JSON pages whose values are names of flows and tenants.
var nameFields = []string{"flow", "tenant", "user", "user_id"}

// json hides the names in a page of JSON.
func (h *hider) json(page []byte) ([]byte, error) {
	read := json.NewDecoder(bytes.NewReader(page))
	read.UseNumber()
	var v any
	if err := read.Decode(&v); err != nil {
		return nil, fmt.Errorf("collect: a page that is no JSON: %w", err)
	}
	return indented(h.within(v))
}

func (h *hider) within(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if text, is := value.(string); is && slices.Contains(nameFields, key) {
				v[key] = h.name(text)
				continue
			}
			v[key] = h.within(value)
		}
	case []any:
		for i := range v {
			v[i] = h.within(v[i])
		}
	}
	return v
}

func indented(v any) ([]byte, error) {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("collect: %w", err)
	}
	return credentials(append(text, '\n')), nil
}

// flowLabel is the label with a flow's name in Prometheus' text format.
var flowLabel = regexp.MustCompile(`\bflow="((?:[^"\\]|\\.)*)"`)

// metrics hides the names in a page of metrics.
func (h *hider) metrics(page []byte) ([]byte, error) {
	return credentials(flowLabel.ReplaceAllFunc(page, func(label []byte) []byte {
		quoted := label[len("flow="):]
		name, err := strconv.Unquote(string(quoted))
		if err != nil {
			name = string(quoted)
		}
		return []byte("flow=" + strconv.Quote(h.name(name)))
	})), nil
}

// byIdentity are the maps of a configuration whose keys are names of flows and tenants, and secretKeys its secrets.
var (
	byIdentity = [][]string{{"flows", "weights"}, {"flows", "capacities"}, {"tenantPolicies"}}
	secretKeys = [][]string{{"scheduling", "affinitySeed"}}
)

// config hides the names and the secrets of a configuration. Its comments quote values, even of a refused newer one, so
// they are left out.
func (h *hider) config(page []byte) ([]byte, error) {
	var doc map[string]any
	if err := yaml.Unmarshal(page, &doc); err != nil {
		return nil, fmt.Errorf("collect: a configuration that is no YAML: %w", err)
	}
	for _, path := range byIdentity {
		if of, last := below(doc, path); of != nil {
			h.keys(of, last)
		}
	}
	flows, _ := doc["flows"].(map[string]any)
	levels, _ := flows["levels"].([]any)
	for i := range levels {
		if level, is := levels[i].(map[string]any); is {
			h.keys(level, "weights")
			h.keys(level, "capacities")
		}
	}
	decisions, _ := doc["decisions"].(map[string]any)
	tenants, _ := decisions["explain"].([]any)
	for i := range tenants {
		if name, is := tenants[i].(string); is {
			tenants[i] = h.name(name)
		}
	}
	for _, path := range secretKeys {
		if of, last := below(doc, path); of != nil && of[last] != nil && of[last] != "" {
			of[last] = redacted
		}
	}
	text, err := yaml.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("collect: %w", err)
	}
	left := fmt.Sprintf("# %d lines of comments were left out.\n", bytes.Count(page, []byte("\n#"))+bytes.Count(page[:min(1, len(page))], []byte("#")))
	return credentials(append([]byte(left), text...)), nil
}

// keys hides the names that are the keys of a map in another one.
func (h *hider) keys(of map[string]any, last string) {
	byName, is := of[last].(map[string]any)
	if !is {
		return
	}
	hidden := make(map[string]any, len(byName))
	for name, value := range byName {
		hidden[h.name(name)] = value
	}
	of[last] = hidden
}

// below returns the map with the last key of a path, or nil.
func below(doc map[string]any, path []string) (of map[string]any, last string) {
	for _, key := range path[:len(path)-1] {
		doc, _ = doc[key].(map[string]any)
	}
	return doc, path[len(path)-1]
}

// credentialForms match texts that are credentials in any place.
var credentialForms = []*regexp.Regexp{
	regexp.MustCompile(`(?i)\b(bearer|basic)(\s+|%20)[A-Za-z0-9._~+/=-]{6,}`),
	regexp.MustCompile(`\b(sk|pk|hf|ghp|gho|xox[abp])[-_][A-Za-z0-9_-]{12,}`),
	regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*`),
	regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(-----END [A-Z ]*PRIVATE KEY-----|$)`),
	regexp.MustCompile(`://[^/@\s"']+:[^/@\s"']+@`),
}

// credentials redacts credentials in a text.
func credentials(text []byte) []byte {
	for _, form := range credentialForms {
		text = form.ReplaceAll(text, []byte(redacted))
	}
	return text
}

// plainly hides credentials only.
func plainly(page []byte) ([]byte, error) { return credentials(page), nil }

// recording hides the names in a recording, unless epp has hidden them already. It replays the recording, which belongs to
// epp's build.
func (h *hider) recording(page []byte) ([]byte, error) {
	if h.names {
		return page, nil
	}
	format, err := recording.NewFormat(placement.On(nil))
	if err != nil {
		return nil, fmt.Errorf("collect: %w", err)
	}
	var renamed []byte
	err = h.bounded(len(page), func() (err error) {
		renamed, err = format.Rename(page, request.HashedFlowName)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("left out, since hashes cannot replace the names of flows in it (use the weir of epp's build, or --flow-names): %w", err)
	}
	return renamed, nil
}
