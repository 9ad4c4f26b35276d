package app

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/kubeapi"
	"github.com/weir-epp/weir/internal/names"
	"github.com/weir-epp/weir/pkg/request"
)

// ofPool refers to the pool of these tests.
var ofPool = kubeapi.PoolRef{Name: "chat"}

func objective(name string, priority int32) *kubeapi.InferenceObjective {
	return &kubeapi.InferenceObjective{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kubeapi.InferenceObjectiveSpec{PoolRef: ofPool, Priority: &priority},
	}
}

// verdicts is a source of names that records the verdicts it gets.
type verdicts struct {
	mu   sync.Mutex
	told []names.Verdict // last
}

func (v *verdicts) Judge(told []names.Verdict) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.told = told
}

// An objective of the cluster applies to later arrivals. Waiters stay unchanged. A reload of the file, which has
// priority, keeps the cluster's names.
func TestNamesOfTheCluster(t *testing.T) {
	const bounds = "requestQueueController: { enqueueAll: true, watermarkPerBackend: 1, lowerBoundPerBackend: 1, upperBoundPerBackend: 1 }\n"
	source := &verdicts{}
	r := startReloading(t, bounds, nil)
	r.pool.naming.source, r.pool.naming.pool = source, names.Pool{Group: kubeapi.PoolGroupVersion.Group, Name: "chat"}
	granted(t, r.request(t.Context()))
	urgent := [2]string{"x-llm-d-inference-objective", "urgent"}
	low := [2]string{"x-llm-d-inference-objective", "low"}
	r.request(t.Context(), low)
	r.metric(`weir_tier_queue_length{tier="critical"} 1`) // an unknown name: the default

	r.pool.resourcesChanged(names.Resources{Objectives: []*kubeapi.InferenceObjective{objective("low", -1), objective("urgent", 7)}})
	r.request(t.Context(), low)
	r.metric(`weir_tier_queue_length{tier="sheddable"} 1`)
	r.request(t.Context(), urgent)
	r.metric(`weir_tier_queue_length{tier="critical"} 2`)
	r.metric(`weir_stock_level{model="chat",target_model="chat"} 1`)

	expect.Replaced(t, r.file, bounds+"objectives: [ { name: urgent, priority: 0 } ]\n")
	r.metric(`weir_config_reloads_total{result="applied"} 1`)
	r.request(t.Context(), low)
	r.metric(`weir_tier_queue_length{tier="sheddable"} 2`)
	r.request(t.Context(), urgent)
	r.metric(`weir_tier_queue_length{tier="default"} 1`)
	r.metric(`weir_tier_queue_length{tier="critical"} 2`)
	r.metric(`weir_stock_level{model="chat",target_model="chat"} 1`)

	_, page := r.debug("/statusz")
	for _, want := range [][]string{
		{"objective urgent", "priority 0", "file"},
		{"objective low", "priority -1", "InferenceObjective/low"},
		{"NOT IN USE", "NameInUse: the configuration file has an objective of this name", "InferenceObjective/urgent"},
	} {
		if !hasRow(page, want) {
			t.Errorf("no row %q in\n%s", want, page)
		}
	}
	source.mu.Lock()
	last := source.told
	source.mu.Unlock()
	if len(last) != 2 || last[0].Reason != names.ReasonAccepted || last[1].Reason != names.ReasonNameInUse {
		t.Errorf("the source was told %+v", last)
	}
}

// hasRow reports whether a table has a row of these cells.
func hasRow(page string, cells []string) bool {
	for line := range strings.Lines(page) {
		var row []string
		for cell := range strings.SplitSeq(strings.TrimSpace(line), "  ") {
			if cell = strings.TrimSpace(cell); cell != "" {
				row = append(row, cell)
			}
		}
		if reflect.DeepEqual(row, cells) {
			return true
		}
	}
	return false
}

// Models of the cluster have targets and criticalities too. A rule for all models counts for unnamed ones.
func TestModelsOfTheCluster(t *testing.T) {
	r := startReloading(t, "flows: { unknownModels: shared }\nmodels: [ { name: mine } ]\n", nil)
	r.pool.naming.source, r.pool.naming.pool = &verdicts{}, names.Pool{Group: kubeapi.PoolGroupVersion.Group, Name: "chat"}
	r.registry.MustRegister(newNameMetrics(&r.pool.naming))
	match := []kubeapi.RewriteMatch{{Model: kubeapi.ModelMatch{Value: "chat"}}}
	r.pool.resourcesChanged(names.Resources{
		Rewrites: []*kubeapi.InferenceModelRewrite{{
			ObjectMeta: metav1.ObjectMeta{Name: "r"},
			Spec: kubeapi.InferenceModelRewriteSpec{PoolRef: ofPool, Rules: []kubeapi.RewriteRule{
				{Matches: match, Targets: []kubeapi.RewriteTarget{{ModelRewrite: "v1"}}},
				{Targets: []kubeapi.RewriteTarget{{ModelRewrite: "base"}}},
			}},
		}},
		Models: []*kubeapi.InferenceModel{
			{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Spec: kubeapi.InferenceModelSpec{ModelName: "chat", Criticality: "Critical", PoolRef: ofPool}},
			{ObjectMeta: metav1.ObjectMeta{Name: "o"}, Spec: kubeapi.InferenceModelSpec{ModelName: "a\nb", PoolRef: ofPool}},
			{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: kubeapi.InferenceModelSpec{PoolRef: ofPool}},
		},
	})
	if got := r.pool.streams; !reflect.DeepEqual(got.OtherTargets, []request.Target{{Name: "base", Weight: 1}}) || got.Models[2].Targets[0].Name != "v1" {
		t.Errorf("the streams have %+v, %+v", got.Models, got.OtherTargets)
	}
	_, page := r.debug("/statusz")
	for _, want := range [][]string{
		{"model mine", "targets its own name", "file"},
		{"model chat", "targets v1 (1)", "InferenceModelRewrite/r"},
		{"model chat", "criticality Critical", "InferenceModel/m"},
		{"model a b", "criticality Standard", "InferenceModel/o"},
		{"other models", "targets base (1)", "InferenceModelRewrite/r"},
		{"NOT IN USE", `Invalid: spec.modelName: "": must be given`, "InferenceModel/n"},
	} {
		if !hasRow(page, want) {
			t.Errorf("no row %q in\n%s", want, page)
		}
	}
	for _, line := range []string{
		`weir_models{source="file"} 1`, `weir_models{source="InferenceModelRewrite"} 2`, `weir_models{source="InferenceModel"} 0`,
		`weir_objectives{source="file"} 0`, `weir_name_resources_unaccepted{kind="InferenceModel"} 1`,
	} {
		r.metric(line)
	}
}

