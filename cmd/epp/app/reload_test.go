package app

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"go.yaml.in/yaml/v3"

	"github.com/weir-epp/weir/internal/child"
	"github.com/weir-epp/weir/internal/config"
	"github.com/weir-epp/weir/internal/expect"
)

// reloading is an App whose configuration file a test changes.
type reloading struct {
	*running
	file string
	log  *child.Log
}

func startReloading(t *testing.T, text string, options func(*Options)) *reloading {
	t.Helper()
	r := &reloading{file: filepath.Join(t.TempDir(), "weir.yaml"), log: &child.Log{}}
	expect.Replaced(t, r.file, text)
	o := testOptions()
	o.ConfigFile = r.file
	o.Log, _ = newLogger(r.log, encoderConsole, 0)
	if options != nil {
		options(&o)
	}
	r.running = start(t, o)
	return r
}

// metric waits until /metrics has the line.
func (r *reloading) metric(line string) {
	r.t.Helper()
	expect.True(r.t, line, func() bool {
		_, text := r.get("/metrics")
		return strings.Contains(text, "\n"+line+"\n")
	})
}

// A wider band releases waiters at once, the answers of the streams follow, and the page and the log show the changes.
func TestReloadChangesTheRunningQueue(t *testing.T) {
	r := startReloading(t, "requestQueueController: { watermarkPerBackend: 1, lowerBoundPerBackend: 1, upperBoundPerBackend: 1 }", nil)
	granted(t, r.request(t.Context()))
	second := r.request(t.Context())
	expect.True(t, "the second one waits", func() bool { return r.pool.controller.State().Queued == 1 })

	expect.Replaced(t, r.file, strings.Join([]string{
		"requestQueueController: { watermarkPerBackend: 2, lowerBoundPerBackend: 2, upperBoundPerBackend: 2, numPoppers: 3 }",
		"fairRequestQueue: { flowCapacity: 1 }",
		"responses: { status: { flow-full: 418 } }",
		"scheduling: { tieBreak: first }",
	}, "\n"))
	granted(t, second)
	r.metric(`weir_config_reloads_total{result="applied"} 1`)
	r.metric("weir_config_valid 1")
	if s := r.pool.controller.State(); s.LowerBound != 2 || s.UpperBound != 2 {
		t.Errorf("bounds %v to %v, want 2", s.LowerBound, s.UpperBound)
	}
	e := r.pool.loads()[0]
	if e.LowerBound != 2_000_000 || e.UpperBound != 2_000_000 {
		t.Errorf("the endpoint's bounds: %d to %d, want 2 millions", e.LowerBound, e.UpperBound)
	}

	r.request(t.Context())
	expect.True(t, "the third one waits", func() bool { return r.pool.controller.State().Queued == 1 })
	if status := rejected(t, r.request(t.Context())); status != 418 {
		t.Errorf("status %d of a full flow, want the new one", status)
	}
	_, page := r.debug("/debug/config")
	var d struct {
		RequestQueueController struct {
			NumPoppers int `yaml:"numPoppers"`
		} `yaml:"requestQueueController"`
	}
	if err := yaml.Unmarshal([]byte(page), &d); err != nil || d.RequestQueueController.NumPoppers != 3 ||
		!strings.Contains(page, "changed 1 time\n") {
		t.Errorf("%v\n%s", err, page)
	}
	want := `"fields": ["fairRequestQueue.flowCapacity", "requestQueueController.watermarkPerBackend", ` +
		`"requestQueueController.lowerBoundPerBackend", "requestQueueController.upperBoundPerBackend", ` +
		`"requestQueueController.numPoppers", "responses.status", "scheduling.tieBreak"]`
	if text := r.log.String(); !strings.Contains(text, want) {
		t.Errorf("the log has no %s:\n%s", want, text)
	}
}

// rejected receives the answer to a rejected request, and returns its status.
func rejected(t *testing.T, stream extprocv3.ExternalProcessor_ProcessClient) int {
	t.Helper()
	m, err := stream.Recv()
	if err != nil || m.GetImmediateResponse() == nil {
		t.Fatalf("no rejection: %v, %v", m, err)
	}
	return int(m.GetImmediateResponse().GetStatus().GetCode())
}

// An invalid change is refused with every problem, also a change that needs a restart. Nothing changes, and the gauge
// is 0 until the file is valid again, even if it is then as before.
func TestReloadRefuses(t *testing.T) {
	good := "fairRequestQueue: { queueTTL: 7s }\n"
	r := startReloading(t, good, nil)
	before := r.Config()
	expect.Replaced(t, r.file, "fairRequestQueue: { queueTTL: 0s, tierMode: weighted, totalCapcity: 1 }\nflows: { key: [header:x], discipline: none }\n")
	r.metric(`weir_config_reloads_total{result="refused"} 1`)
	r.metric("weir_config_valid 0")
	problems := []string{
		"5 problems", "fairRequestQueue.queueTTL: 0s: must be", "fairRequestQueue.tierMode: \"weighted\": cannot change at run time",
		"did you mean totalCapacity?", "flows.key: \"header:x\": cannot change", "flows.discipline: \"none\": cannot change",
	}
	_, page := r.debug("/debug/config")
	unquoted := strings.ReplaceAll(r.log.String(), `\"`, `"`)
	if err := problemsIn(errors.New(unquoted), problems...); err != nil {
		t.Error(err)
	}
	if err := problemsIn(errors.New(page), append(problems, "THE NEWEST CONFIGURATION IS INVALID", "queueTTL: 7s")...); err != nil {
		t.Error(err)
	}
	if _, page := r.debug("/statusz"); !strings.Contains(page, "THE NEWEST IS INVALID") {
		t.Errorf("/statusz:\n%s", page)
	}
	if got := config.Changed(before, r.Config()); len(got) > 0 {
		t.Errorf("changed: %q", got)
	}
	if err := os.Remove(r.file); err != nil {
		t.Fatal(err)
	}
	r.metric(`weir_config_reloads_total{result="refused"} 2`)
	expect.Replaced(t, r.file, good+"# a comment\n")
	r.metric(`weir_config_reloads_total{result="unchanged"} 1`)
	r.metric("weir_config_valid 1")
	if _, page := r.debug("/debug/config"); strings.Contains(page, "INVALID") || !strings.Contains(page, "changed 0 times") {
		t.Errorf("/debug/config:\n%s", page)
	}
}

