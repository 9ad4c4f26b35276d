package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/simulate"
)

const fewRequests = `apiVersion: weir.dev/v1alpha1
kind: Workload
duration: 5s
clients:
- { flow: a, rate: 10, prompt: 600, output: ~40, prefix: { tokens: 1024 } }
- { flow: b, rate: 3, prompt: 100, output: 20 }
`

// simulated runs `weir simulate` in a directory with the given files.
func simulated(t *testing.T, files map[string]string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out, errs bytes.Buffer
	code = runSimulate(args, &out, &errs)
	return code, out.String(), errs.String()
}

// weir simulate reports all wrong flags and files at once.
func TestSimulateErrors(t *testing.T) {
	files := map[string]string{
		"w.yaml": fewRequests, "bad.yaml": "kind: Workload\n", "c.yaml": "fairRequestQueue: { queueTTL: 0s }\n",
		"own.yaml": fewRequests + "engines: [ { count: 1 } ]\n", "t.jsonl": `{"timestamp": 0}`, "not.recording": "no",
		"tier.yaml": strings.Replace(fewRequests, "flow: a,", "flow: a, tier: vip,", 1),
	}
	for args, want := range map[string]string{
		"":                                       "--workload: missing",
		"--workload w.yaml --trace t.jsonl":      "there is more than one of --workload, --trace and --recording",
		"--workload w.yaml --speed 2 --repeat 3": "--speed: has no use without --trace\n--repeat: has no use without --trace",
		"--trace t.jsonl --speed 0 --engines 0 --slots 0":                   "--engines: 0: must be from 1 to 4096\n--slots: 0: must be from 1 to 1048576\n--speed: 0: must be from 0.001 to 1000",
		"--recording not.recording --engines 2":                             "--engines: has no use without --workload or --trace",
		"--recording not.recording":                                         "not.recording: not a recording",
		"--recording not.recording --config c.yaml":                         "c: invalid: fairRequestQueue.queueTTL",
		"--recording not.recording --clients x --flows 0 --output=xml":      `--clients: "x": must be one of auto, open, closed` + "\n--flows: 0: must be from 1 to 1000\n" + `--output: "xml": must be text or json`,
		"--recording not.recording --json -o json":                          "--json: has no use with --output json",
		"--workload w.yaml --clients open --flows 3":                        "--clients: has no use without --recording\n--flows: has no use without --recording",
		"--workload w.yaml --estimates exact,bad":                           "--estimates: bad: must be learned, exact, within-50%",
		"--trace t.jsonl --service":                                         "--service: has no use without --workload",
		"--workload w.yaml --service":                                       "w.yaml: --service: invalid: duration: 5s: must be from 1m30s to 4h",
		"--workload w.yaml --profile wfq --estimates exact,late --record y": "--record: 2 configurations: only one can be recorded",
		"--workload w.yaml --plots x.png":                                   "--plots: x.png: must end in .svg",
		"--workload w.yaml --profile wfq --profile x --record y":            "--record: 2 configurations: only one can be recorded",
		"--workload bad.yaml --config c.yaml --config none.yaml":            "c: invalid: fairRequestQueue.queueTTL: 0s: must be above 0s (line 1)|none.yaml: no such file|bad.yaml: invalid, 3 problems:",
		"--workload own.yaml --engines 3":                                   "--engines: own.yaml has engines of its own",
		"--workload tier.yaml --profile wfq":                                `tier.yaml: with wfq: invalid: clients[0].tier: "vip": must be one of the configuration's tiers`,
		"--trace t.jsonl":                                                   "t.jsonl: line 1: input_length: missing; output_length: missing",
		"--trace none.jsonl":                                                "none.jsonl: no such file",
		"--workload w.yaml --profile nobody":                                `profile: "nobody"`,
		"--workload w.yaml --profile wfq --profile wfq --profile wfq --profile wfq --profile wfq --plots x.svg": "5 configurations: a picture has room for 4",
	} {
		code, out, stderr := simulated(t, files, strings.Fields(args)...)
		if code == 0 || out != "" {
			t.Errorf("%s: code %d, %s", args, code, out)
		}
		for part := range strings.SplitSeq(want, "|") {
			if !strings.Contains(stderr, part) {
				t.Errorf("%s: %s\nwant %s", args, stderr, part)
			}
		}
	}
}

