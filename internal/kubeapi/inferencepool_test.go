package kubeapi

import (
	"encoding/json"
	"reflect"
	"testing"
)

// An object in a user's form keeps its meaning, and its copy shares nothing with it.
func TestInferencePool(t *testing.T) {
	const text = `{"apiVersion":"inference.networking.k8s.io/v1","kind":"InferencePool","metadata":{"name":"chat"},
		"spec":{"selector":{"matchLabels":{"app":"vllm"}},"targetPorts":[{"number":8000},{"number":8001}],
		"appProtocol":"kubernetes.io/h2c","unknown":true,
		"endpointPickerRef":{"name":"weir","port":{"number":9002},"failureMode":"FailOpen"}}}`
	var p InferencePool
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	if p.Name != "chat" || p.Spec.Selector.MatchLabels["app"] != "vllm" || p.Spec.TargetPorts[1].Number != 8001 ||
		p.Spec.AppProtocol != "kubernetes.io/h2c" || p.Spec.EndpointPickerRef.Port.Number != 9002 ||
		p.Spec.EndpointPickerRef.FailureMode != "FailOpen" {
		t.Errorf("decoded as %+v", p)
	}
	before := p.DeepCopy()
	if !reflect.DeepEqual(&p, before) {
		t.Errorf("the copy %+v differs from %+v", before, p)
	}
	after := p.DeepCopyObject().(*InferencePool)
	after.Spec.Selector.MatchLabels["app"], after.Spec.TargetPorts[0].Number = "other", 1
	after.Spec.EndpointPickerRef.Name, after.Spec.EndpointPickerRef.Port.Number = "other", 1
	if !reflect.DeepEqual(&p, before) {
		t.Errorf("changing a copy changed the original: %+v", p)
	}
	list := (&InferencePoolList{Items: []InferencePool{p}}).DeepCopyObject().(*InferencePoolList)
	list.Items[0].Spec.TargetPorts[0].Number = 1
	if !reflect.DeepEqual(&p, before) {
		t.Errorf("changing a copied list changed the original: %+v", p)
	}
}
