package kubeapi

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PoolRef refers to an InferencePool in the same namespace.
type PoolRef struct {
	// Group is nil if the object states none: then its kind's default applies.
	Group *string `json:"group,omitempty"`
	Kind  string  `json:"kind,omitempty"`
	Name  string  `json:"name"`
}

// GroupOr returns the group, or otherwise if the object states none.
func (r PoolRef) GroupOr(otherwise string) string {
	if r.Group == nil {
		return otherwise
	}
	return *r.Group
}

func (r PoolRef) deepCopy() PoolRef {
	r.Group = copyOf(r.Group)
	return r
}

// copies returns deep copies of the items of a list.
func copies[T any, P interface {
	*T
	DeepCopy() *T
}](items []T) []T {
	out := make([]T, len(items))
	for i := range items {
		out[i] = *P(&items[i]).DeepCopy()
	}
	return out
}

// copyOf returns a pointer to a copy, or nil.
func copyOf[T any](p *T) *T {
	if p == nil {
		return nil
	}
	return new(*p)
}

// Status is the controllers' statement about an object.
type Status struct {
	// Conditions has at most one of each type.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ConditionAccepted is the type of the condition that is true while an endpoint picker uses the object.
const ConditionAccepted = "Accepted"

func (s Status) deepCopy() Status {
	return Status{Conditions: slices.Clone(s.Conditions)} // conditions contain no pointers
}
