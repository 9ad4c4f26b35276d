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
	metav1.AddToGroupVersion(s, PoolGroupVersion)
	return nil
}
