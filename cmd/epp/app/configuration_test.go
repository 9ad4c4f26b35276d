package app

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/child"
	"github.com/weir-epp/weir/internal/config"
	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/pkg/stock"
)

// An invalid configuration ends the start with every problem.
func TestInvalidConfigFails(t *testing.T) {
	o := testOptions()
	o.ConfigFile = filepath.Join(t.TempDir(), "weir.yaml")
	if _, err := New(o); problemsIn(err, "--config-file: open ", "no such file") != nil {
		t.Error(err)
	}
	text := "fairRequestQueue: { totalCapcity: 5, queueTTL: 0s }\nflows: { weights: { a: 0 } }\n"
	if err := os.WriteFile(o.ConfigFile, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := New(o)
	if err := problemsIn(err, "3 problems", "fairRequestQueue.totalCapcity: unknown field (did you mean totalCapacity?) (line 1)",
		"fairRequestQueue.queueTTL: 0s: must be", "flows.weights.a: 0: must be"); err != nil {
		t.Error(err)
	}
}

// The error of a wrong flag names neither the profile nor the file.
func TestInvalidFlag(t *testing.T) {
	for configText, want := range map[string]string{
		"": "epp: invalid flags:\n" +
			"fairRequestQueue.queueTTL: 2h (from a flag): must be above 0s and at most 1h\n",
		"fairRequestQueue: { queueTTL: 5s }": "epp: --config-text: invalid: " +
			"fairRequestQueue.queueTTL: 2h (from a flag): must be above 0s and at most 1h\n",
	} {
		var stdout, stderr bytes.Buffer
		code := Main([]string{"--endpoints=127.0.0.1:1", "--queue-ttl=2h", "--profile=wfq", "--config-text=" + configText}, &stdout, &stderr)
		if code != 1 || stderr.String() != want {
			t.Errorf("exit code %d, %s", code, stderr.String())
		}
	}
	for argument, want := range map[string]string{"--queue-ttl=2m": "the profile and the flags", "--v=1": "the profile"} {
		f := newFlags()
		if err := f.parse([]string{"--endpoints=127.0.0.1:1", argument}); err != nil || f.configName() != want {
			t.Errorf("%s: %q, %v", argument, f.configName(), err)
		}
	}
}

// --on-invalid-config=defaults starts nevertheless, with a log line and a metric.
func TestInvalidConfigDefaults(t *testing.T) {
	log := &child.Log{}
	o := testOptions()
	o.OnInvalidConfig = InvalidDefaults
	o.ConfigText = "fairRequestQueue: { totalCapacity: -5, queueTTL: 7s }"
	o.Override = func(d *config.Document) {
		d.RequestQueueController.NumPoppers, d.RequestQueueController.MinDrain = 3, 0
	}
	o.Log, _ = newLogger(log, encoderJSON, 0)
	r := start(t, o)
	if _, metrics := r.get("/metrics"); !strings.Contains(metrics, "weir_config_valid 0") {
		t.Error("weir_config_valid is not 0")
	}
	want := config.Default()
	want.RequestQueueController.NumPoppers, want.RequestQueueController.MinDrain = 3, 0
	if !reflect.DeepEqual(r.Config(), want) {
		t.Errorf("in use: %+v\nwant %+v", r.Config(), want)
	}
	if got := log.String(); !strings.Contains(got, "THE CONFIGURATION IS INVALID") || !strings.Contains(got, "totalCapacity: -5") {
		t.Errorf("log:\n%s", got)
	}
	// Wrong flags are ignored as well.
	o.Override = func(d *config.Document) { d.RequestQueueController.NumPoppers = 0 }
	o.DrainTimeout = 0 // with minDrain's default it would take 5 s to stop
	if r := start(t, o); !reflect.DeepEqual(r.Config(), config.Default()) {
		t.Errorf("in use: %+v", r.Config())
	}
}

// Without a profile the profile is recommended: without a file, with a file that names none, and if the defaults
// replace an invalid file. One line at the start names the profile in use.
func TestDefaultProfile(t *testing.T) {
	recommended, err := config.Profile(config.ProfileRecommended)
	if err != nil {
		t.Fatal(err)
	}
	for text, changed := range map[string]string{
		"": "",
		"flows: { weights: { a: 2 } }\ncost: requests": `"cost":"requests","usage":"auto","learned":"slots of 0 of 1 endpoints","stated":["flows.weights","flows.localityQuantum","cost"]`,
		"profile: wqf": "",
		"flows: [":     "",
	} {
		log := &child.Log{}
		o := testOptions()
		o.Profile, o.ConfigText, o.OnInvalidConfig, o.DrainTimeout = "", text, InvalidDefaults, 0
		o.Override = nil
		o.Log, _ = newLogger(log, encoderJSON, 0)
		r := start(t, o)
		if d := r.Config(); changed == "" && !reflect.DeepEqual(d, recommended) || d.Profile != config.ProfileRecommended {
			t.Errorf("%q: in use: %+v", text, d)
		}
		want := `"profile":"recommended","lowerBoundPerBackend":"auto","upperBoundPerBackend":"auto","cost":"tokens","usage":"auto",` +
			`"learned":"slots of 0 of 1 endpoints","stated":[]`
		if changed != "" {
			want = changed
		}
		expect.True(t, "the line of the start", func() bool { return strings.Contains(log.String(), want) })
	}
}

// Weir reports a pool smaller than its reservations, with the golden numbers of SMG's defaults.
func TestClampedReservations(t *testing.T) {
	d, err := config.Load(config.Source{Text: []byte("profile: smg-priority\ncriticality: { maxClass: system }")})
	if err != nil {
		t.Fatal(err)
	}
	backends := func(slots int) []stock.Backend { return []stock.Backend{{Slots: int32(slots)}} }
	for slots, want := range map[int]string{
		4:   "system 4 of 32, interactive 0 of 128, default 0 of 1; capacity 4",
		80:  "system 32 of 32, interactive 48 of 128, default 0 of 8; capacity 80",
		256: "",
	} {
		if got := config.ClampedReservations(d.FlowcontrolConfig(), backends(slots)); got != want {
			t.Errorf("%d slots: %q, want %q", slots, got, want)
		}
	}
	if got := config.ClampedReservations(d.FlowcontrolConfig(), nil); got != "" {
		t.Errorf("no backend: %q", got)
	}
}

// epp --validate reads the endpoints too, and reports conflicts between them and the configuration.
func TestValidateWithEndpoints(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	cfg := write("weir.yaml", "apiVersion: weir.dev/v1alpha1\nkind: EndpointPickerConfig\nprofile: recommended\n"+
		"models: [ { name: chat, targets: [ { name: v1 }, { name: v2 } ] } ]\ntiers: [ { name: critical, reservedFloor: 100 } ]\n")
	endpoints := write("endpoints.yaml", "endpoints: [ { address: '10.0.0.1:8000', slots: 8, models: [v1] } ]\n")
	bad := write("bad.yaml", "endpoints: [ { address: '10.0.0.1:8000', slot: 8 } ]\n")
	for _, test := range []struct {
		args []string
		code int
		says []string
	}{
		{[]string{"--endpoints-file=" + endpoints}, 0, []string{`\"v2\": no endpoint lists this model`, "critical 8 of 100; capacity 8", "valid (profile recommended)"}},
		{[]string{"--endpoints=10.0.0.1:8000"}, 0, []string{"critical 64 of 100; capacity 64"}},
		{[]string{"--endpoints-file=" + bad}, 1, []string{"--endpoints-file: " + bad, "endpoints[0].slot: unknown field"}},
		{[]string{"--endpoints-file=" + dir + "/none"}, 1, []string{"--endpoints-file: ", "no such file"}},
	} {
		var stdout, stderr bytes.Buffer
		code := Main(append(test.args, "--validate", "--config-file="+cfg), &stdout, &stderr)
		said := stdout.String() + stderr.String()
		for _, want := range test.says {
			if code != test.code || !strings.Contains(said, want) {
				t.Errorf("%v: exit code %d, want %d; it says %s, want %s", test.args, code, test.code, said, want)
			}
		}
	}
}