// An empty file, as after the first step of a writer, does not mean the defaults.
func TestReloadRefusesAnEmptyFile(t *testing.T) {
	r := startReloading(t, "fairRequestQueue: { queueTTL: 7s }\n", nil)
	expect.Replaced(t, r.file, "\n")
	r.metric(`weir_config_reloads_total{result="refused"} 1`)
	if got := r.Config().FairRequestQueue.QueueTTL.Std(); got != 7*time.Second {
		t.Errorf("queueTTL %v of an empty file", got)
	}
	if _, page := r.debug("/debug/config"); !strings.Contains(page, "the file is empty") {
		t.Errorf("/debug/config:\n%s", page)
	}
	expect.Replaced(t, r.file, "{}\n")
	r.metric(`weir_config_reloads_total{result="applied"} 1`)
}

// Kubernetes swaps a symbolic link when a mounted ConfigMap changes. Flags still override the file.
func TestReloadOfAMountedConfigMap(t *testing.T) {
	dir := t.TempDir()
	mount := func(version, text string) {
		t.Helper()
		if err := os.Mkdir(filepath.Join(dir, version), 0o700); err != nil {
			t.Fatal(err)
		}
		expect.Replaced(t, filepath.Join(dir, version, "weir.yaml"), text)
		if err := os.Symlink(version, filepath.Join(dir, "..tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "..tmp"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	mount("..1", "fairRequestQueue: { queueTTL: 7s }\nlimits: { maxBodyBytes: 1048576, maxBodyBytesTotal: 1048576 }")
	file := filepath.Join(dir, "weir.yaml")
	if err := os.Symlink(filepath.Join("..data", "weir.yaml"), file); err != nil {
		t.Fatal(err)
	}
	r := startReloading(t, "", func(o *Options) {
		o.ConfigFile = file
		o.Override = func(d *config.Document) {
			d.FairRequestQueue.FlowCapacity, d.RequestQueueController.MinDrain = 5, 0
		}
	})
	mount("..2", "fairRequestQueue: { queueTTL: 8s, flowCapacity: 50 }\nlimits: { maxBodyBytesTotal: 1000000000 }")
	r.metric(`weir_config_reloads_total{result="applied"} 1`)
	q := r.Config().FairRequestQueue
	if q.QueueTTL.String() != "8s" || q.FlowCapacity != 5 {
		t.Errorf("in use: %+v", q)
	}
	// The gRPC server has its limit from the start.
	most := 1<<20 + config.Default().Limits.MaxHeaderBytes
	if got := r.Config().Limits.MaxBodyBytes; got != most || !strings.Contains(r.log.String(), "limits.maxBodyBytes cannot grow") {
		t.Errorf("limits.maxBodyBytes: %d, want %d\n%s", got, most, r.log.String())
	}
}

// A configuration that was invalid at the start is applied once it is corrected.
func TestReloadMendsAnInvalidStart(t *testing.T) {
	r := startReloading(t, "fairRequestQueue: { queueTTL: 0s }", func(o *Options) { o.OnInvalidConfig = InvalidDefaults })
	r.metric("weir_config_valid 0")
	if _, page := r.debug("/debug/config"); !strings.Contains(page, "THE NEWEST CONFIGURATION IS INVALID") {
		t.Errorf("/debug/config:\n%s", page)
	}
	expect.Replaced(t, r.file, "fairRequestQueue: { queueTTL: 9s }")
	r.metric("weir_config_valid 1")
	r.metric(`weir_config_reloads_total{result="applied"} 1`)
	r.metric(`weir_config_reloads_total{result="refused"} 0`)
	if got := r.Config().FairRequestQueue.QueueTTL.String(); got != "9s" {
		t.Errorf("queueTTL %s", got)
	}
}

// On request the program reads its files again, whether they have changed or not, and logs the result.
func TestReloadOnDemand(t *testing.T) {
	r := startReloading(t, "fairRequestQueue: { queueTTL: 7s }", nil)
	r.Reload()
	r.metric(`weir_config_reloads_total{result="unchanged"} 1`)
	for _, want := range []string{"reading the files again", r.file, "does not change the configuration in use"} {
		if !strings.Contains(r.log.String(), want) {
			t.Errorf("%q is not in the log:\n%s", want, r.log.String())
		}
	}

	log := &child.Log{}
	o := testOptions()
	o.Log, _ = newLogger(log, encoderConsole, 0)
	without := start(t, o)
	without.Reload()
	if got := strings.Count(log.String(), "no file to read again"); got != 1 {
		t.Errorf("%d lines:\n%s", got, log.String())
	}
}
