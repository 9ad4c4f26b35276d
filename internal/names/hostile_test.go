package names

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-epp/weir/internal/kubeapi"
)

func at(second int64, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Unix(second, 0))}
}

func ours() kubeapi.PoolRef { return kubeapi.PoolRef{Name: pool.Name} }

// randomResources has few names and ages, so that resources conflict, and some invalid ones.
func randomResources(random *rand.Rand) Resources {
	var r Resources
	name := func() string { return string(rune('a' + random.IntN(4))) }
	weight := func() *int32 {
		if random.IntN(2) == 0 {
			return nil
		}
		return new(random.Int32N(3))
	}
	for i := range random.IntN(5) {
		r.Objectives = append(r.Objectives, &kubeapi.InferenceObjective{
			ObjectMeta: at(random.Int64N(3), fmt.Sprintf("o%d", i)), Spec: kubeapi.InferenceObjectiveSpec{PoolRef: ours()},
		})
	}
	for i := range random.IntN(5) {
		m := &kubeapi.InferenceModel{
			ObjectMeta: at(random.Int64N(3), fmt.Sprintf("m%d", i)), Spec: kubeapi.InferenceModelSpec{ModelName: name(), PoolRef: ours()},
		}
		for range random.IntN(3) {
			m.Spec.TargetModels = append(m.Spec.TargetModels, kubeapi.TargetModel{Name: name(), Weight: weight()})
		}
		r.Models = append(r.Models, m)
	}
	for i := range random.IntN(5) {
		w := &kubeapi.InferenceModelRewrite{
			ObjectMeta: at(random.Int64N(3), fmt.Sprintf("r%d", i)), Spec: kubeapi.InferenceModelRewriteSpec{PoolRef: ours()},
		}
		for range random.IntN(4) {
			var rule kubeapi.RewriteRule
			for range random.IntN(3) {
				rule.Matches = append(rule.Matches, kubeapi.RewriteMatch{Model: kubeapi.ModelMatch{Value: name()}})
			}
			for range 1 + random.IntN(2) {
				rule.Targets = append(rule.Targets, kubeapi.RewriteTarget{ModelRewrite: name(), Weight: weight()})
			}
			w.Spec.Rules = append(w.Spec.Rules, rule)
		}
		r.Rewrites = append(r.Rewrites, w)
	}
	return r
}

// The largest possible resources do not affect others, get their errors in a bounded text, and keep little memory.
func TestHostileResources(t *testing.T) {
	many := func(n int, rule func(i int) kubeapi.RewriteRule) []kubeapi.RewriteRule {
		rules := make([]kubeapi.RewriteRule, n)
		for i := range rules {
			rules[i] = rule(i)
		}
		return rules
	}
	match := func(name string) []kubeapi.RewriteMatch {
		return []kubeapi.RewriteMatch{{Model: kubeapi.ModelMatch{Value: name}}}
	}
	to := func(name string) []kubeapi.RewriteTarget { return []kubeapi.RewriteTarget{{ModelRewrite: name}} }
	hostile := map[string]struct {
		rules          []kubeapi.RewriteRule
		reason, begins string
	}{
		"100,000 rules for a model each": {
			many(100_000, func(i int) kubeapi.RewriteRule {
				return kubeapi.RewriteRule{Matches: match(fmt.Sprint(i)), Targets: to("x")}
			}),
			"TooManyNames", "older resources of the pool name so many models that this one would exceed 10000",
		},
		"100,000 rules with nothing in them": {
			many(100_000, func(int) kubeapi.RewriteRule { return kubeapi.RewriteRule{Matches: match("")} }),
			"Invalid", `spec.rules[0].matches[0].model.value: "": must be given; spec.rules[0].targets: []: must have`,
		},
		"one target too many": {
			[]kubeapi.RewriteRule{{Targets: make([]kubeapi.RewriteTarget, 65)}},
			"Invalid", "spec.rules[0].targets: 65 targets: must be at most 64",
		},
		"100,000 targets": {
			[]kubeapi.RewriteRule{{Targets: make([]kubeapi.RewriteTarget, 100_000)}},
			"Invalid", "spec.rules[0].targets: 100000 targets: must be at most 64",
		},
		"a name of 1 MB": {
			[]kubeapi.RewriteRule{{Matches: match(strings.Repeat("€", 350_000)), Targets: to("x")}},
			"Invalid", "spec.rules[0].matches[0].model.value: 1050000 bytes: must be at most 1024",
		},
		"a type of 1 MB": {
			[]kubeapi.RewriteRule{{
				Matches: []kubeapi.RewriteMatch{{Model: kubeapi.ModelMatch{Type: strings.Repeat("€", 350_000), Value: "v"}}}, Targets: to("x"),
			}},
			"Invalid", `spec.rules[0].matches[0].model.type: "€€€`,
		},
	}
	for name, test := range hostile {
		t.Run(name, func(t *testing.T) {
			bad := &kubeapi.InferenceModelRewrite{
				ObjectMeta: at(1, "hostile"), Spec: kubeapi.InferenceModelRewriteSpec{PoolRef: ours(), Rules: test.rules},
			}
			good := &kubeapi.InferenceModelRewrite{ObjectMeta: at(2, "good"), Spec: kubeapi.InferenceModelRewriteSpec{
				PoolRef: ours(), Rules: []kubeapi.RewriteRule{{Matches: match("chat"), Targets: to("v1")}},
			}}
			n := Merge(File{}, pool, Resources{Rewrites: []*kubeapi.InferenceModelRewrite{bad, good}})
			v := n.Verdicts[0]
			if v.Reason != test.reason || !strings.HasPrefix(v.Message, test.begins) || len(v.Message) > MaxMessageBytes || !utf8.ValidString(v.Message) {
				t.Errorf("%s, %d bytes: %s", v.Reason, len(v.Message), v.Message)
			}
			if got := show(Names{Models: n.Models, OtherTargets: n.OtherTargets}); got != "model chat: v1 1 (InferenceModelRewrite/good)\n" {
				t.Errorf("the others: %s", got)
			}
		})
	}
}

