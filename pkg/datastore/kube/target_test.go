package kube

import (
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/kubeapi"
)

func poolOf(labels map[string]string, ports ...int32) *kubeapi.InferencePool {
	p := &kubeapi.InferencePool{}
	p.Spec.Selector.MatchLabels = labels
	for _, n := range ports {
		p.Spec.TargetPorts = append(p.Spec.TargetPorts, kubeapi.Port{Number: n})
	}
	return p
}

func TestTargetOf(t *testing.T) {
	vllm := map[string]string{"app": "vllm", "model": "chat"}
	got, err := targetOf(poolOf(vllm, 8000, 8001))
	if err != nil || got.text != "app=vllm,model=chat" || len(got.ports) != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	// Values that the CRD of another version might let through.
	for want, pool := range map[string]*kubeapi.InferencePool{
		"spec.selector.matchLabels: is empty, and would select every pod": poolOf(nil, 8000),
		"spec.selector.matchLabels: values[0][app]: Invalid value":        poolOf(map[string]string{"app": "a b"}, 8000),
		"spec.targetPorts: must be 1 to 8 ports":                          poolOf(vllm),
		"spec.targetPorts: must be 1 to 8 ports ":                         poolOf(vllm, 1, 2, 3, 4, 5, 6, 7, 8, 9),
		"spec.targetPorts: 0: must be from 1 to 65535":                    poolOf(vllm, 8000, 0),
		"spec.targetPorts: 70000: must be from 1 to 65535":                poolOf(vllm, 70000),
		"spec.targetPorts: 8000: must occur only once":                    poolOf(vllm, 8000, 8000),
	} {
		if _, err := targetOf(pool); err == nil || !strings.Contains(err.Error(), strings.TrimSpace(want)) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestConfigValidate(t *testing.T) {
	valid := []Config{
		{Namespace: "serving", Pool: "chat", Group: kubeapi.PoolGroupVersion.Group},
		{Namespace: "serving", Selector: "app=vllm,tier in (a,b),!canary", Ports: []int{8000, 8001}},
	}
	for _, c := range valid {
		if err := c.Validate(); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
	for _, c := range []struct {
		config Config
		want   []string
	}{
		{
			Config{Namespace: "Serving!", Pool: "Chat_", Group: "inference.networking.x-k8s.io", Selector: "a=b", Ports: []int{1}},
			[]string{
				`Namespace: "Serving!": must be the name of a namespace`, `Pool: "Chat_": must be the name of an InferencePool`,
				`Group: "inference.networking.x-k8s.io": must be inference.networking.k8s.io`,
				`Selector: "a=b": Pool is given already`, "Ports: [1]: the ports are those of the InferencePool",
			},
		},
		{Config{Namespace: "a", Selector: "a==="}, []string{`Selector: "a===": must be a label selector`, "Ports: []: must be 1 to 8 ports"}},
		{Config{Namespace: "a", Selector: " ", Ports: []int{8000}}, []string{"selects every pod"}},
		{Config{Namespace: "a", Selector: "a", Ports: []int{8000, 8000}}, []string{"8000: must occur only once"}},
		{Config{Namespace: "a", Selector: "a", Ports: []int{65536}}, []string{"65536: must be from 1 to 65535"}},
	} {
		err := c.config.Validate()
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %v, want %s", c.config, err, want)
			}
		}
	}
}
