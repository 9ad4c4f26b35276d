package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/config"
)

func TestConfigCommand(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	good := write("good.yaml", "profile: wfq\nfairRequestQueue: { queueTTL: 7s }\nrequestQueueController: { enabled: false, enqueueAll: true }\n")
	bad := write("bad.yaml", "fairRequestQueue: { queueTTL: 0s, totalCapcity: 1 }\n")
	lower := write("lower.yaml", "profile: wfq\nrequestQueueController: { lowerBoundPerBackend: 64 }\n")
	named := write("named.yaml", "profile: recommended\nrequestQueueController: { lowerBoundPerBackend: 64 }\n")
	later := write("later.yaml", "profile: smg-priority\nfairRequestQueue: { queueTTL: 7s }\n")
	servers := write("servers.yaml", "endpoints: [ { address: '10.0.0.1:8000', slots: 64, labels: { zone: a } } ]\n")
	badServers := write("badservers.yaml", "endpoints: [ { address: 'vllm:8000' }, { address: '10.0.0.1:80', slot: 64 } ]\n")
	models := write("models.yaml", "models: [ { name: chat, targets: [ { name: v1 }, { name: v2 } ] }, { name: plain } ]\n"+
		"tiers: [ { name: critical, reservedFloor: 100 } ]\n")
	both := write("both.yaml", "endpoints: [ { address: '10.0.0.1:8000', slots: 32, models: [v1, plain] }, { address: '10.0.0.2:8000', slots: 32, models: [v1] } ]\n")
	unbounded := write("unbounded.yaml", "requestQueueController: { slotsPerBackend: unbounded }\n")
	smg := write("smg.yaml", "classes: { bulk: { queue_size: 0 } }\ntenant_policies: { \"header:acme\": { max_class: system } }\n")
	dynamo := write("dynamo.yaml", "default_policy_family: f\nuncached_isl_buckets: [ { min_tokens: 0, bucket: b } ]\n"+
		"policy_classes: [ { name: c, policy_family: f, cache_bucket: b, quantum: 7, queue_policy: wspt } ]\n")
	mindRouter := write("mindrouter.env", "SCHEDULER_FAIRNESS_WINDOW=60\nSCHEDULER_WEIGHT_FACULTY=4\nSCHEDULER_SCORE_SHORT_QUEUE=31\nSCHEDULER_SCORE=1\n")
	badDynamo := write("baddynamo.yaml", "default_policy_family: f\npolicy_classes: [ { name: c, quantum: 7, queue_policy: lcfs } ]\n")
	llmd := write("llmd.yaml", "router: { modelServers: { matchLabels: { app: qwen } } }\nhttpRoute: { create: true }\ninferenceObjectives: [ { name: fast } ]\nprovider: { name: gke }\n")
	picker := write("picker.yaml", "apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\n")
	badSMG := write("badsmg.yaml", "classes: { bluk: {}, system: { reserve: 1 } }\n")
	checkCommands(t, map[string]commandTest{
		"config help":    {[]string{"config", "help"}, 0, []string{"weir config validate [--profile NAME] FILE"}, nil},
		"help of config": {[]string{"config", "--help"}, 0, []string{"weir config validate [--profile NAME] FILE", config.ProfileList()}, nil},
		"unknown profile": {
			[]string{"config", "show", "--profile=wqf"}, 1, nil, []string{`profile: "wqf": must be one of wfq, recommended`},
		},
		"a file over its profile, whether this build acts upon it or not": {
			[]string{"config", "show", later}, 0, []string{"profile: smg-priority", "queueTTL: 7s", "name: bulk"}, nil,
		},
		"a file that is wrong is not shown": {[]string{"config", "show", bad}, 1, nil, []string{"2 problems"}},
		"valid": {
			[]string{"config", "validate", good}, 0, []string{"warning: requestQueueController.enqueueAll", "valid (profile wfq)"}, nil,
		},
		"valid with the profile that is given": {
			[]string{"config", "validate", "--profile=recommended", lower}, 0, []string{"valid (profile recommended)"}, nil,
		},
		"invalid with its own profile": {
			[]string{"config", "validate", lower}, 1, nil, []string{"lowerBoundPerBackend: 64: must"},
		},
		"the profile that is given goes before the file's": {
			[]string{"config", "validate", "--profile=wfq", named}, 1, nil, []string{"lowerBoundPerBackend: 64: must"},
		},
		"validate with an unknown profile": {
			[]string{"config", "validate", "--profile=wqf", good}, 1, nil, []string{`profile: "wqf": must be one of wfq, recommended`},
		},
		"invalid": {
			[]string{"config", "validate", bad},
			1, nil,
			[]string{"2 problems", "queueTTL: 0s: must be above 0s", "did you mean totalCapacity?"},
		},
		"valid endpoints": {[]string{"config", "validate", "--endpoints", servers}, 0, []string{"servers.yaml: valid (endpoints: 1)"}, nil},
		"invalid endpoints, every problem": {
			[]string{"config", "validate", "--endpoints", badServers},
			1, nil,
			[]string{`endpoints[0].address: "vllm:8000" is a hostname`, "endpoints[1].slot: unknown field"},
		},
		"no file with endpoints": {[]string{"config", "validate", "--endpoints", dir + "/none"}, 1, nil, []string{"no such file"}},
		"endpoints taken for a configuration": {
			[]string{"config", "validate", servers}, 1, nil, []string{"endpoints: unknown field", "weir config validate --endpoints " + servers},
		},
		"a configuration taken for endpoints": {
			[]string{"config", "validate", "--endpoints", good}, 1, nil, []string{"fairRequestQueue: unknown field (known: endpoints)"},
		},
		"a configuration and its endpoints": {
			[]string{"config", "validate", "--endpoints", both, models},
			0,
			[]string{
				`models.yaml: warning: models[0].targets[1].name: "v2": no endpoint lists this model`, "critical 64 of 100; capacity 64",
				"models.yaml: valid (profile recommended)", "both.yaml: valid (endpoints: 2)",
			},
			nil,
		},
		"in the other order": {[]string{"config", "validate", models, "--endpoints=" + both}, 0, []string{`"v2": no endpoint lists this model`}, nil},
		"with the profile that is given": {
			[]string{"config", "validate", "--profile=wfq", "--endpoints", servers, good}, 0, []string{"valid (profile wfq)", "valid (endpoints: 1)"}, nil,
		},
		"slots that count for nothing": {
			[]string{"config", "validate", "--endpoints", both, unbounded},
			0,
			[]string{"slotsPerBackend: unbounded: while a backend", "slotsPerBackend: unbounded: the slots that 2 of 2 endpoints report have no effect"},
			nil,
		},
		"both wrong, every problem of both": {
			[]string{"config", "validate", "--endpoints", badServers, bad},
			1, nil,
			[]string{"endpoints[1].slot: unknown field", "queueTTL: 0s: must be above 0s"},
		},
		"imported": {
			[]string{"config", "import", "--from", "smg", smg},
			0,
			[]string{"profile: smg-priority", "replaceTiers: true", "- name: bulk\n    queueSize: 0\n", "acme:\n    maxClass: system", "header:x-smg-tenant-id"},
			[]string{"smg.yaml: note: flows.key trusts the request header x-smg-tenant-id", "status: { ttl-expired: 408 }"},
		},
		"an import that is wrong": {
			[]string{"config", "import", "--from=smg", badSMG},
			1, nil,
			[]string{"2 problems", "classes.system.reserve: unknown field (did you mean reserved?)", "did you mean bulk?"},
		},
		"values with a pool and a route of their own": {
			[]string{"config", "import", "--from=gie", llmd}, 0, []string{"gateway:\n  provider: gke", "httpRoute:\n  enabled: true", "objectives:", "pool:\n  matchLabels:\n    app: qwen\n"}, nil,
		},
		"values beside a release": {
			[]string{"config", "import", "--from=llm-d", "--beside=demo", llmd},
			0,
			[]string{"assumeFullDuplex: true", "pool:\n  create: false\n  matchLabels:\n    app: qwen\n  name: demo\n"},
			[]string{"httpRoute: left out: release demo has its own", "objectives: left out"},
		},
		"beside a release, without its values": {
			[]string{"config", "import", "--from=llm-d", "--beside=demo", picker}, 1, nil, []string{"--beside: ", "picker.yaml: has no values of a chart"},
		},
		"beside no release":       {[]string{"config", "import", "--from=llm-d", "--beside=", llmd}, 2, nil, []string{"--beside: must name a RELEASE"}},
		"beside what is no chart": {[]string{"config", "import", "--from=smg", "--beside=demo", smg}, 2, nil, []string{"--beside: is for import --from llm-d"}},
		"import of dynamo's file": {
			[]string{"config", "import", "--from=dynamo", dynamo},
			0,
			[]string{"profile: dynamo-drr", "- name: c\n    family: f\n    bucket: b\n    quantum: 7\n    order: wspt\n", "defaultFamily: f"},
			[]string{"dynamo.yaml: note: no class has a busy threshold"},
		},
		"import of a bad one of dynamo's": {
			[]string{"config", "import", "--from", "dynamo", badDynamo},
			1, nil,
			[]string{`baddynamo.yaml: invalid`, `policy_classes[0].queue_policy: "lcfs": must be one of fcfs, wspt (did you mean fcfs?) (line 2)`},
		},
		"import of mindrouter's environment": {
			[]string{"config", "import", "--from=mindrouter", mindRouter},
			0,
			[]string{"profile: mindrouter-fairshare", "window: 1m", "faculty:\n    weight: 4", "mindrouter:\n    queue: 31"},
			[]string{"mindrouter.env: note: SCHEDULER_SCORE: ignored"},
		},
		"import of no such file": {[]string{"config", "import", "--from=smg", dir + "/none"}, 1, nil, []string{"no such file"}},
		"no such file":           {[]string{"config", "validate", dir + "/none"}, 1, nil, []string{"no such file"}},
	})
}