// A page has a bounded size, however many names the resources have.
func TestNamesPageIsBounded(t *testing.T) {
	in := names.Names{}
	targets := make([]names.Target, names.MaxTargets)
	for i := range targets {
		targets[i] = names.Target{Name: fmt.Sprint("t", i), Weight: 1}
	}
	for i := range names.MaxNames {
		in.Objectives = append(in.Objectives, names.Objective{Name: fmt.Sprint("o", i)})
		in.Models = append(in.Models, names.Model{Name: fmt.Sprint("m", i), Targets: targets, Criticality: "Critical"})
		in.Verdicts = append(in.Verdicts, names.Verdict{Kind: names.KindModel, Name: fmt.Sprint("x", i), Reason: names.ReasonInvalid})
	}
	var n naming
	n.names.Store(&in)
	var lines []string
	n.namesTable(func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) })
	if most := 2 + 4*(maxNameRows+1); len(lines) > most {
		t.Errorf("%d lines, want at most %d", len(lines), most)
	}
	page := strings.Join(lines, "\n")
	for _, want := range []string{
		"model m0\ttargets t0 (1), t1 (1), t2 (1), t3 (1), t4 (1), t5 (1), t6 (1), t7 (1), 56 more\t",
		"objectives\t9000 more", "models\t9000 more", "NOT IN USE\t9000 more",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q", want)
		}
	}
}

// rewrites are large resources with a slow merge.
func rewrites(n int) (list []*kubeapi.InferenceModelRewrite) {
	for i := range n {
		r := &kubeapi.InferenceModelRewrite{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("r", i)}, Spec: kubeapi.InferenceModelRewriteSpec{PoolRef: ofPool},
		}
		for j := range 5000 {
			r.Spec.Rules = append(r.Spec.Rules, kubeapi.RewriteRule{
				Matches: []kubeapi.RewriteMatch{{Model: kubeapi.ModelMatch{Value: fmt.Sprint("m", j)}}},
				Targets: []kubeapi.RewriteTarget{{ModelRewrite: "v1"}},
			})
		}
		list = append(list, r)
	}
	return list
}

// Changes of the endpoints do not wait for the merge of large resources.
func TestMergingHoldsUpNoEndpoints(t *testing.T) {
	r := startReloading(t, "flows: { unknownModels: shared }\n", nil)
	p := r.pool
	p.naming.pool = names.Pool{Group: kubeapi.PoolGroupVersion.Group, Name: "chat"}
	p.resourcesChanged(names.Resources{Rewrites: rewrites(1)})
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.resourcesChanged(names.Resources{Rewrites: rewrites(30)}) // the same names: only the merge takes long
	}()
	free, held := 0, 0
	for running := true; running; {
		select {
		case <-done:
			running = false
		case <-time.After(100 * time.Microsecond):
		}
		if p.mu.TryLock() {
			free++
			p.mu.Unlock()
		} else {
			held++
		}
	}
	if held > free/2 {
		t.Errorf("the lock was free %d times and held %d times", free, held)
	}
}

// A file and resources that change at the same time are both in use in the end.
func TestFileAndResourcesChangeTogether(t *testing.T) {
	r := startReloading(t, "flows: { unknownModels: shared }\n", nil)
	p := r.pool
	p.naming.pool = names.Pool{Group: kubeapi.PoolGroupVersion.Group, Name: "chat"}
	large := rewrites(2) // so that a merge takes long enough for the other change
	for i := range 10 {
		var both sync.WaitGroup
		both.Go(func() {
			p.resourcesChanged(names.Resources{
				Rewrites: large, Objectives: []*kubeapi.InferenceObjective{objective(fmt.Sprint("cluster", i), 1)},
			})
		})
		both.Go(func() {
			file := p.naming.file
			file.Objectives = []request.Objective{{Name: fmt.Sprint("file", i), Priority: 1}}
			if err := p.reconfigure(p.flow, p.scheduler, file); err != nil {
				t.Error(err)
			}
		})
		both.Wait()
		want := []request.Objective{{Name: fmt.Sprint("file", i), Priority: 1}, {Name: fmt.Sprint("cluster", i), Priority: 1}}
		if got := p.streams.Objectives; !reflect.DeepEqual(got, want) {
			t.Fatalf("objectives %+v, want %+v", got, want)
		}
	}
}
