package kube

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/weir-epp/weir/internal/kubeapi"
	"github.com/weir-epp/weir/pkg/invalid"
)

// MaxPorts is the largest number of ports of a pod, InferencePool's limit. Each port is an endpoint.
const MaxPorts = 8

// Config selects the pods of the pool: by an InferencePool, or by Selector and Ports.
type Config struct {
	// Namespace is the namespace of the pods and of the InferencePool.
	Namespace string
	// Pool is the name of the InferencePool; empty: there is none. Group is its API group.
	Pool, Group string
	// Selector is a label selector in Kubernetes' notation; empty: there is a Pool. Ports are the ports of the selected
	// pods, 1 to MaxPorts of them.
	Selector string
	Ports    []int
}

// Validate reports every problem at once, as invalid.Problems.
func (c Config) Validate() error {
	var ps invalid.Problems
	if problems := validation.IsDNS1123Label(c.Namespace); len(problems) > 0 {
		ps.Add(invalid.At("Namespace"), c.Namespace, "must be the name of a namespace: %s", strings.Join(problems, "; "))
	}
	if c.Pool != "" {
		if problems := validation.IsDNS1123Subdomain(c.Pool); len(problems) > 0 {
			ps.Add(invalid.At("Pool"), c.Pool, "must be the name of an InferencePool: %s", strings.Join(problems, "; "))
		}
		if c.Group != kubeapi.PoolGroupVersion.Group {
			ps.Add(invalid.At("Group"), c.Group, "must be %s", kubeapi.PoolGroupVersion.Group)
		}
		if c.Selector != "" {
			ps.Add(invalid.At("Selector"), c.Selector, "%s is given already; use one of the two", invalid.At("Pool"))
		}
		if len(c.Ports) > 0 {
			ps.Add(invalid.At("Ports"), c.Ports, "the ports are those of the InferencePool; this is for %s", invalid.At("Selector"))
		}
		return ps.Err()
	}
	if _, err := selectorOf(c.Selector); err != nil {
		ps.Add(invalid.At("Selector"), c.Selector, "must be a label selector: %v", err)
	}
	if err := checkPorts(c.Ports); err != nil {
		ps.Add(invalid.At("Ports"), c.Ports, "%v", err)
	}
	return ps.Err()
}

// selectorOf parses a label selector. It refuses a selector of everything: that is a mistake, and would send requests
// to every pod of the namespace.
func selectorOf(text string) (labels.Selector, error) {
	selector, err := labels.Parse(text)
	if err != nil {
		return nil, err
	}
	if selector.Empty() {
		return nil, fmt.Errorf("%q selects every pod", text)
	}
	return selector, nil
}

// checkPorts reports the problems of the ports of a pool.
func checkPorts(ports []int) error {
	if len(ports) < 1 || len(ports) > MaxPorts {
		return fmt.Errorf("must be 1 to %d ports", MaxPorts)
	}
	seen := map[int]bool{}
	for _, port := range ports {
		if port < 1 || port > 65535 {
			return fmt.Errorf("%d: must be from 1 to 65535", port)
		}
		if seen[port] {
			return fmt.Errorf("%d: must occur only once", port)
		}
		seen[port] = true
	}
	return nil
}