// 10,000 names count, of the oldest resources. With the most targets they keep less than 64 MiB.
func TestNamesAreBounded(t *testing.T) {
	var r Resources
	for i := range MaxNames + 5 {
		name := fmt.Sprintf("n%05d", i)
		age := int64(MaxNames + 5 - i) // the last by name is the oldest
		r.Objectives = append(r.Objectives, &kubeapi.InferenceObjective{
			ObjectMeta: at(age, name), Spec: kubeapi.InferenceObjectiveSpec{PoolRef: ours()},
		})
		m := &kubeapi.InferenceModel{ObjectMeta: at(age, name), Spec: kubeapi.InferenceModelSpec{ModelName: name, PoolRef: ours()}}
		for j := range MaxTargets {
			m.Spec.TargetModels = append(m.Spec.TargetModels, kubeapi.TargetModel{Name: fmt.Sprint(j)})
		}
		r.Models = append(r.Models, m)
	}
	heap := func() uint64 {
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	before := heap()
	n := Merge(File{Models: []Model{{Name: "file"}}, Objectives: []Objective{{Name: "file"}}}, pool, r)
	if kept := heap() - before; kept > 64<<20 {
		t.Errorf("%d bytes", kept)
	}
	if len(n.Objectives) != MaxNames+1 || len(n.Models) != MaxNames+1 {
		t.Errorf("%d objectives, %d models", len(n.Objectives), len(n.Models))
	}
	refused := map[string]bool{}
	for _, v := range n.Verdicts {
		if v.Reason == ReasonTooManyNames {
			refused[v.Kind+"/"+v.Name] = true
		}
	}
	for i := range 5 {
		for _, kind := range []string{KindObjective, KindModel} {
			if !refused[fmt.Sprintf("%s/n%05d", kind, i)] {
				t.Errorf("the newest, %s n%05d, is not refused", kind, i)
			}
		}
	}
	if len(refused) != 10 {
		t.Errorf("%d refused", len(refused))
	}
	runtime.KeepAlive(r)
}

// A name counts once, for any number of resources with it. A resource beyond MaxNames is refused whole, and a smaller
// one after it is taken.
func TestNamesAreCountedOnce(t *testing.T) {
	rewrite := func(age int64, name string, from, to int) *kubeapi.InferenceModelRewrite {
		rule := kubeapi.RewriteRule{Targets: []kubeapi.RewriteTarget{{ModelRewrite: "v1"}}}
		for i := from; i < to; i++ {
			rule.Matches = append(rule.Matches, kubeapi.RewriteMatch{Model: kubeapi.ModelMatch{Value: fmt.Sprint(i)}})
		}
		return &kubeapi.InferenceModelRewrite{
			ObjectMeta: at(age, name), Spec: kubeapi.InferenceModelRewriteSpec{PoolRef: ours(), Rules: []kubeapi.RewriteRule{rule}},
		}
	}
	model := func(age int64, name string) *kubeapi.InferenceModel {
		return &kubeapi.InferenceModel{ObjectMeta: at(age, name), Spec: kubeapi.InferenceModelSpec{ModelName: name, PoolRef: ours()}}
	}
	n := Merge(File{}, pool, Resources{
		Rewrites: []*kubeapi.InferenceModelRewrite{
			rewrite(1, "first", 0, 6000), rewrite(2, "too-large", 6000, MaxNames+1), rewrite(3, "overlapping", 5000, MaxNames-1),
		},
		Models: []*kubeapi.InferenceModel{model(4, "0"), model(5, "last"), model(6, "beyond"), model(7, "1")},
	})
	if len(n.Models) != MaxNames {
		t.Errorf("%d models", len(n.Models))
	}
	var refused []string
	for _, v := range n.Verdicts {
		if !v.Accepted() {
			refused = append(refused, v.Name+" "+v.Reason)
		}
	}
	if want := []string{"too-large TooManyNames", "beyond TooManyNames"}; !slices.Equal(refused, want) {
		t.Errorf("refused %q, want %q", refused, want)
	}
}

// A resource is read only as far as its verdict has room.
func TestReadingStopsAtManyProblems(t *testing.T) {
	matches := kubeapi.RewriteRule{Matches: make([]kubeapi.RewriteMatch, 100_000)}
	for name, rules := range map[string][]kubeapi.RewriteRule{"rules": make([]kubeapi.RewriteRule, 100_000), "matches": {matches, matches}} {
		_, ps := rulesOf(&kubeapi.InferenceModelRewrite{Spec: kubeapi.InferenceModelRewriteSpec{Rules: rules}})
		if len(ps) <= maxProblems || len(ps) > 2*maxProblems {
			t.Errorf("%s: %d problems", name, len(ps))
		}
	}
}
