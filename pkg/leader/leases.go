package leader

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
)

// ElectionAPI is the election's access to the Leases of a namespace. Errors are the apiserver's, distinguished by
// reason: NotFound, AlreadyExists, Conflict.
type ElectionAPI interface {
	Get(ctx context.Context, name string) (*coordinationv1.Lease, error)
	Create(ctx context.Context, lease *coordinationv1.Lease) (*coordinationv1.Lease, error)
	// Update replaces the version that the Lease names.
	Update(ctx context.Context, lease *coordinationv1.Lease) (*coordinationv1.Lease, error)
}

// API is the records' access to the Leases.
type API interface {
	ElectionAPI
	// List returns up to limit Leases by a label selector, and whether there are more.
	List(ctx context.Context, selector string, limit int) (leases []coordinationv1.Lease, more bool, err error)
	// Delete deletes the version that the Lease names.
	Delete(ctx context.Context, lease *coordinationv1.Lease) error
}

// Leases is the Leases of a namespace, at an apiserver.
type Leases struct{ client coordination.LeaseInterface }

var _ API = Leases{}

// NewLeases returns the Leases of a namespace.
func NewLeases(config *rest.Config, namespace string) (Leases, error) {
	client, err := coordination.NewForConfig(config)
	if err != nil {
		return Leases{}, fmt.Errorf("leader: %w", err)
	}
	return Leases{client.Leases(namespace)}, nil
}

// Get implements ElectionAPI.
func (l Leases) Get(ctx context.Context, name string) (*coordinationv1.Lease, error) {
	return l.client.Get(ctx, name, metav1.GetOptions{})
}

// List implements API.
func (l Leases) List(ctx context.Context, selector string, limit int) ([]coordinationv1.Lease, bool, error) {
	list, err := l.client.List(ctx, metav1.ListOptions{LabelSelector: selector, Limit: int64(limit)})
	if err != nil {
		return nil, false, err
	}
	return list.Items, list.Continue != "", nil
}

// Create implements ElectionAPI.
func (l Leases) Create(ctx context.Context, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	return l.client.Create(ctx, lease, metav1.CreateOptions{})
}

// Update implements ElectionAPI.
func (l Leases) Update(ctx context.Context, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	return l.client.Update(ctx, lease, metav1.UpdateOptions{})
}

// Delete implements API.
func (l Leases) Delete(ctx context.Context, lease *coordinationv1.Lease) error {
	return l.client.Delete(ctx, lease.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &lease.UID, ResourceVersion: &lease.ResourceVersion},
	})
}
