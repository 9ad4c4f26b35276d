package datastore

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/weir-epp/weir/pkg/scheduling"
)

func TestDecodeEndpoints(t *testing.T) {
	content := `# model servers
---
endpoints:
- address: "127.0.0.1:8000"
- address: "[0::1]:8000"
  models: [llama, mistral, llama]
  labels: {zone: a, llm-d.ai/engine-type: vllm}
  slots: 256
  maxBatchedTokens: 8192
  taints: [old, spot, old]
- {address: 10.0.0.1:80, models: [], labels: {}, slots: 0}
- {address: 10.0.0.2:80, models: , labels: , slots: }
`
	got, err := DecodeEndpoints([]byte(content))
	if err != nil {
		t.Fatal(err)
	}
	want := []scheduling.Endpoint{
		{Address: "127.0.0.1:8000", Ready: true},
		{Address: "[::1]:8000", Ready: true, Models: []string{"llama", "mistral"}, Labels: map[string]string{"zone": "a", "llm-d.ai/engine-type": "vllm"}, Slots: 256, MaxBatchedTokens: 8192, Taints: []string{"old", "spot"}},
		{Address: "10.0.0.1:80", Ready: true, Labels: map[string]string{}},
		{Address: "10.0.0.2:80", Ready: true},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	if none, err := DecodeEndpoints([]byte("endpoints: []")); err != nil || len(none) != 0 {
		t.Errorf("an empty pool: %v, %v", none, err)
	}
}

func TestDecodeEndpointsErrors(t *testing.T) {
	for content, wants := range map[string][]string{
		"":                                  {"endpoints: missing"},
		"# nothing yet\n":                   {"endpoints: missing"},
		"endpoints:":                        {"endpoints: missing"},
		"{}":                                {"endpoints: missing"},
		"[]":                                {"the file: want a mapping, have a list"},
		"just text":                         {"the file: want a mapping, have a string"},
		"endpoints: {}":                     {"endpoints: want a list, have a mapping"},
		"endpoints: [127.0.0.1:80]":         {"endpoints[0]: want a mapping, have a string"},
		"endpoints: [{}]":                   {"endpoints[0].address: missing"},
		"endpoints: [{address: 80}]":        {"endpoints[0].address: want a string, have a number"},
		"endpoints: [{address: vllm:80}]":   {`endpoints[0].address: "vllm:80" is a hostname`},
		"endpoints: [{address: 127.0.0.1}]": {`endpoints[0].address: "127.0.0.1" has no port`},
		"endpoint: []":                      {"endpoint: unknown field (known: endpoints)", "endpoints: missing"},
		"endpoints: []\nendpoints: []":      {"reading YAML", "already set"},
		"endpoints: [":                      {"reading YAML"},
		"endpoints: []\n---\nendpoints: []": {"more than one document"},
		"- 10.0.0.1:80\n...\nendpoints: []": {"more than one document"},
		// Every problem is reported at once, with its path.
		`
endpoints:
- {address: "127.0.0.1:80", model: llama, Slots: 1}
- {address: "127.0.0.1:80", slots: -1, models: llama, labels: [a]}
- {address: "127.0.0.2:80", slots: 1.5, models: [1, ""], labels: {a: 1, b: true}}
- {address: "127.0.0.3:80", slots: many}
`: {
			"endpoints[0].model: unknown field (known: address, models, labels, slots, role, prefillTokens, maxBatchedTokens, capabilities, priority, taints)",
			"endpoints[0].Slots: unknown field",
			`endpoints[1].address: "127.0.0.1:80" is that of endpoints[0]`,
			"endpoints[1].slots: -1 is not a whole number",
			"endpoints[1].models: want a list, have a string",
			"endpoints[1].labels: want a mapping, have a list",
			"endpoints[2].slots: 1.5 is not a whole number",
			"endpoints[2].models[0]: want a string, have a number",
			"endpoints[2].models[1]: is empty",
			"endpoints[2].labels.a: want a string, have a number",
			"endpoints[2].labels.b: want a string, have true or false",
			"endpoints[3].slots: want a whole number, have a string",
		},
	} {
		endpoints, err := DecodeEndpoints([]byte(content))
		if err == nil {
			t.Errorf("%q is taken", content)
			continue
		}
		for _, want := range wants {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %q does not say %q", content, err, want)
			}
		}
		if endpoints != nil {
			t.Errorf("%q: %v beside an error", content, endpoints)
		}
	}
}

