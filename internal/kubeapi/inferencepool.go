package kubeapi

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// InferencePool is a set of pods that serve models, from the group inference.networking.k8s.io.
type InferencePool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec InferencePoolSpec `json:"spec"`
}

// InferencePoolSpec says which pods are in the pool, and at which ports they serve.
type InferencePoolSpec struct {
	Selector LabelSelector `json:"selector"`
	// TargetPorts has 1 to 8 entries; each port of each pod is an endpoint.
	TargetPorts []Port `json:"targetPorts"`
	// AppProtocol is "http" (the default) or "kubernetes.io/h2c".
	AppProtocol string `json:"appProtocol,omitempty"`
	// EndpointPickerRef names the endpoint picker of the pool; nil if there is none.
	EndpointPickerRef *EndpointPickerRef `json:"endpointPickerRef,omitempty"`
}

// LabelSelector selects the objects that have all these labels.
type LabelSelector struct {
	MatchLabels map[string]string `json:"matchLabels"`
}

// Port is a port number, 1 to 65535.
type Port struct {
	Number int32 `json:"number"`
}

// EndpointPickerRef is a reference to the Service of an endpoint picker.
type EndpointPickerRef struct {
	Group       string `json:"group,omitempty"`
	Kind        string `json:"kind,omitempty"`
	Name        string `json:"name"`
	Port        *Port  `json:"port,omitempty"`
	FailureMode string `json:"failureMode,omitempty"`
}

// InferencePoolList is a list of InferencePools.
type InferencePoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []InferencePool `json:"items"`
}

// DeepCopy returns a copy that shares nothing with p.
func (p *InferencePool) DeepCopy() *InferencePool {
	out := *p
	out.ObjectMeta = *p.ObjectMeta.DeepCopy()
	out.Spec.Selector.MatchLabels = maps.Clone(p.Spec.Selector.MatchLabels)
	out.Spec.TargetPorts = slices.Clone(p.Spec.TargetPorts)
	if p.Spec.EndpointPickerRef != nil {
		ref := *p.Spec.EndpointPickerRef
		if ref.Port != nil {
			port := *ref.Port
			ref.Port = &port
		}
		out.Spec.EndpointPickerRef = &ref
	}
	return &out
}

// DeepCopyObject implements runtime.Object.
func (p *InferencePool) DeepCopyObject() runtime.Object { return p.DeepCopy() }

// DeepCopyObject implements runtime.Object.
func (l *InferencePoolList) DeepCopyObject() runtime.Object {
	out := *l
	out.ListMeta = *l.ListMeta.DeepCopy()
	out.Items = copies(l.Items)
	return &out
}
