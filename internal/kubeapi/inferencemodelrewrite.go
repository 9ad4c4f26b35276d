package kubeapi

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// InferenceModelRewrite replaces the model that requests ask for, from the group llm-d.ai or the deprecated
// inference.networking.x-k8s.io.
type InferenceModelRewrite struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   InferenceModelRewriteSpec `json:"spec"`
	Status Status                    `json:"status,omitzero"`
}

// InferenceModelRewriteSpec has the rules; the first matching rule counts.
type InferenceModelRewriteSpec struct {
	PoolRef PoolRef       `json:"poolRef"`
	Rules   []RewriteRule `json:"rules"`
}

// RewriteRule applies to the models named by its matches, or to all models if it has none.
type RewriteRule struct {
	Matches []RewriteMatch  `json:"matches,omitempty"`
	Targets []RewriteTarget `json:"targets,omitempty"`
}

// RewriteMatch matches requests by their model.
type RewriteMatch struct {
	Model ModelMatch `json:"model"`
}

// ModelMatch matches a model by its name.
type ModelMatch struct {
	// Type is "Exact", or empty, which means the same.
	Type  string `json:"type,omitempty"`
	Value string `json:"value"`
}

// RewriteTarget is a model that requests are rewritten to.
type RewriteTarget struct {
	ModelRewrite string `json:"modelRewrite"`
	// Weight is 1 to 1,000,000, or nil for all targets of the rule.
	Weight *int32 `json:"weight,omitempty"`
}

// InferenceModelRewriteList is a list of InferenceModelRewrites.
type InferenceModelRewriteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []InferenceModelRewrite `json:"items"`
}

// DeepCopy returns a copy that shares nothing with r.
func (r *InferenceModelRewrite) DeepCopy() *InferenceModelRewrite {
	out := *r
	out.ObjectMeta = *r.ObjectMeta.DeepCopy()
	out.Spec.PoolRef = r.Spec.PoolRef.deepCopy()
	out.Spec.Rules = slices.Clone(r.Spec.Rules)
	for i := range out.Spec.Rules {
		out.Spec.Rules[i] = out.Spec.Rules[i].deepCopy()
	}
	out.Status = r.Status.deepCopy()
	return &out
}

func (r RewriteRule) deepCopy() RewriteRule {
	r.Matches, r.Targets = slices.Clone(r.Matches), slices.Clone(r.Targets)
	for i := range r.Targets {
		r.Targets[i].Weight = copyOf(r.Targets[i].Weight)
	}
	return r
}

// DeepCopyObject implements runtime.Object.
func (r *InferenceModelRewrite) DeepCopyObject() runtime.Object { return r.DeepCopy() }

// DeepCopyObject implements runtime.Object.
func (l *InferenceModelRewriteList) DeepCopyObject() runtime.Object {
	out := *l
	out.ListMeta = *l.ListMeta.DeepCopy()
	out.Items = copies(l.Items)
	return &out
}
