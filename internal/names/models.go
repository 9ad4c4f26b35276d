package names

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-epp/weir/internal/kubeapi"
	"github.com/weir-epp/weir/pkg/invalid"
)

// The criticalities of an InferenceModel.
const (
	critical  = "Critical"
	standard  = "Standard"
	sheddable = "Sheddable"
)

// readModels reads all InferenceModels of the pool and judges them. The rewrites have been read.
func (c *cluster) readModels(n *Names, list []*kubeapi.InferenceModel) {
	meta := func(m *kubeapi.InferenceModel) *metav1.ObjectMeta { return &m.ObjectMeta }
	ours := func(m *kubeapi.InferenceModel) bool { return c.pool.hasInEither(m.Spec.PoolRef) }
	known := len(c.rules)
	for _, o := range oldestFirst(list, meta, ours) {
		model, ps := modelOf(o)
		older, taken := c.models[model.Name]
		_, matched := c.rules[model.Name]
		switch {
		case len(ps) > 0:
			n.judgeInvalid(KindModel, &o.ObjectMeta, ps)
		case c.inFile[model.Name]:
			n.judge(KindModel, &o.ObjectMeta, ReasonModelNameInUse,
				fmt.Sprintf("spec.modelName: %q: the configuration file has this model", model.Name))
		case taken:
			n.judge(KindModel, &o.ObjectMeta, ReasonModelNameInUse,
				fmt.Sprintf("spec.modelName: %q: %s, which is older, has it too", model.Name, older.CriticalityFrom))
		case !matched && known == MaxNames:
			n.judge(KindModel, &o.ObjectMeta, ReasonTooManyNames, tooMany("models"))
		default:
			if !matched {
				known++
			}
			c.models[model.Name] = model
			n.judge(KindModel, &o.ObjectMeta, ReasonAccepted, "in use as "+model.Criticality)
		}
	}
}

// modelOf returns an InferenceModel's model, or its problems.
func modelOf(o *kubeapi.InferenceModel) (m Model, ps invalid.Problems) {
	from := Origin{KindModel, o.Name}
	m = Model{Name: o.Spec.ModelName, Criticality: o.Spec.Criticality, CriticalityFrom: from, TargetsFrom: from}
	checkName(&ps, invalid.At("spec", "modelName"), m.Name)
	if m.Criticality == "" {
		m.Criticality = standard
	}
	if known := []string{critical, standard, sheddable}; !slices.Contains(known, m.Criticality) {
		invalid.OneOf(&ps, invalid.At("spec", "criticality"), m.Criticality, known)
	}
	at := invalid.At("spec", "targetModels")
	if checkTargetCount(&ps, at, len(o.Spec.TargetModels)) {
		m.Targets = targetsOf(&ps, at, "name", o.Spec.TargetModels)
	}
	return m, ps
}
