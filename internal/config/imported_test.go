package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// The contents of LiteLLM's file become keys: engines with their slots and models, models with weights, aliases, shares
// and limits.
func TestImportLiteLLMConverts(t *testing.T) {
	im, err := ImportLiteLLM([]byte(contents(t, "testdata", "litellm", "team.yaml")))
	if err != nil {
		t.Fatal(err)
	}
	want := []Engine{
		{Address: "10.0.0.1:8000", Slots: 64, Models: []string{"meta-llama/Llama-3.1-8B-Instruct"}},
		{Address: "10.0.0.2:8000", Models: []string{"meta-llama/Llama-3.1-70B-Instruct"}},
		{Address: "[2001:db8::7]:8000", Models: []string{"BAAI/bge-m3"}},
	}
	if !reflect.DeepEqual(im.Engines, want) {
		t.Errorf("engines %+v", im.Engines)
	}
	targets := map[string][]ModelTarget{}
	for _, m := range im.Document.Models {
		targets[m.Name] = m.Targets
	}
	both := []ModelTarget{{Name: "meta-llama/Llama-3.1-8B-Instruct", Weight: 3}, {Name: "meta-llama/Llama-3.1-70B-Instruct", Weight: 1}}
	if !reflect.DeepEqual(targets, map[string][]ModelTarget{
		"chat": both, "gpt-4": both, "hidden": both, "BAAI/bge-m3": nil, "far": {{Name: "qwen3", Weight: 1}},
	}) {
		t.Errorf("models %+v", targets)
	}
	d := im.Document
	if d.Roles["prod"].Weight != 3*d.Roles["dev"].Weight || d.Flows.DefaultRole != "user" || d.Roles["user"].Quota.Tokens != 20_000 {
		t.Errorf("roles %+v, default %q", d.Roles, d.Flows.DefaultRole)
	}
	if d.RequestQueueController.MaxInFlightPerFlow != 20 {
		t.Errorf("%d in flight per flow", d.RequestQueueController.MaxInFlightPerFlow)
	}
}

