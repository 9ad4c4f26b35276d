package kubeapi

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// InferenceObjective is a named priority, from the group llm-d.ai or the deprecated inference.networking.x-k8s.io.
type InferenceObjective struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   InferenceObjectiveSpec `json:"spec"`
	Status Status                 `json:"status,omitzero"`
}

// InferenceObjectiveSpec has the priority and its pool.
type InferenceObjectiveSpec struct {
	PoolRef PoolRef `json:"poolRef"`
	// Priority is nil if it is unset, which means 0.
	Priority *int32 `json:"priority,omitempty"`
}

// InferenceObjectiveList is a list of InferenceObjectives.
type InferenceObjectiveList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []InferenceObjective `json:"items"`
}

// DeepCopy returns a copy that shares nothing with o.
func (o *InferenceObjective) DeepCopy() *InferenceObjective {
	out := *o
	out.ObjectMeta = *o.ObjectMeta.DeepCopy()
	out.Spec.PoolRef = o.Spec.PoolRef.deepCopy()
	out.Spec.Priority = copyOf(o.Spec.Priority)
	out.Status = o.Status.deepCopy()
	return &out
}

// DeepCopyObject implements runtime.Object.
func (o *InferenceObjective) DeepCopyObject() runtime.Object { return o.DeepCopy() }

// DeepCopyObject implements runtime.Object.
func (l *InferenceObjectiveList) DeepCopyObject() runtime.Object {
	out := *l
	out.ListMeta = *l.ListMeta.DeepCopy()
	out.Items = copies(l.Items)
	return &out
}
