package kubeapi

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// PoolGroupVersion is the group and version of InferencePool.
var PoolGroupVersion = schema.GroupVersion{Group: "inference.networking.k8s.io", Version: "v1"}

// AddToScheme registers the types of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(PoolGroupVersion, &InferencePool{}, &InferencePoolList{})
	s.AddKnownTypes(NamesGroupVersion,
		&InferenceObjective{}, &InferenceObjectiveList{}, &InferenceModelRewrite{}, &InferenceModelRewriteList{})
	s.AddKnownTypes(OldGroupVersion, &InferenceModel{}, &InferenceModelList{})
	for kind, object := range map[string]runtime.Object{
		"InferenceObjective": &OldInferenceObjective{}, "InferenceObjectiveList": &OldInferenceObjectiveList{},
		"InferenceModelRewrite": &OldInferenceModelRewrite{}, "InferenceModelRewriteList": &OldInferenceModelRewriteList{},
	} {
		s.AddKnownTypeWithName(OldGroupVersion.WithKind(kind), object)
	}
	for _, gv := range []schema.GroupVersion{PoolGroupVersion, NamesGroupVersion, OldGroupVersion} {
		metav1.AddToGroupVersion(s, gv)
	}
	return nil
}