// A value without a conversion is an error with its name and place. No file causes a panic.
func TestImportsRefuse(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "must be a mapping with model_list",
		"priority_scheduler: {}":       "must be a file of LiteLLM's proxy, with one of model_list, ",
		"a: [":                         "not YAML",
		"model_list: 3":                `model_list: "3": must be a list (line 1)`,
		"model_list:\n- {}":            "model_list[0].model_name",
		"model_list:\n- model_name: m": "model_list[0].litellm_params.model",
		"router_settings: [1]":         `router_settings: "a list": must be a mapping`,
		"general_settings: {max_parallel_requests: many}":                                                   `general_settings.max_parallel_requests: "many": must be a whole number`,
		"router_settings: {model_group_alias: {a: b}}":                                                      `router_settings.model_group_alias.a: "b": must be a model_name`,
		"litellm_settings: {priority_reservation: {a: -1}}":                                                 "litellm_settings.priority_reservation.a",
		"model_list:\n- {model_name: m, litellm_params: {model: m, api_base: 'http://1.2.3.4', weight: 0}}": "litellm_params.weight",
	} {
		if _, err := ImportLiteLLM([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("litellm %q: %v, want %q", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                            "must be an EndpointPickerConfig",
		"router: 3":                   `router: "3": must be a mapping`,
		"plugins: {}":                 "plugins",
		"apiVersion: v1\nplugins: []": `apiVersion: "v1": must be a version of one of the groups`,
		"plugins: [{}]":               "plugins[0].type",
		"flowControl: {}\nplugins: 1": `plugins: "1": must be a list`,
		"plugins: []\nflowControl: {maxBytes: x}":                                  `flowControl.maxBytes: "x": must be a number of bytes`,
		"plugins: []\nflowControl: {defaultRequestTTL: 2h}":                        `flowControl.defaultRequestTTL: "2h": must be a duration`,
		"plugins: []\nflowControl: {saturationDetector: {pluginRef: a}}":           `pluginRef: "a": must be the name of one of the plugins`,
		"plugins: []\nflowControl: {priorityBands: [{priority: 1},{priority: 1}]}": "flowControl.priorityBands[1].priority",
		"router: {modelServers: {protocol: quic}}":                                 `router.modelServers.protocol: "quic"`,
		"inferenceExtension: {flags: [{value: 1}]}":                                `inferenceExtension.flags[0].name: "": must be the name of a flag`,
		"router: {epp: {flags: {v: much}}}":                                        `router.epp.flags.v: "much"`,
	} {
		if _, err := ImportLLMD([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("llm-d %q: %v, want %q", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                        "has no arguments of vLLM's router",
		"python3 -m vllm_router":  "has no arguments of vLLM's router",
		"--routing-logic fastest": `--routing-logic: "fastest": must be one of`,
		"--routing-logic session": "--session-key",
		"--service-discovery=dns": "--service-discovery",
		"--static-backends http://1.2.3.4:1,http://1.2.3.5:1 --static-models a": "a model for each of the 2 static backends",
		"--static-aliases chat": "must be ALIAS:MODEL",
	} {
		if _, err := ImportProductionStack([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("production-stack %q: %v, want %q", text, err, want)
		}
	}
}

// The import accepts all YAML that other readers accept: merged mappings, sections in any order, booleans in any
// spelling. YAML that contains itself gives a short error.
func TestImportsReadYAML(t *testing.T) {
	im, err := ImportLiteLLM([]byte(`
router_settings: { model_group_alias: { gpt-4: chat } }
model_list:
- model_name: chat
  litellm_params: { <<: &own { api_base: "http://10.0.0.1:8000", max_parallel_requests: 8 }, model: vllm/llama, max_parallel_requests: 9 }
`))
	if err != nil || len(im.Engines) != 1 || im.Engines[0].Slots != 9 || len(im.Document.Models) != 2 {
		t.Errorf("%+v, %v", im.Engines, err)
	}
	im, err = ImportLiteLLM([]byte(`
x: [ &a { max_parallel_requests: 7, model: vllm/a }, &b { max_parallel_requests: 8, api_base: "http://10.0.0.1:8000" } ]
model_list: [ { model_name: chat, litellm_params: { <<: [ *a, *b ] } } ]
`))
	if err != nil || len(im.Engines) != 1 || im.Engines[0].Slots != 7 {
		t.Errorf("of several merged mappings the first counts: %+v, %v", im.Engines, err)
	}
	im, err = ImportLLMD([]byte("router: { epp: { flags: { secure-serving: True, metrics-endpoint-auth: \"0\" } } }"))
	if err != nil || im.Values["tls"].(map[string]any)["enabled"] != true || im.Values["metrics"].(map[string]any)["auth"].(map[string]any)["enabled"] != false {
		t.Errorf("%+v, %v", im.Values, err)
	}
	im, err = ImportProductionStack([]byte("x: &m { llama: { static_backends: [http://10.0.0.1:8000] } }\nstatic_models: *m\n"))
	if err != nil || len(im.Engines) != 1 || im.Engines[0].Models[0] != "llama" {
		t.Errorf("%+v, %v", im.Engines, err)
	}
	for text, read := range map[string]func([]byte) (Imported, error){
		"litellm_settings: { priority_reservation: { a: &a { value: *a } } }": ImportLiteLLM,
		"router: &a { x: *a }": ImportLLMD,
	} {
		if _, err := read([]byte(text)); err == nil || !strings.Contains(err.Error(), "nested too deeply") || len(err.Error()) > 500 {
			t.Errorf("%s: %.200v", text, err)
		}
	}
	targets, aliases := "", ""
	for i := range 200 {
		targets += fmt.Sprintf("- { model_name: m, litellm_params: { model: t%d, api_base: 'http://10.0.0.1:8000' } }\n", i)
		aliases += fmt.Sprintf("a%d: m, ", i)
	}
	_, err = ImportLiteLLM([]byte("model_list:\n" + targets + "router_settings: { model_group_alias: { " + aliases + "} }"))
	if err == nil || !strings.Contains(err.Error(), "more than 10000 targets") {
		t.Errorf("200 aliases of 200 targets: %v", err)
	}
}

// Every argument of their router is converted or has its note.
func TestImportProductionStackNamesEveryArgument(t *testing.T) {
	for name := range stackInstead {
		if slices.Contains(stackConverted, name) {
			t.Errorf("--%s is converted and ignored", name)
		}
		im, err := ImportProductionStack([]byte("--routing-logic prefixaware --" + name + " 7"))
		if err != nil || len(im.Notes) != 1 || !strings.Contains(im.Notes[0], "--"+name) {
			t.Errorf("--%s: %v, %q", name, err, im.Notes)
		}
	}
}
