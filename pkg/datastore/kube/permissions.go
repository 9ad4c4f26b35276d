package kube

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// askAgain is the time after a refusal until the next request to the apiserver.
const askAgain = 3 * time.Second

// Permission is a permission that Weir's service account needs. Its Resource may name a subresource, as in pods/status.
type Permission struct {
	Verb string
	schema.GroupResource
	Namespace string
	Name      string // of the one object that it is for; empty: all
}

// permissions asks the apiserver about each permission before it is used. So missing permissions are reported by name,
// instead of as failures of their users.
type permissions struct {
	client  client.Client
	log     logr.Logger
	missing *prometheus.GaugeVec
	wake    chan struct{} // of capacity 1: there are new ones

	mu     sync.Mutex
	wanted map[Permission]*permission
}

type permission struct {
	granted chan struct{} // closed once it is
	doubted bool          // it was granted, but a request that needs it was forbidden since
	refused bool          // its refusal was logged
}

func (p *permission) isGranted() bool {
	select {
	case <-p.granted:
		return true
	default:
		return false
	}
}

func newPermissions(c client.Client, log logr.Logger, missing *prometheus.GaugeVec) *permissions {
	return &permissions{
		client: c, log: log, missing: missing, wake: make(chan struct{}, 1), wanted: map[Permission]*permission{},
	}
}

// Need returns a channel that is closed once the service account has the permission. The apiserver is asked until then.
func (c *Cluster) Need(p Permission) <-chan struct{} { return c.permissions.need(p) }

// doubt asks again about a granted permission, because a request that needs it was forbidden.
func (c *Cluster) doubt(p Permission) { c.permissions.doubt(p) }

// needReading needs Follow's permissions for a kind of object.
func (c *Cluster) needReading(resource schema.GroupResource, namespace string) (granted [2]<-chan struct{}) {
	for i, verb := range []string{"list", "watch"} {
		granted[i] = c.Need(Permission{Verb: verb, GroupResource: resource, Namespace: namespace})
	}
	return granted
}

func (ps *permissions) need(p Permission) <-chan struct{} {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	known := ps.wanted[p]
	if known == nil {
		known = &permission{granted: make(chan struct{})}
		ps.wanted[p] = known
		awaken(ps.wake)
	}
	return known.granted
}

func (ps *permissions) doubt(p Permission) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if known := ps.wanted[p]; known != nil && known.isGranted() {
		known.doubted = true
		awaken(ps.wake)
	}
}

// run asks until ctx is done.
func (ps *permissions) run(ctx context.Context) {
	for {
		var again <-chan time.Time
		if !ps.ask(ctx) {
			again = time.After(askAgain)
		}
		select {
		case <-ctx.Done():
			return
		case <-ps.wake:
		case <-again:
		}
	}
}

// ask asks about every permission not granted yet, and reports whether all are granted now.
func (ps *permissions) ask(ctx context.Context) (all bool) {
	all = true
	for _, p := range ps.open() {
		resource, sub, _ := strings.Cut(p.Resource, "/")
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: p.Verb, Group: p.Group, Resource: resource, Subresource: sub, Namespace: p.Namespace, Name: p.Name,
			},
		}}
		call, cancel := context.WithTimeout(ctx, callTimeout)
		err := ps.client.Create(call, review)
		cancel()
		switch {
		case isUnanswerable(err):
			ps.log.Info("WARNING: the apiserver does not report the permissions of the service account; assuming that it has them", "error", err.Error())
			ps.answer(p, true, "")
		case err != nil:
			all = false // no answer
		default:
			ps.answer(p, review.Status.Allowed, review.Status.Reason)
			all = all && review.Status.Allowed
		}
	}
	return all
}

// isUnanswerable reports whether the apiserver refuses to state the service account's permissions. Other forbidden
// requests, such as discovery, do not count: they may fail temporarily.
func isUnanswerable(err error) bool {
	var refusal apierrors.APIStatus
	if !apierrors.IsForbidden(err) || !errors.As(err, &refusal) {
		return false
	}
	about := refusal.Status().Details
	return about != nil && about.Kind == "selfsubjectaccessreviews"
}

// open lists the permissions not granted or in doubt, in order.
func (ps *permissions) open() []Permission {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	var open []Permission
	for p, known := range maps.All(ps.wanted) {
		if !known.isGranted() || known.doubted {
			open = append(open, p)
		}
	}
	slices.SortFunc(open, func(a, b Permission) int {
		return strings.Compare(a.String()+" "+a.Verb, b.String()+" "+b.Verb)
	})
	return open
}

// answer notes the apiserver's answer about a permission.
func (ps *permissions) answer(p Permission, allowed bool, reason string) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	known := ps.wanted[p]
	series := ps.missing.WithLabelValues(p.Verb, p.String(), p.Namespace)
	switch {
	case allowed:
		if known.doubted = false; !known.isGranted() {
			close(known.granted)
		}
		series.Set(0)
		if known.refused {
			known.refused = false
			ps.log.Info("the permission is granted now", "verb", p.Verb, "resource", p.String(), "namespace", p.Namespace)
		}
	case !known.refused:
		known.refused = true
		series.Set(1)
		ps.log.Error(nil, "A PERMISSION IS MISSING: the role of Weir's service account lacks a verb",
			"verb", p.Verb, "resource", p.String(), "namespace", p.Namespace, "reason", reason)
	}
}

// awaken wakes the goroutine waiting for the channel, of capacity 1.
func awaken(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}