// One line names the mistake in the arguments.
func TestConfigArguments(t *testing.T) {
	long := strings.Repeat("a", 54)
	for arguments, want := range map[string]string{
		"":                                     "must be followed by show, validate or import",
		"bogus":                                `"bogus": must be show, validate or import`,
		"show a b":                             `show: "b": only one FILE is allowed`,
		"show --from=smg":                      `--from: "smg": is for import only`,
		"validate":                             "validate: must be followed by a FILE",
		"validate a b c":                       `validate: "b": only one FILE is allowed`,
		"import foo":                           "import: --from must name the system that the FILE comes from: dynamo, gie, litellm, llm-d, mindrouter, production-stack, smg",
		"import --from=":                       "import: --from must name the system that the FILE comes from: dynamo, gie, litellm, llm-d, mindrouter, production-stack, smg",
		"import --from vllm foo":               `--from: "vllm": must be dynamo, gie, litellm, llm-d, mindrouter, production-stack, smg`,
		"import --from=smg":                    "import: must be followed by a FILE",
		"import --from=smg a b":                `import: "b": only one FILE is allowed`,
		"show --endpoints a":                   "--endpoints: is for validate and import only",
		"import --from=smg --endpoints a b":    "--endpoints: --from smg: its file has no engines",
		"import --from=litellm --endpoints a":  "import: must be followed by a FILE",
		"validate --endpoints":                 "flag needs an argument: --endpoints",
		"validate --endpoints=":                "--endpoints: must name a FILE",
		"validate --endpoints - -":             "--endpoints: only one FILE can be standard input",
		"validate --endpoints a b c":           `validate: "c": only one FILE is allowed`,
		"validate --profile=wfq --endpoints a": `--profile: "wfq": an endpoints file has no profile`,
		"import --from=gie --beside=Demo_1 a": `--beside: "Demo_1": must be the name of a release of Helm's: at most 53 of a-z, 0-9, - and ., ` +
			"with a letter or digit at either end",
		"import --from=gie --beside=" + long + " a": `--beside: "` + long + `": must be the name of a release of Helm's: at most 53 of a-z, ` +
			"0-9, - and ., with a letter or digit at either end",
		"import --from=smg --profile=wfq a": `--profile: "wfq": is for show and validate only`,
	} {
		var stdout, stderr bytes.Buffer
		if code := run(append([]string{"config"}, strings.Fields(arguments)...), &stdout, &stderr); code != 2 {
			t.Errorf("%s: exit code %d, want 2", arguments, code)
		}
		if stderr.String() != "weir config: "+want+"\nsee weir config --help\n" || stdout.Len() > 0 {
			t.Errorf("%s: %s%s", arguments, stderr.String(), stdout.String())
		}
	}
}

