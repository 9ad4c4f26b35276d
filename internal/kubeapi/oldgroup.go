package kubeapi

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// NamesGroupVersion is the group and version of InferenceObjective and InferenceModelRewrite.
var NamesGroupVersion = schema.GroupVersion{Group: "llm-d.ai", Version: "v1alpha2"}

// OldGroupVersion is the deprecated group and version of InferenceObjective and InferenceModelRewrite, and the only one of
// InferenceModel.
var OldGroupVersion = schema.GroupVersion{Group: "inference.networking.x-k8s.io", Version: "v1alpha2"}

// OldInferenceObjective is InferenceObjective in the deprecated group. Clients tell groups apart by Go type, so it has
// its own.
type OldInferenceObjective struct{ InferenceObjective }

// DeepCopy returns a copy that shares nothing with o.
func (o *OldInferenceObjective) DeepCopy() *OldInferenceObjective {
	return &OldInferenceObjective{*o.InferenceObjective.DeepCopy()}
}

// DeepCopyObject implements runtime.Object.
func (o *OldInferenceObjective) DeepCopyObject() runtime.Object { return o.DeepCopy() }

// OldInferenceObjectiveList is a list of OldInferenceObjectives.
type OldInferenceObjectiveList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []OldInferenceObjective `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *OldInferenceObjectiveList) DeepCopyObject() runtime.Object {
	out := *l
	out.ListMeta = *l.ListMeta.DeepCopy()
	out.Items = copies(l.Items)
	return &out
}

// OldInferenceModelRewrite is InferenceModelRewrite in the deprecated group.
type OldInferenceModelRewrite struct{ InferenceModelRewrite }

// DeepCopy returns a copy that shares nothing with r.
func (r *OldInferenceModelRewrite) DeepCopy() *OldInferenceModelRewrite {
	return &OldInferenceModelRewrite{*r.InferenceModelRewrite.DeepCopy()}
}

// DeepCopyObject implements runtime.Object.
func (r *OldInferenceModelRewrite) DeepCopyObject() runtime.Object { return r.DeepCopy() }

// OldInferenceModelRewriteList is a list of OldInferenceModelRewrites.
type OldInferenceModelRewriteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []OldInferenceModelRewrite `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *OldInferenceModelRewriteList) DeepCopyObject() runtime.Object {
	out := *l
	out.ListMeta = *l.ListMeta.DeepCopy()
	out.Items = copies(l.Items)
	return &out
}
