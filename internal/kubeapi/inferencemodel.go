package kubeapi

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// InferenceModel is a model that clients may ask for, from the group inference.networking.x-k8s.io. Newer releases of
// the Gateway API Inference Extension do not have it.
type InferenceModel struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   InferenceModelSpec `json:"spec"`
	Status Status             `json:"status,omitzero"`
}

// InferenceModelSpec has the model's name for clients, its criticality and its targets.
type InferenceModelSpec struct {
	ModelName string `json:"modelName"`
	// Criticality is Critical, Standard or Sheddable, or empty, which means Standard.
	Criticality string `json:"criticality,omitempty"`
	// TargetModels serve it; without any, the model's own name does.
	TargetModels []TargetModel `json:"targetModels,omitempty"`
	PoolRef      PoolRef       `json:"poolRef"`
}

// TargetModel is a name under which model servers serve an InferenceModel.
type TargetModel struct {
	Name string `json:"name"`
	// Weight is 1 to 1,000,000, or nil for all targets of the model.
	Weight *int32 `json:"weight,omitempty"`
}

// InferenceModelList is a list of InferenceModels.
type InferenceModelList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []InferenceModel `json:"items"`
}

// DeepCopy returns a copy that shares nothing with m.
func (m *InferenceModel) DeepCopy() *InferenceModel {
	out := *m
	out.ObjectMeta = *m.ObjectMeta.DeepCopy()
	out.Spec.PoolRef = m.Spec.PoolRef.deepCopy()
	out.Spec.TargetModels = slices.Clone(m.Spec.TargetModels)
	for i := range out.Spec.TargetModels {
		out.Spec.TargetModels[i].Weight = copyOf(m.Spec.TargetModels[i].Weight)
	}
	out.Status = m.Status.deepCopy()
	return &out
}

// DeepCopyObject implements runtime.Object.
func (m *InferenceModel) DeepCopyObject() runtime.Object { return m.DeepCopy() }

// DeepCopyObject implements runtime.Object.
func (l *InferenceModelList) DeepCopyObject() runtime.Object {
	out := *l
	out.ListMeta = *l.ListMeta.DeepCopy()
	out.Items = copies(l.Items)
	return &out
}
