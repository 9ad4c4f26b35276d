package kubeapi

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// PoolGroupVersion is the group and version of InferencePool.
var PoolGroupVersion = schema.GroupVersion{Group: "inference.networking.k8s.io", Version: "v1"}

// NamesGroupVersion is the group and version of InferenceObjective and InferenceModelRewrite.
var NamesGroupVersion = schema.GroupVersion{Group: "llm-d.ai", Version: "v1alpha2"}

// OldGroupVersion is the deprecated group and version of InferenceObjective and InferenceModelRewrite, and the only one of
// InferenceModel.
var OldGroupVersion = schema.GroupVersion{Group: "inference.networking.x-k8s.io", Version: "v1alpha2"}

// AddToScheme registers the types of this package. InferenceObjective and InferenceModelRewrite are in two groups, so a
// client that derives the group from the Go type refuses them: name the group to it.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(PoolGroupVersion, &InferencePool{}, &InferencePoolList{})
	for _, gv := range []schema.GroupVersion{NamesGroupVersion, OldGroupVersion} {
		s.AddKnownTypes(gv, &InferenceObjective{}, &InferenceObjectiveList{}, &InferenceModelRewrite{}, &InferenceModelRewriteList{})
	}
	s.AddKnownTypes(OldGroupVersion, &InferenceModel{}, &InferenceModelList{})
	for _, gv := range []schema.GroupVersion{PoolGroupVersion, NamesGroupVersion, OldGroupVersion} {
		metav1.AddToGroupVersion(s, gv)
	}
	return nil
}
