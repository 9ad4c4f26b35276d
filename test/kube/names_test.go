package kube

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/kubeenv"
)

// oneSlot is a configuration with one request in flight for each pod. All others wait.
const oneSlot = "{ requestQueueController: { enqueueAll: true, watermarkPerBackend: 1, lowerBoundPerBackend: 1, upperBoundPerBackend: 1 } }"

func objective(group, name string, priority int) string {
	return fmt.Sprintf(`
apiVersion: %s/v1alpha2
kind: InferenceObjective
metadata: {name: %s}
spec: {poolRef: {name: chat}, priority: %d}
`, group, name, priority)
}

const (
	newGroup = "llm-d.ai"
	oldGroup = "inference.networking.x-k8s.io"
)

func withObjective(name string) [2]string { return [2]string{"x-llm-d-inference-objective", name} }

// rows are the rows of the status page's names: name, kind, source.
func (e *epp) rows() map[string]bool {
	e.t.Helper()
	page, err := expect.Read(e.page)
	if err != nil {
		e.t.Fatal(err)
	}
	rows := map[string]bool{}
	_, table, _ := strings.Cut(page, "\nname ")
	table, _, _ = strings.Cut(table, "\n\n")
	for line := range strings.Lines(table) {
		var cells []string
		for cell := range strings.SplitSeq(line, "  ") {
			if cell = strings.TrimSpace(cell); cell != "" {
				cells = append(cells, cell)
			}
		}
		rows[strings.Join(cells, " | ")] = true
	}
	return rows
}

// wantRows waits until the status page has these rows.
func (e *epp) wantRows(within time.Duration, want ...string) {
	e.t.Helper()
	expect.Within(e.t, within, "the page's rows", func() error {
		rows := e.rows()
		for _, row := range want {
			if !rows[row] {
				return fmt.Errorf("it has no row %q, but %v", row, rows)
			}
		}
		return nil
	})
}

// The priority of an InferenceObjective orders the requests that name it, and a change counts for later ones. If its
// kind is installed in both groups, the deprecated one does not count.
func TestObjectivesOrderRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(role, pool, objective(newGroup, "one", -1), objective(newGroup, "two", 5), objective(oldGroup, "old", 100))
	w.pod("a", "127.0.4.1", true)
	e := w.epp("--pool-name=chat", "--config-text="+oneSlot)
	e.ready(true)
	e.wantRows(soon, "objective one | priority -1 | InferenceObjective/one", "objective two | priority 5 | InferenceObjective/two")
	e.logs("InferenceObjective is installed in two API groups")
	if rows := e.rows(); len(rows) != 3 {
		t.Errorf("more than the header and two objectives: %v", rows)
	}
	e.wantMetric(`weir_objectives{pool="chat",source="InferenceObjective"}`, 2)

	first := e.send("m")
	first.granted(t)
	order := func(before *request, names [2]string) (last *request) {
		t.Helper()
		low := e.send("m", withObjective(names[0]))
		e.wantMetric(`weir_tier_queue_length{pool="chat",tier="sheddable"}`, 1)
		high := e.send("m", withObjective(names[1]))
		e.wantMetric(`weir_tier_queue_length{pool="chat",tier="critical"}`, 1)
		before.end()
		high.granted(t)
		if n, _ := e.metric(`weir_tier_queue_length{pool="chat",tier="sheddable"}`); n != 1 {
			t.Errorf("%s does not wait any more", names[0])
		}
		high.end()
		low.granted(t)
		return low
	}
	last := order(first, [2]string{"one", "two"})

	w.apply(objective(newGroup, "one", 5), objective(newGroup, "two", -1))
	e.wantRows(soon, "objective one | priority 5 | InferenceObjective/one", "objective two | priority -1 | InferenceObjective/two")
	order(last, [2]string{"two", "one"}).end()

	err := w.env.Objects().Resource(resourceOf(newGroup, "inferenceobjectives")).Namespace(w.namespace).
		Delete(t.Context(), "one", metav1.DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	e.wantMetric(`weir_objectives{pool="chat",source="InferenceObjective"}`, 1)
}