// FuzzDecodeEndpoints checks that whatever is accepted can be published: addresses are canonical and distinct, and
// nothing panics.
func FuzzDecodeEndpoints(f *testing.F) {
	f.Add([]byte(`endpoints: [{address: "127.0.0.1:80", models: [a], labels: {b: c}, slots: 1}]`))
	f.Add([]byte("endpoints:\n- address: '[::1]:1'\n- &a {address: 1.2.3.4:5}\n"))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(t *testing.T, content []byte) {
		endpoints, err := DecodeEndpoints(content)
		if err != nil {
			return
		}
		for i := range endpoints {
			endpoints[i].ID = scheduling.EndpointID(i)
			if again, err := parseAddress(endpoints[i].Address); err != nil || again != endpoints[i].Address {
				t.Fatalf("address %q: %v", endpoints[i].Address, err)
			}
		}
		scheduling.NewSnapshot(1, endpoints)
	})
}

func TestDecodeRoles(t *testing.T) {
	endpoints, err := DecodeEndpoints([]byte(`endpoints:
- {address: "127.0.0.1:80", role: decode}
- {address: "127.0.0.2:80", role: prefill, prefillTokens: 8192}
- {address: "127.0.0.3:80", role: both}
- {address: "127.0.0.4:80", role: encode}
- {address: "127.0.0.5:80", role: }
- {address: "127.0.0.6:80", role: prefill-decode}
`))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []scheduling.Work{
		scheduling.WorkDecode, scheduling.WorkPrefill, scheduling.WorkAll, scheduling.WorkNone, scheduling.WorkAll, scheduling.WorkAll,
	} {
		if endpoints[i].Work != want {
			t.Errorf("%s: %v, want %v", endpoints[i].Address, endpoints[i].Work, want)
		}
	}
	if endpoints[1].PrefillTokens != 8192 || endpoints[0].PrefillTokens != 0 {
		t.Errorf("bounds of %d and %d tokens, want 8192 and none", endpoints[1].PrefillTokens, endpoints[0].PrefillTokens)
	}
	_, err = DecodeEndpoints([]byte(`endpoints:
- {address: "127.0.0.1:80", role: Prefill}
- {address: "127.0.0.2:80", role: ""}
- {address: "127.0.0.3:80", role: [decode]}
- {address: "127.0.0.4:80", prefillTokens: 1}
- {address: "127.0.0.5:80", role: prefill, prefillTokens: -1}
- {address: "127.0.0.6:80", maxBatchedTokens: many}
- {address: "127.0.0.7:80", taints: [""]}
`))
	want := `endpoints[0].role: "Prefill" is no role (decode, prefill, both, encode)
endpoints[1].role: "" is no role (decode, prefill, both, encode)
endpoints[2].role: want a string, have a list (write it in quotes)
endpoints[3].prefillTokens: is for endpoints with role: prefill
endpoints[4].prefillTokens: -1 is not a whole number from 0 to 2147483647
endpoints[5].maxBatchedTokens: want a whole number, have a string
endpoints[6].taints[0]: is empty`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestDecodeCapabilities(t *testing.T) {
	endpoints, err := DecodeEndpoints([]byte(`endpoints:
- {address: "127.0.0.1:80", capabilities: [image, structured_output, image]}
- {address: "127.0.0.2:80", capabilities: [], priority: -100}
- {address: "127.0.0.3:80", capabilities: }
- {address: "127.0.0.4:80"}
`))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"audio,video,embeddings true", "image,audio,video,embeddings,structured_output true", " false", " false"} {
		if got := fmt.Sprint(endpoints[i].Lacks, " ", endpoints[i].LacksStated); got != want {
			t.Errorf("%s lacks %s, want %s", endpoints[i].Address, got, want)
		}
	}
	if endpoints[0].Priority != 0 || endpoints[1].Priority != -100 {
		t.Errorf("priorities %d and %d", endpoints[0].Priority, endpoints[1].Priority)
	}
	_, err = DecodeEndpoints([]byte(`endpoints:
- {address: "127.0.0.1:80", capabilities: [vision, 1]}
- {address: "127.0.0.2:80", capabilities: image, priority: 101}
`))
	want := `endpoints[0].capabilities[0]: "vision" is no capability (image, audio, video, embeddings, structured_output)
endpoints[0].capabilities[1]: want a string, have a number (write it in quotes)
endpoints[1].priority: 101 is not a whole number from -100 to 100
endpoints[1].capabilities: want a list, have a string`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