// An endless file is refused by its size, before memory is full: 1 MiB of endpoints, 4 MiB of anything else.
func TestConfigReadsNoEndlessFile(t *testing.T) {
	const endless = "/dev/zero"
	for arguments, most := range map[string]int{
		"config import --from llm-d " + endless:                      4 << 20,
		"config show " + endless:                                     4 << 20,
		"config validate " + endless:                                 4 << 20,
		"config validate --endpoints " + endless:                     1 << 20,
		"simulate --config " + endless + " --workload " + endless:    4 << 20,
		"envoy endpoints " + endless + " " + t.TempDir() + "/a.yaml": 1 << 20,
	} {
		var stdout, stderr bytes.Buffer
		code := run(strings.Fields(arguments), &stdout, &stderr)
		if want := fmt.Sprintf("%s: is larger than %d bytes", endless, most); code == 0 || !strings.Contains(stderr.String(), want) {
			t.Errorf("%s: exit code %d, want %q: %.300s", arguments, code, want, &stderr)
		}
	}
}

// The engines of an imported file become a file of endpoints for its configuration, and no file is overwritten.
func TestImportEngines(t *testing.T) {
	dir := t.TempDir()
	for from, text := range map[string]string{
		"litellm": "model_list:\n- { model_name: chat, litellm_params: { model: hosted_vllm/llama, api_base: 'http://10.0.0.1:8000/v1', " +
			"max_parallel_requests: 64 } }\n",
		"production-stack": "--service-discovery static --static-backends http://10.0.0.1:8000 --static-models llama --static-aliases chat:llama",
	} {
		their, endpoints, ours := filepath.Join(dir, from), filepath.Join(dir, from+"-endpoints.yaml"), filepath.Join(dir, from+".yaml")
		if err := os.WriteFile(their, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		arguments := []string{"config", "import", "--from", from, "--endpoints", endpoints, their}
		var stdout, stderr bytes.Buffer
		if code := run(arguments, &stdout, &stderr); code != 0 || stderr.Len() > 0 {
			t.Fatalf("%s: exit code %d: %s", from, code, &stderr)
		}
		if err := os.WriteFile(ours, stdout.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		stdout.Reset()
		if code := run([]string{"config", "validate", "--endpoints", endpoints, ours}, &stdout, &stderr); code != 0 ||
			!strings.Contains(stdout.String(), "valid (endpoints: 1)") || strings.Contains(stdout.String(), "warning") {
			t.Errorf("%s: exit code %d: %s%s", from, code, &stdout, &stderr)
		}
		if code := run(arguments, &stdout, &stderr); code != 1 || !strings.Contains(stderr.String(), "file exists") {
			t.Errorf("%s: a file is overwritten: exit code %d: %s", from, code, &stderr)
		}
	}
}

// --output writes a file only without an error: after an error neither it nor the file of engines exists. No file is
// overwritten.
func TestConfigOutput(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for name, text := range map[string]string{
		"theirs.yaml": "model_list: [ { model_name: a, litellm_params: { model: vllm/a, api_base: 'http://10.0.0.1:8000' } } ]\n",
		"wrong.yaml":  "model_list: 1\n", "taken.yaml": "mine",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		arguments, stderr string
		code              int
		made              []string
	}{
		{"import --from litellm --endpoints e.yaml --output weir.yaml wrong.yaml", "wrong.yaml: ", 1, nil},
		{"import --from litellm --endpoints e.yaml --output taken.yaml theirs.yaml", "--output: open taken.yaml: file exists", 1, nil},
		{"import --from litellm --endpoints e.yaml --output none/weir.yaml theirs.yaml", "--output: open none/weir.yaml: no such", 1, nil},
		{"import --from litellm --endpoints e.yaml --output weir.yaml theirs.yaml", "", 0, []string{"e.yaml", "weir.yaml"}},
		{"show --output full.yaml wrong.yaml", "model_list: unknown field", 1, nil},
		{"show --output full.yaml weir.yaml", "", 0, []string{"full.yaml"}},
		{"validate --output a.yaml weir.yaml", `--output: "a.yaml": is for show and import only`, 2, nil},
		{"show --output=", "--output: must name a FILE", 2, nil},
	} {
		before, _ := filepath.Glob("*")
		var stdout, stderr bytes.Buffer
		code := run(append([]string{"config"}, strings.Fields(test.arguments)...), &stdout, &stderr)
		after, _ := filepath.Glob("*")
		made := slices.DeleteFunc(after, func(name string) bool { return slices.Contains(before, name) })
		if code != test.code || !strings.Contains(stderr.String(), test.stderr) || stdout.Len() > 0 || !slices.Equal(made, test.made) {
			t.Errorf("%s: exit code %d, made %q: %s%s", test.arguments, code, made, &stdout, &stderr)
		}
		for _, name := range made {
			if text, err := os.ReadFile(name); err != nil || len(text) == 0 {
				t.Errorf("%s: %s: %q, %v", test.arguments, name, text, err)
			}
		}
	}
	if text, err := os.ReadFile("taken.yaml"); err != nil || string(text) != "mine" {
		t.Errorf("overwritten: %q, %v", text, err)
	}
}

// Names in a foreign file do not control a terminal, in errors or in notes.
func TestImportPrintsNoControls(t *testing.T) {
	for _, text := range []string{
		`general_settings: { "\e[2J": 1, "\x9b2J": 1 }`, `litellm_settings: { priority_reservation: { "\e[2J\x9b": 0 } }`,
	} {
		file := filepath.Join(t.TempDir(), "theirs.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var stdout, stderr bytes.Buffer
		run([]string{"config", "import", "--from=litellm", file}, &stdout, &stderr)
		if out := stdout.String() + stderr.String(); stderr.Len() == 0 || strings.ContainsAny(out, "\x1b\u009b") {
			t.Errorf("%s: %q", text, out)
		}
	}
}

// Every profile is shown in full, and the output reads back as the profile itself.
func TestShowProfiles(t *testing.T) {
	for _, name := range config.Profiles() {
		var stdout, stderr bytes.Buffer
		if code := run([]string{"config", "show", "--profile", name}, &stdout, &stderr); code != 0 {
			t.Fatalf("%s: %s", name, stderr.String())
		}
		d, err := config.Load(config.Source{Text: stdout.Bytes()})
		var problems config.Problems
		errors.As(err, &problems)
		for _, p := range problems {
			t.Errorf("%s: read back: %v", name, p)
		}
		if d.Profile != name || len(problems) == 0 && err != nil {
			t.Errorf("%s: read back: profile %q, %v", name, d.Profile, err)
		}
	}
}