// upstream is a model server that records the models of its requests.
type upstream struct {
	*httptest.Server
	mu     sync.Mutex
	models map[string]int
}

func newUpstream(t *testing.T) *upstream {
	u := &upstream{models: map[string]int{}}
	u.Server = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.UserAgent(), "weir-") { // Weir's own requests
			http.NotFound(out, r)
			return
		}
		var asked struct{ Model string }
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		u.mu.Lock()
		u.models[asked.Model]++
		u.mu.Unlock()
		_, _ = io.WriteString(out, "{}")
	}))
	t.Cleanup(u.Close)
	return u
}

// take returns the number of requests for each model since the last call.
func (u *upstream) take() map[string]int {
	u.mu.Lock()
	defer u.mu.Unlock()
	models := u.models
	u.models = map[string]int{}
	return models
}

const models = `
apiVersion: llm-d.ai/v1alpha2
kind: InferenceModelRewrite
metadata: {name: canary}
spec:
  poolRef: {name: chat}
  rules:
  - matches: [{model: {value: split}}]
    targets: [{modelRewrite: v1, weight: 3}, {modelRewrite: v2, weight: 1}]
  - matches: [{model: {value: both}}, {model: {value: mine}}]
    targets: [{modelRewrite: of-rewrite}]
---
apiVersion: inference.networking.x-k8s.io/v1alpha2
kind: InferenceModel
metadata: {name: both}
spec: {modelName: both, criticality: Sheddable, poolRef: {name: chat}, targetModels: [{name: of-model}]}
---
apiVersion: inference.networking.x-k8s.io/v1alpha2
kind: InferenceModel
metadata: {name: alone}
spec:
  modelName: alone
  poolRef: {name: chat, group: inference.networking.k8s.io}
  targetModels: [{name: v1}]
---
apiVersion: inference.networking.x-k8s.io/v1alpha2
kind: InferenceModel
metadata: {name: chained}
spec: {modelName: v1, poolRef: {name: chat}, targetModels: [{name: never}]}
`

const rewriteAll = `
apiVersion: llm-d.ai/v1alpha2
kind: InferenceModelRewrite
metadata: {name: all}
spec:
  poolRef: {name: chat}
  rules: [{targets: [{modelRewrite: base}]}]
`

