package names

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/weir-epp/weir/internal/kubeapi"
)

var pool = Pool{Group: "inference.networking.k8s.io", Name: "chat"}

// read returns the resources of a text, with objects between lines of "---". Resources without a poolRef get the
// pool's.
func read(t *testing.T, text string) Resources {
	t.Helper()
	var r Resources
	for object := range strings.SplitSeq(text, "---") {
		var head struct {
			Kind string `json:"kind"`
		}
		if err := yaml.Unmarshal([]byte(object), &head); err != nil {
			t.Fatalf("%v in %s", err, object)
		}
		switch head.Kind {
		case "InferenceObjective":
			o := &kubeapi.InferenceObjective{}
			unmarshal(t, object, o)
			refer(&o.Spec.PoolRef)
			r.Objectives = append(r.Objectives, o)
		case "InferenceModelRewrite":
			o := &kubeapi.InferenceModelRewrite{}
			unmarshal(t, object, o)
			refer(&o.Spec.PoolRef)
			r.Rewrites = append(r.Rewrites, o)
		case "InferenceModel":
			o := &kubeapi.InferenceModel{}
			unmarshal(t, object, o)
			refer(&o.Spec.PoolRef)
			r.Models = append(r.Models, o)
		case "":
		default:
			t.Fatalf("kind %s", head.Kind)
		}
	}
	return r
}

func unmarshal(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
}

func refer(r *kubeapi.PoolRef) {
	if r.Name == "" {
		r.Name = pool.Name
	}
}

// show has a line for each name, and for each resource not in use.
func show(n Names) string {
	var b strings.Builder
	for _, o := range n.Objectives {
		fmt.Fprintf(&b, "objective %s: %d (%s)\n", o.Name, o.Priority, o.From)
	}
	for _, m := range n.Models {
		fmt.Fprintf(&b, "model %s: %s (%s)", m.Name, targetText(m.Targets), m.TargetsFrom)
		if m.Criticality != "" {
			fmt.Fprintf(&b, ", %s (%s)", m.Criticality, m.CriticalityFrom)
		}
		b.WriteByte('\n')
	}
	if len(n.OtherTargets) > 0 {
		fmt.Fprintf(&b, "other models: %s (%s)\n", targetText(n.OtherTargets), n.OtherTargetsFrom)
	}
	for _, v := range n.Verdicts {
		if !v.Accepted() {
			fmt.Fprintf(&b, "%s/%s %s: %s\n", v.Kind, v.Name, v.Reason, v.Message)
		}
	}
	return b.String()
}

func targetText(targets []Target) string {
	if len(targets) == 0 {
		return "itself"
	}
	var texts []string
	for _, t := range targets {
		texts = append(texts, fmt.Sprintf("%s %d", t.Name, t.Weight))
	}
	return strings.Join(texts, ", ")
}

