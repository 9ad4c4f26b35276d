package names

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-epp/weir/internal/kubeapi"
)

// mergeObjectives returns the file's objectives, then the cluster's, and judges these.
func (n *Names) mergeObjectives(file []Objective, pool Pool, list []*kubeapi.InferenceObjective) []Objective {
	inFile := map[string]bool{}
	merged := make([]Objective, 0, len(file))
	for _, o := range file {
		inFile[o.Name] = true
		o.From = Origin{Kind: KindFile}
		merged = append(merged, o)
	}
	meta := func(o *kubeapi.InferenceObjective) *metav1.ObjectMeta { return &o.ObjectMeta }
	ours := func(o *kubeapi.InferenceObjective) bool { return pool.has(o.Spec.PoolRef) }
	for _, o := range oldestFirst(list, meta, ours) {
		if inFile[o.Name] {
			n.judge(KindObjective, &o.ObjectMeta, ReasonNameInUse, "the configuration file has an objective of this name")
			continue
		}
		if len(merged)-len(file) == MaxNames {
			n.judge(KindObjective, &o.ObjectMeta, ReasonTooManyNames, tooMany("objectives"))
			continue
		}
		objective := Objective{Name: o.Name, From: Origin{KindObjective, o.Name}}
		if o.Spec.Priority != nil {
			objective.Priority = int(*o.Spec.Priority)
		}
		merged = append(merged, objective)
		n.judge(KindObjective, &o.ObjectMeta, ReasonAccepted, fmt.Sprintf("in use with priority %d", objective.Priority))
	}
	slices.SortFunc(merged[len(file):], func(a, b Objective) int { return cmp.Compare(a.Name, b.Name) })
	return merged
}