// The result as JSON is the same in each run, also in parallel with others, and has the table's figures.
func TestSimulateJSON(t *testing.T) {
	files := map[string]string{"w.yaml": fewRequests, "c.yaml": "requestQueueController: { slotsPerBackend: 2 }\n"}
	code, first, stderr := simulated(t, files, "--workload", "w.yaml", "--config", "c.yaml", "--profile", "wfq", "--json", "--engines", "1")
	if code != 0 || stderr != "" {
		t.Fatalf("code %d: %s", code, stderr)
	}
	if _, again, _ := simulated(t, files, "--workload", "w.yaml", "--config", "c.yaml", "--profile", "wfq", "--json", "--engines", "1"); first != again {
		t.Error("two runs differ")
	}
	var reports []simulate.Report
	if err := json.Unmarshal([]byte(first), &reports); err != nil || len(reports) != 2 {
		t.Fatalf("%d reports: %v", len(reports), err)
	}
	if c := reports[0]; c.Name != "c" || c.All.Requests == 0 || c.All.Answered != c.All.Requests || len(c.Flows) != 2 || len(c.Engines) != 1 {
		t.Errorf("%+v", c)
	}
}

// Several seeds give the medians of their runs.
func TestSimulateSeeds(t *testing.T) {
	files := map[string]string{"w.yaml": fewRequests}
	args := []string{"--workload", "w.yaml", "--profile", "wfq", "--json", "--engines", "1"}
	result := func(more ...string) []simulate.Report {
		code, out, stderr := simulated(t, files, append(args, more...)...)
		var reports []simulate.Report
		if err := json.Unmarshal([]byte(out), &reports); err != nil || code != 0 {
			t.Fatalf("code %d, %v: %s", code, err, stderr)
		}
		return reports
	}
	var requests []int
	for _, seed := range []string{"4", "5", "6"} {
		requests = append(requests, result("--seed", seed)[0].All.Requests)
	}
	slices.Sort(requests)
	if r := result("--seed", "4", "--seeds", "3"); len(r) != 1 || r[0].Runs != 3 || r[0].All.Requests != requests[1] || requests[0] == requests[2] {
		t.Errorf("%d reports, the first %+v, of runs with %v requests", len(r), r[0].All, requests)
	}
	if code, _, stderr := simulated(t, files, "--workload", "w.yaml", "--record", "r", "--seeds", "0"); code == 0 || !strings.Contains(stderr, "--seeds: 0: must be from 1 to 1000") {
		t.Error(stderr)
	}
}

// Other commands can read a recording of a simulation.
func TestSimulateARecording(t *testing.T) {
	files := map[string]string{"w.yaml": fewRequests, "c.yaml": "requestQueueController: { slotsPerBackend: 2 }\n"}
	t.Chdir(t.TempDir())
	if code, _, stderr := simulated(t, files, "--workload", "w.yaml", "--config", "c.yaml", "--record", "r", "--plots", "p.svg"); code != 0 {
		t.Fatal(stderr)
	}
	var out, errs bytes.Buffer
	if code := run([]string{"replay", "r"}, &out, &errs); code != 0 || !strings.Contains(out.String(), "verdicts are as recorded") {
		t.Errorf("weir replay: %d\n%s%s", code, out.String(), errs.String())
	}
	out.Reset()
	if code := run([]string{"simulate", "--recording", "r", "--profile", "wfq"}, &out, &errs); code != 0 {
		t.Fatal(errs.String())
	}
	if !strings.HasPrefix(out.String(), "prediction error, of the recorded configuration: shares ") ||
		!strings.Contains(out.String(), "\nwfq\nflow ") {
		t.Errorf("simulate --recording says\n%s", out.String())
	}
	out.Reset()
	if code := run([]string{"simulate", "--recording", "r", "--json"}, &out, &errs); code != 0 {
		t.Fatal(errs.String())
	}
	var reports []simulate.Report
	if err := json.Unmarshal(out.Bytes(), &reports); err != nil || len(reports) != 2 || reports[0].Name != "what happened" || reports[1].Name != "as recorded" {
		t.Errorf("--json: %d reports: %v", len(reports), err)
	}
	if drawn, err := os.ReadFile(filepath.Join(".", "p.svg")); err != nil || !bytes.HasPrefix(drawn, []byte("<?xml")) {
		t.Errorf("no picture: %v", err)
	}
}

// With several estimates there is a line for each. If costs are not tokens there is one.
func TestSimulateEstimates(t *testing.T) {
	files := map[string]string{"w.yaml": strings.Replace(fewRequests, "5s", "90s", 1)}
	code, stdout, stderr := simulated(t, files, "--workload=w.yaml", "--service", "--profile=recommended", "--profile=wfq",
		"--estimates=exact,streamed", "--plots=x.svg")
	if code != 0 {
		t.Fatal(stderr)
	}
	for _, line := range []string{"\nrecommended, exact ", "\nrecommended, streamed ", "\nwfq "} {
		if strings.Count(stdout, line) != 1 {
			t.Errorf("no line %q:\n%s", line, stdout)
		}
	}
	if drawn, err := os.ReadFile("x.svg"); err != nil || !strings.Contains(string(drawn), "difference, of a minute") {
		t.Error(err)
	}
}
