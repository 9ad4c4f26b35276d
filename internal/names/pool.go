package names

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-epp/weir/internal/kubeapi"
)

const kindPool = "InferencePool"

// Pool is the InferencePool whose resources count.
type Pool struct{ Group, Name string }

// has reports whether a reference is to the pool. A reference without a group means the current one.
func (p Pool) has(r kubeapi.PoolRef) bool {
	return p.named(r) && r.GroupOr(kubeapi.PoolGroupVersion.Group) == p.Group
}

// hasInEither reports whether a reference is to the pool in its own group, the current or the old one. A reference
// without a group means the old one.
func (p Pool) hasInEither(r kubeapi.PoolRef) bool {
	groups := []string{p.Group, kubeapi.PoolGroupVersion.Group, kubeapi.OldGroupVersion.Group}
	return p.named(r) && slices.Contains(groups, r.GroupOr(kubeapi.OldGroupVersion.Group))
}

func (p Pool) named(r kubeapi.PoolRef) bool {
	return r.Name == p.Name && cmp.Or(r.Kind, kindPool) == kindPool
}

// oldestFirst returns the pool's resources that are not being deleted, the oldest first.
func oldestFirst[T any](list []T, meta func(T) *metav1.ObjectMeta, ours func(T) bool) []T {
	var out []T
	for _, r := range list {
		if meta(r).DeletionTimestamp.IsZero() && ours(r) {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b T) int {
		x, y := meta(a), meta(b)
		return cmp.Or(x.CreationTimestamp.Compare(y.CreationTimestamp.Time), cmp.Compare(x.Name, y.Name))
	})
	return out
}