func TestMerge(t *testing.T) {
	tests := []struct {
		name    string
		file    File
		cluster string
		want    string
	}{
		{
			name: "an objective has the priority of its resource, 0 if it has none",
			cluster: `
kind: InferenceObjective
metadata: { name: urgent }
spec: { priority: 10 }
---
kind: InferenceObjective
metadata: { name: batch }
spec: { priority: -5 }
---
kind: InferenceObjective
metadata: { name: plain }
`,
			want: `
objective batch: -5 (InferenceObjective/batch)
objective plain: 0 (InferenceObjective/plain)
objective urgent: 10 (InferenceObjective/urgent)
`,
		},
		{
			name: "the file's objective goes before the cluster's",
			file: File{Objectives: []Objective{{Name: "zeta", Priority: 1}, {Name: "batch", Priority: -1}}},
			cluster: `
kind: InferenceObjective
metadata: { name: batch }
spec: { priority: 100 }
---
kind: InferenceObjective
metadata: { name: other }
spec: { priority: 100 }
`,
			want: `
objective zeta: 1 (file)
objective batch: -1 (file)
objective other: 100 (InferenceObjective/other)
InferenceObjective/batch NameInUse: the configuration file has an objective of this name
`,
		},
		{
			name: "only what refers to the pool counts: by name, group and kind",
			cluster: `
kind: InferenceObjective
metadata: { name: another-pool }
spec: { poolRef: { name: code } }
---
kind: InferenceObjective
metadata: { name: another-group }
spec: { poolRef: { name: chat, group: inference.networking.x-k8s.io } }
---
kind: InferenceObjective
metadata: { name: the-core-group }
spec: { poolRef: { name: chat, group: "" } }
---
kind: InferenceObjective
metadata: { name: another-kind }
spec: { poolRef: { name: chat, kind: Service } }
---
kind: InferenceObjective
metadata: { name: the-pool }
spec: { poolRef: { name: chat, group: inference.networking.k8s.io, kind: InferencePool } }
---
kind: InferenceModelRewrite
metadata: { name: another-pool }
spec: { poolRef: { name: code }, rules: [ { targets: [ { modelRewrite: x } ] } ] }
---
kind: InferenceModelRewrite
metadata: { name: another-group }
spec: { poolRef: { name: chat, group: inference.networking.x-k8s.io }, rules: [ { targets: [ { modelRewrite: x } ] } ] }
---
kind: InferenceModel
metadata: { name: another-pool }
spec: { modelName: a, poolRef: { name: code } }
---
kind: InferenceModel
metadata: { name: another-group }
spec: { modelName: b, poolRef: { name: chat, group: example.com } }
---
kind: InferenceModel
metadata: { name: another-kind }
spec: { modelName: c, poolRef: { name: chat, kind: Service } }
`,
			want: `
objective the-pool: 0 (InferenceObjective/the-pool)
`,
		},
		{
			name: "an InferenceModel may refer to the pool in the old group or the new one",
			cluster: `
kind: InferenceModel
metadata: { name: said-nothing }
spec: { modelName: a }
---
kind: InferenceModel
metadata: { name: old }
spec: { modelName: b, poolRef: { name: chat, group: inference.networking.x-k8s.io } }
---
kind: InferenceModel
metadata: { name: new }
spec: { modelName: c, poolRef: { name: chat, group: inference.networking.k8s.io } }
`,
			want: `
model a: itself (InferenceModel/said-nothing), Standard (InferenceModel/said-nothing)
model b: itself (InferenceModel/old), Standard (InferenceModel/old)
model c: itself (InferenceModel/new), Standard (InferenceModel/new)
`,
		},
		{
			name: "a model has its criticality and its targets, equal shares where no weight is given",
			cluster: `
kind: InferenceModel
metadata: { name: m1 }
spec: { modelName: chat, criticality: Critical, targetModels: [ { name: v1, weight: 9 }, { name: v2, weight: 1 } ] }
---
kind: InferenceModel
metadata: { name: m2 }
spec: { modelName: code, criticality: Sheddable, targetModels: [ { name: c1 }, { name: c2 } ] }
---
kind: InferenceModel
metadata: { name: m3 }
spec: { modelName: twice, targetModels: [ { name: a, weight: 1 }, { name: b, weight: 2 }, { name: a, weight: 3 } ] }
`,
			want: `
model chat: v1 9, v2 1 (InferenceModel/m1), Critical (InferenceModel/m1)
model code: c1 1, c2 1 (InferenceModel/m2), Sheddable (InferenceModel/m2)
model twice: a 4, b 2 (InferenceModel/m3), Standard (InferenceModel/m3)
`,
		},
		{
			name: "of two InferenceModels of a modelName the oldest counts, of the same second the first by name",
			cluster: `
kind: InferenceModel
metadata: { name: a-newer, creationTimestamp: "2026-01-01T00:00:02Z" }
spec: { modelName: chat, criticality: Critical }
---
kind: InferenceModel
metadata: { name: c-oldest, creationTimestamp: "2026-01-01T00:00:01Z" }
spec: { modelName: chat, criticality: Sheddable }
---
kind: InferenceModel
metadata: { name: b-oldest, creationTimestamp: "2026-01-01T00:00:01Z" }
spec: { modelName: chat }
`,
			want: `
model chat: itself (InferenceModel/b-oldest), Standard (InferenceModel/b-oldest)
InferenceModel/c-oldest ModelNameInUse: spec.modelName: "chat": InferenceModel/b-oldest, which is older, has it too
InferenceModel/a-newer ModelNameInUse: spec.modelName: "chat": InferenceModel/b-oldest, which is older, has it too
`,
		},
		{
			name: "an InferenceModel that cannot be used, or is being deleted, leaves its name to the next",
			cluster: `
kind: InferenceModel
metadata: { name: broken, creationTimestamp: "2026-01-01T00:00:01Z" }
spec: { modelName: chat, criticality: Vital }
---
kind: InferenceModel
metadata: { name: going, creationTimestamp: "2026-01-01T00:00:01Z", deletionTimestamp: "2026-01-02T00:00:00Z" }
spec: { modelName: chat }
---
kind: InferenceModel
metadata: { name: good, creationTimestamp: "2026-01-01T00:00:02Z" }
spec: { modelName: chat }
`,
			want: `
model chat: itself (InferenceModel/good), Standard (InferenceModel/good)
InferenceModel/broken Invalid: spec.criticality: "Vital": must be one of Critical, Standard, Sheddable
`,
		},
		{
			name: "a rewrite has targets for the models that it matches, and makes them known without a criticality",
			cluster: `
kind: InferenceModelRewrite
metadata: { name: canary }
spec:
  rules:
  - matches: [ { model: { type: Exact, value: chat } }, { model: { value: talk } } ]
    targets: [ { modelRewrite: v1, weight: 90 }, { modelRewrite: v2, weight: 10 } ]
  - matches: [ { model: { value: code } } ]
    targets: [ { modelRewrite: c1 } ]
`,
			want: `
model chat: v1 90, v2 10 (InferenceModelRewrite/canary)
model code: c1 1 (InferenceModelRewrite/canary)
model talk: v1 90, v2 10 (InferenceModelRewrite/canary)
`,
		},
		{
			name: "exact before generic, then the oldest resource, then its first rule",
			cluster: `
kind: InferenceModelRewrite
metadata: { name: oldest, creationTimestamp: "2026-01-01T00:00:01Z" }
spec:
  rules:
  - targets: [ { modelRewrite: generic-of-oldest } ]
  - targets: [ { modelRewrite: second-generic } ]
  - matches: [ { model: { value: a } } ]
    targets: [ { modelRewrite: a-of-oldest } ]
  - matches: [ { model: { value: a } } ]
    targets: [ { modelRewrite: second-rule } ]
---
kind: InferenceModelRewrite
metadata: { name: newer, creationTimestamp: "2026-01-01T00:00:02Z" }
spec:
  rules:
  - matches: [ { model: { value: a } }, { model: { value: b } } ]
    targets: [ { modelRewrite: exact-of-newer } ]
  - targets: [ { modelRewrite: generic-of-newer } ]
`,
			want: `
model a: a-of-oldest 1 (InferenceModelRewrite/oldest)
model b: exact-of-newer 1 (InferenceModelRewrite/newer)
other models: generic-of-oldest 1 (InferenceModelRewrite/oldest)
`,
		},
		{
			name: "file, rewrite, InferenceModel, in this order and never chained",
			file: File{Models: []Model{
				{Name: "mine", Targets: []Target{{"mine-v1", 1}}}, {Name: "plain", Criticality: "Critical"},
			}},
			cluster: `
kind: InferenceModelRewrite
metadata: { name: r }
spec:
  rules:
  - matches: [ { model: { value: mine } }, { model: { value: plain } }, { model: { value: chat } } ]
    targets: [ { modelRewrite: code } ]
---
kind: InferenceModel
metadata: { name: m-mine }
spec: { modelName: mine, criticality: Sheddable, targetModels: [ { name: x } ] }
---
kind: InferenceModel
metadata: { name: m-chat }
spec: { modelName: chat, criticality: Sheddable, targetModels: [ { name: x } ] }
---
kind: InferenceModel
metadata: { name: m-code }
spec: { modelName: code, criticality: Critical, targetModels: [ { name: c1 } ] }
`,
			want: `
model mine: mine-v1 1 (file)
model plain: itself (file), Critical (file)
model chat: code 1 (InferenceModelRewrite/r), Sheddable (InferenceModel/m-chat)
model code: c1 1 (InferenceModel/m-code), Critical (InferenceModel/m-code)
InferenceModel/m-mine ModelNameInUse: spec.modelName: "mine": the configuration file has this model
`,
		},
		{
			name: "a rule for all models goes before an InferenceModel, but not before the file",
			file: File{Models: []Model{{Name: "mine"}}},
			cluster: `
kind: InferenceModelRewrite
metadata: { name: all }
spec: { rules: [ { targets: [ { modelRewrite: base } ] } ] }
---
kind: InferenceModel
metadata: { name: m }
spec: { modelName: chat, criticality: Critical, targetModels: [ { name: x } ] }
`,
			want: `
model mine: itself (file)
model chat: base 1 (InferenceModelRewrite/all), Critical (InferenceModel/m)
other models: base 1 (InferenceModelRewrite/all)
`,
		},
		{
			name: "weights are for all targets or for none, 1 to 1000000",
			cluster: `
kind: InferenceModel
metadata: { name: m1-some }
spec: { modelName: a, targetModels: [ { name: x, weight: 1 }, { name: y } ] }
---
kind: InferenceModel
metadata: { name: m2-range }
spec: { modelName: b, targetModels: [ { name: x, weight: 0 }, { name: y, weight: -1 }, { name: z, weight: 1000001 } ] }
---
kind: InferenceModel
metadata: { name: m3-together }
spec: { modelName: c, targetModels: [ { name: x, weight: 1000000 }, { name: x, weight: 1 } ] }
---
kind: InferenceModelRewrite
metadata: { name: r1-some }
spec: { rules: [ { targets: [ { modelRewrite: x }, { modelRewrite: y, weight: 2 } ] } ] }
---
kind: InferenceModelRewrite
metadata: { name: r2-zero }
spec: { rules: [ { matches: [ { model: { value: a } } ], targets: [ { modelRewrite: x, weight: 0 } ] } ] }
`,
			want: `
InferenceModelRewrite/r1-some Invalid: spec.rules[0].targets[1].weight: must be given for all targets or for none, as for the first
InferenceModelRewrite/r2-zero Invalid: spec.rules[0].targets[0].weight: 0: must be from 1 to 1000000
InferenceModel/m1-some Invalid: spec.targetModels[1].weight: must be given for all targets or for none, as for the first
InferenceModel/m2-range Invalid: spec.targetModels[0].weight: 0: must be from 1 to 1000000; ` +
				`spec.targetModels[1].weight: -1: must be from 1 to 1000000; spec.targetModels[2].weight: 1000001: must be from 1 to 1000000
InferenceModel/m3-together Invalid: spec.targetModels[1].weight: 1: must be at most 1000000 together with the other weights of this target
`,
		},
		{
			name: "what cannot be a name, a match or a target is named, and the others go on",
			cluster: `
kind: InferenceModel
metadata: { name: empty }
spec: { modelName: "", targetModels: [ { name: "" } ] }
---
kind: InferenceModel
metadata: { name: long }
spec: { modelName: ` + strings.Repeat("m", 1025) + ` }
---
kind: InferenceModel
metadata: { name: longest }
spec: { modelName: ` + strings.Repeat("m", 1024) + ` }
---
kind: InferenceModelRewrite
metadata: { name: bad }
spec:
  rules:
  - matches: [ { model: { type: Prefix, value: "" } } ]
    targets: [ { modelRewrite: "" } ]
  - matches: [ { model: { value: chat } } ]
---
kind: InferenceModelRewrite
metadata: { name: nothing-to-do }
spec: { rules: [] }
`,
			want: `
model ` + strings.Repeat("m", 1024) + `: itself (InferenceModel/longest), Standard (InferenceModel/longest)
InferenceModelRewrite/bad Invalid: spec.rules[0].matches[0].model.type: "Prefix": must be one of Exact; ` +
				`spec.rules[0].matches[0].model.value: "": must be given; spec.rules[0].targets[0].modelRewrite: "": must be given; ` +
				`spec.rules[1].targets: []: must have at least one target
InferenceModel/empty Invalid: spec.modelName: "": must be given; spec.targetModels[0].name: "": must be given
InferenceModel/long Invalid: spec.modelName: 1025 bytes: must be at most 1024
`,
		},
	}
	random := rand.New(rand.NewPCG(1, 2))
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := read(t, test.cluster)
			for range 20 { // for any order of the lists
				if got, want := show(Merge(test.file, pool, r)), strings.TrimPrefix(test.want, "\n"); got != want {
					t.Fatalf("got:\n%s\nwant:\n%s", got, want)
				}
				random.Shuffle(len(r.Objectives), func(i, j int) { r.Objectives[i], r.Objectives[j] = r.Objectives[j], r.Objectives[i] })
				random.Shuffle(len(r.Rewrites), func(i, j int) { r.Rewrites[i], r.Rewrites[j] = r.Rewrites[j], r.Rewrites[i] })
				random.Shuffle(len(r.Models), func(i, j int) { r.Models[i], r.Models[j] = r.Models[j], r.Models[i] })
			}
		})
	}
}

// The order of the lists never matters, and the lists stay unchanged: random resources with few names and ages.
func TestOrderNeverMatters(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		r := randomResources(random)
		file := File{Models: []Model{{Name: "a"}}, Objectives: []Objective{{Name: "o1", Priority: 3}}}
		want := Merge(file, pool, r)
		for range 5 {
			shuffled := Resources{slices.Clone(r.Objectives), slices.Clone(r.Rewrites), slices.Clone(r.Models)}
			random.Shuffle(len(r.Objectives), reflect.Swapper(shuffled.Objectives))
			random.Shuffle(len(r.Rewrites), reflect.Swapper(shuffled.Rewrites))
			random.Shuffle(len(r.Models), reflect.Swapper(shuffled.Models))
			if got := Merge(file, pool, shuffled); !reflect.DeepEqual(got, want) {
				t.Fatalf("got:\n%s\nwant:\n%s", show(got), show(want))
			}
		}
		seen := map[string]bool{}
		for _, m := range want.Models {
			if seen[m.Name] {
				t.Fatalf("model %s twice:\n%s", m.Name, show(want))
			}
			seen[m.Name] = true
		}
	}
}
