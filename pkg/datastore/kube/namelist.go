package kube

import (
	"context"
	"maps"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-epp/weir/internal/kubeapi"
)

// nameList follows the resources of one kind in one group.
type nameList struct {
	// Immutable.
	group     *groupOfKind
	hasStatus bool // the CRD has the subresource
	stop      context.CancelFunc
	changed   func() // called without mu held

	mu     sync.Mutex
	synced bool
	byName map[string]client.Object
}

// followNames follows the resources of a kind in a group until stop is called or ctx is done. Its goroutines are counted
// in running.
func (n *Names) followNames(ctx context.Context, running *sync.WaitGroup, k *nameKind, group *groupOfKind, hasStatus bool) *nameList {
	ctx, stop := context.WithCancel(ctx)
	l := &nameList{group: group, hasStatus: hasStatus, stop: stop, changed: k.changed, byName: map[string]client.Object{}}
	resource := schema.GroupResource{Group: group.Group, Resource: k.resource}
	running.Go(func() {
		err := n.cluster.Follow(ctx, Following{
			Object: group.object, Resource: resource, Namespace: n.config.Namespace,
			Trim: trimNames,
			Changed: func(o client.Object) {
				l.change(func() { l.byName[o.GetName()] = o })
			},
			Gone: func(o client.Object) {
				l.change(func() { delete(l.byName, o.GetName()) })
			},
			Synced: func() { l.change(func() { l.synced = true }) },
		})
		if err != nil {
			n.log.Error(err, "following", "resource", resource.String())
		}
	})
	return l
}

func (l *nameList) change(what func()) {
	l.mu.Lock()
	what()
	l.mu.Unlock()
	l.changed()
}

func (l *nameList) complete() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.synced
}

// all returns the resources in any order.
func (l *nameList) all() []client.Object {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Values(l.byName))
}

// find returns the resource of a name, or nil.
func (l *nameList) find(name string) client.Object {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byName[name]
}

// trimNames removes the unread parts: all metadata except identity, age and generation, and all conditions except
// Accepted.
func trimNames(o client.Object) {
	o.SetLabels(nil)
	o.SetAnnotations(nil)
	o.SetOwnerReferences(nil)
	o.SetFinalizers(nil)
	if s := statusOf(o); s != nil {
		s.Conditions = slices.DeleteFunc(s.Conditions, func(c metav1.Condition) bool { return c.Type != kubeapi.ConditionAccepted })
	}
}

// statusOf returns the status of a resource.
func statusOf(o client.Object) *kubeapi.Status {
	switch o := o.(type) {
	case *kubeapi.InferenceObjective:
		return &o.Status
	case *kubeapi.OldInferenceObjective:
		return &o.Status
	case *kubeapi.InferenceModelRewrite:
		return &o.Status
	case *kubeapi.OldInferenceModelRewrite:
		return &o.Status
	case *kubeapi.InferenceModel:
		return &o.Status
	}
	return nil
}
