package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/simulate"
)

// crowded has more requests than its engine can take: clients of two flows, each with one request after the other.
const crowded = `apiVersion: weir.dev/v1alpha1
kind: Workload
duration: 30s
engines:
- { count: 1, slots: 4 }
clients:
- { flow: a, inFlight: 6, prompt: 300..900, output: ~40, maxOutput: 200 }
- { flow: b, inFlight: 6, prompt: 300..900, output: ~40, maxOutput: 200 }
`

var crowdedFiles = map[string]string{
	"w.yaml": crowded, "equal.yaml": "requestQueueController: { slotsPerBackend: 4 }\n",
	"weight.yaml": "requestQueueController: { slotsPerBackend: 4 }\nflows: { weights: { a: 3 } }\n",
}

// compareRecorded writes r, a recording of the crowd, and returns the changes by the configurations.
func compareRecorded(t *testing.T, args ...string) (c simulate.Comparison) {
	t.Helper()
	code, _, stderr := simulated(t, crowdedFiles, "--workload", "w.yaml", "--config", "equal.yaml", "--record", "r")
	if code != 0 {
		t.Fatal(stderr)
	}
	var out, errs bytes.Buffer
	if code := runSimulate(append([]string{"--recording", "r", "-o", "json"}, args...), &out, &errs); code != 0 {
		t.Fatal(errs.String())
	}
	if err := json.Unmarshal(out.Bytes(), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// Without another configuration nothing is predicted: the replay has reproduced the recording.
func TestTheRecordedConfigurationReproducesEveryGrant(t *testing.T) {
	for _, args := range [][]string{nil, {"--config", "equal.yaml"}} {
		c := compareRecorded(t, args...)
		o := c.Configurations[0]
		if c.Schema != 1 || c.Error != nil || len(c.Configurations) != 1 || !o.AsRecorded || o.All.Before != o.All.After ||
			o.All.Before.Granted != c.Recording.Grants || c.Recording.Grants < 100 {
			t.Errorf("%v: %+v", args, c)
		}
	}
}

// A recording that its own configuration does not reproduce is an error, which states the difference. A truncated one
// is named.
func TestARecordingThatIsNotReproduced(t *testing.T) {
	compareRecorded(t)
	whole, err := os.ReadFile("r")
	if err != nil {
		t.Fatal(err)
	}
	for want, text := range map[string][]byte{
		"r: the recording is cut off": whole[:len(whole)/2], "is broken: its checksum is wrong": bytes.Replace(whole, whole[len(whole)-40:len(whole)-30], []byte("0123456789"), 1),
	} {
		if err := os.WriteFile("r", text, 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		if code := runSimulate([]string{"--recording", "r", "--config", "weight.yaml"}, &out, &errs); code != 1 || out.Len() > 0 || !strings.Contains(errs.String(), want) {
			t.Errorf("code %d: %s%s, want %s", code, out.String(), errs.String(), want)
		}
	}
}

// The first line is the error of the prediction. Flows beyond --flows are one row.
func TestWhatWouldChangeAsText(t *testing.T) {
	compareRecorded(t)
	var out, errs bytes.Buffer
	if code := runSimulate([]string{"--recording", "r", "--config", "weight.yaml", "--flows", "1"}, &out, &errs); code != 0 {
		t.Fatal(errs.String())
	}
	lines := strings.Split(out.String(), "\n")
	if !strings.HasPrefix(lines[0], "prediction error, of the recorded configuration: shares ") || !strings.Contains(lines[1], "its configuration reproduced ") {
		t.Errorf("it begins with\n%s\n%s", lines[0], lines[1])
	}
	for _, want := range []string{"\nweight\nflow ", "\nother ", "\nall ", "note: closed loops: a, b. "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
