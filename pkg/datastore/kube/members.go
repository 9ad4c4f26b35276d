package kube

import (
	"context"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-epp/weir/pkg/scheduling"
)

// members follows the pods of one selector.
type members struct {
	// Immutable.
	selector string
	stop     context.CancelFunc
	changed  func() // called without mu held after a relevant change

	mu     sync.Mutex
	synced bool
	byUID  map[types.UID]*member
	sorted []*member // the same, the oldest first; nil: not sorted yet
}

// followMembers follows the pods of a selector until stop is called or ctx is done. Its goroutines are counted in
// running.
func (s *Source) followMembers(ctx context.Context, running *sync.WaitGroup, selector labels.Selector, text string) *members {
	ctx, stop := context.WithCancel(ctx)
	m := &members{selector: text, stop: stop, changed: s.awaken, byUID: map[types.UID]*member{}}
	running.Go(func() {
		err := s.cluster.Follow(ctx, s.followed(m, selector))
		if err != nil {
			s.log.Error(err, "following pods", "selector", text)
		}
	})
	return m
}

// followed returns the selection of the members, and the functions for them.
func (s *Source) followed(m *members, selector labels.Selector) Following {
	return Following{
		Object: &corev1.Pod{}, Resource: corev1.Resource("pods"), Namespace: s.config.Namespace,
		Labels: selector,
		// Excluded are ended pods not yet deleted: finished Jobs, evicted pods.
		Fields: fields.AndSelectors(
			fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
			fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed))),
		Trim: func(o client.Object) { trimPod(o.(*corev1.Pod)) },
		Changed: func(o client.Object) {
			pod := o.(*corev1.Pod)
			now := memberOf(pod)
			if m.set(&now) {
				s.cluster.Tell(pod, "InvalidPod", now.problem)
			}
		},
		Gone:   func(o client.Object) { m.remove(o.GetUID()) },
		Synced: m.hasSynced,
	}
}

// set replaces the state of a pod, and reports whether it has a new problem.
func (m *members) set(now *member) (problem bool) {
	m.mu.Lock()
	before := m.byUID[now.uid]
	if before != nil && before.equal(now) {
		m.mu.Unlock()
		return false
	}
	m.byUID[now.uid] = now
	m.sorted = nil
	m.mu.Unlock()
	m.changed()
	return now.problem != "" && (before == nil || before.problem != now.problem)
}

func (m *members) remove(uid types.UID) {
	m.mu.Lock()
	delete(m.byUID, uid)
	m.sorted = nil
	m.mu.Unlock()
	m.changed()
}

func (m *members) hasSynced() {
	m.mu.Lock()
	m.synced = true
	m.mu.Unlock()
	m.changed()
}

func (m *members) complete() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.synced
}

// endpoints returns the pods' endpoints, the oldest pod's first.
func (m *members) endpoints(ports []int) []scheduling.Endpoint {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sorted == nil {
		m.sorted = slices.SortedFunc(maps.Values(m.byUID), olderFirst)
	}
	endpoints := make([]scheduling.Endpoint, 0, len(m.sorted)*len(ports))
	for _, one := range m.sorted {
		endpoints = one.endpoints(endpoints, ports)
	}
	return endpoints
}
