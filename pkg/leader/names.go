package leader

import (
	"fmt"
	"hash/fnv"
	"strings"
)

// The longest name of an object, and the longest value of a label.
const (
	maxName  = 253
	maxLabel = 63
)

// ElectionLease returns the name of the Lease shared by the replicas of a pool. pool is the result of PoolLabelOf or
// SelectorLabelOf.
func ElectionLease(pool string) string { return within(maxName, pool+"-weir") }

// ReplicaLease returns the name of a pod's own Lease.
func ReplicaLease(pod string) string { return within(maxName, "weir-"+pod) }

// PoolLabelOf returns the value of PoolLabel for the pool of this name.
func PoolLabelOf(name string) string { return within(maxLabel, name) }

// SelectorLabelOf returns the value of PoolLabel for the pods of a selector.
func SelectorLabelOf(selector string) string { return "selector-" + hashed(selector) }

// PodOf returns a valid pod name for a process outside a pod, from its hostname.
func PodOf(hostname string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(hostname))
	if name = strings.Trim(name, "-"); name == "" {
		return "local"
	}
	return name
}

// within returns the name, or its hash if it is longer than most bytes.
func within(most int, name string) string {
	if len(name) <= most {
		return name
	}
	return "weir-" + hashed(name)
}

func hashed(text string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	return fmt.Sprintf("%016x", h.Sum64())
}