// Models are rewritten for the engine by the file, then by InferenceModelRewrites, then by InferenceModels, by weight
// and never twice. An InferenceModel's criticality counts even if a rewrite has the targets. A later rule for all
// models applies to unnamed ones.
func TestModelsAreRewritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	engine := newUpstream(t)
	at, err := url.Parse(engine.URL)
	if err != nil {
		t.Fatal(err)
	}
	w.apply(role, strings.ReplaceAll(pool, "number: 8000", "number: "+at.Port()), models)
	w.pod("a", "127.0.0.1", true)
	e := w.epp("--pool-name=chat", "--config-text={ models: [ { name: mine, targets: [ { name: of-file } ] } ] }")
	e.ready(true)
	envoy, err := envoyrun.Start(t.Context(), envoyrun.Options{Config: "recommended", Weir: e.Address, ModelServers: []string{at.Host}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(envoy.Kill)
	ask := func(model string, times int) map[string]int {
		t.Helper()
		for range times {
			if err := expect.Post(t.Context(), envoy.URL()+"/v1/completions", `{"model":"`+model+`","prompt":"x"}`).Served(); err != nil {
				t.Fatalf("%s: %v", model, err)
			}
		}
		return engine.take()
	}
	e.wantRows(soon,
		"model mine | targets of-file (1) | file",
		"model both | targets of-rewrite (1) | InferenceModelRewrite/canary", "model both | criticality Sheddable | InferenceModel/both",
		"model alone | criticality Standard | InferenceModel/alone")
	if got := ask("split", 200); got["v1"] < 120 || got["v2"] < 25 || got["v1"]+got["v2"] != 200 {
		t.Errorf("200 requests by 3:1 became %v", got)
	}
	want := map[string]string{"mine": "of-file", "both": "of-rewrite", "alone": "v1", "v1": "never", "other": "other"}
	for model, target := range want {
		if got := ask(model, 2); got[target] != 2 {
			t.Errorf("%s became %v, want %s", model, got, target)
		}
	}
	w.apply(rewriteAll)
	e.wantRows(soon, "other models | targets base (1) | InferenceModelRewrite/all")
	want["other"], want["alone"], want["v1"] = "base", "base", "base"
	for model, target := range want {
		if got := ask(model, 2); got[target] != 2 {
			t.Errorf("%s became %v, want %s", model, got, target)
		}
	}
	for series, n := range map[string]float64{"critical": 0, "default": 0, "sheddable": 4} {
		got, _ := e.metric(`weir_tier_requests_total{outcome="dispatched",pool="chat",tier="` + series + `"}`)
		if series == "sheddable" && got != n {
			t.Errorf("%g requests of tier %s, want those for both: %g", got, series, n)
		}
	}
}

// definition returns the text of the CRD of a resource, in the directory of the CRDs.
func definition(t *testing.T, group, resource string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(crds(), resource+"."+group+"*.yaml"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%q, %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Weir runs without the CRDs of names, uses each once it is installed, prefers the current group to the deprecated one,
// and returns to the deprecated one when the current one is removed. For a CRD without a status, an Event names the
// unused resource.
func TestNameCRDsComeAndGo(t *testing.T) {
	t.Parallel()
	env := kubeenv.Start(t)
	w := &world{t: t, env: env, namespace: env.Namespace(t)}
	install := func(text string) {
		t.Helper()
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "crd.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		env.InstallCRDs(t, dir)
	}
	install(definition(t, "inference.networking.k8s.io", "inferencepools"))
	w.apply(role, pool)
	e := w.epp("--pool-name=chat", "--config-text={ objectives: [ { name: taken, priority: 1 } ] }")
	e.ready(true)
	if rows := e.rows(); len(rows) != 2 || !rows["objective taken | priority 1 | file"] {
		t.Errorf("rows %v", rows)
	}
	const looks = 90 * time.Second // some looks at what is installed

	noStatus := regexp.MustCompile(`(?m)^ *subresources:\n *status: \{\}\n`).ReplaceAllString(definition(t, oldGroup, "inferenceobjectives"), "")
	install(noStatus)
	w.apply(objective(oldGroup, "old", 7), objective(oldGroup, "taken", 7))
	e.wantRows(looks, "objective old | priority 7 | InferenceObjective/old",
		"NOT IN USE | NameInUse: the configuration file has an objective of this name | InferenceObjective/taken")
	expect.Eventually(t, "an Event says what is not in use", func() error {
		events, err := env.Clients().EventsV1().Events(w.namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, event := range events.Items {
			if event.Reason == "NameInUse" && event.Regarding.Name == "taken" && event.Regarding.Kind == "InferenceObjective" {
				return nil
			}
		}
		return fmt.Errorf("there are %d others", len(events.Items))
	})

	install(definition(t, newGroup, "inferenceobjectives"))
	w.apply(objective(newGroup, "new", -7))
	e.wantRows(looks, "objective new | priority -7 | InferenceObjective/new")
	if e.rows()["objective old | priority 7 | InferenceObjective/old"] {
		t.Error("the deprecated group counts beside the current one")
	}
	w.wantCondition(resourceOf(newGroup, "inferenceobjectives"), "new", metav1.ConditionTrue, "Accepted")

	crd := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	if err := env.Objects().Resource(crd).Delete(t.Context(), "inferenceobjectives."+newGroup, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	e.wantRows(looks, "objective old | priority 7 | InferenceObjective/old")
	if e.rows()["objective new | priority -7 | InferenceObjective/new"] {
		t.Error("a resource of a CRD that was removed is in use")
	}
	if !e.serving("readiness") {
		t.Error("not ready")
	}
}
