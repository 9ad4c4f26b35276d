package kube

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/weir-epp/weir/internal/kubeapi"
)

// target has the selector of the pool's pods, and their ports.
type target struct {
	selector labels.Selector
	text     string // the selector's; equal texts mean equal selectors
	ports    []int
	h2c      bool // they speak only HTTP/2 without TLS
}

func newTarget(selector labels.Selector, ports []int) target {
	return target{selector: selector, text: selector.String(), ports: ports}
}

func (t target) equal(o target) bool {
	return t.text == o.text && slices.Equal(t.ports, o.ports) && t.h2c == o.h2c
}

// targetOf returns the target of an InferencePool. The apiserver checks InferencePools by the schema of their CRD, but
// that may be of another version or a custom one.
func targetOf(pool *kubeapi.InferencePool) (target, error) {
	if len(pool.Spec.Selector.MatchLabels) == 0 {
		return target{}, fmt.Errorf("spec.selector.matchLabels: is empty, and would select every pod")
	}
	selector, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchLabels: pool.Spec.Selector.MatchLabels})
	if err != nil {
		return target{}, fmt.Errorf("spec.selector.matchLabels: %w", err)
	}
	if n := len(selector.String()); n > maxSelector {
		return target{}, fmt.Errorf("spec.selector.matchLabels: %d bytes long as a selector; must be at most %d", n, maxSelector)
	}
	var ports []int
	for _, p := range pool.Spec.TargetPorts[:min(len(pool.Spec.TargetPorts), MaxPorts+1)] {
		ports = append(ports, int(p.Number))
	}
	if err := checkPorts(ports); err != nil {
		return target{}, fmt.Errorf("spec.targetPorts: %w", err)
	}
	t := newTarget(selector, ports)
	t.h2c = pool.Spec.AppProtocol == "kubernetes.io/h2c"
	return t, nil
}

// maxSelector bounds a selector, which is part of each request's URL, in bytes.
const maxSelector = 32 << 10
