package kube

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-epp/weir/internal/kubeapi"
	"github.com/weir-epp/weir/internal/names"
)

const (
	// fieldManager owns the fields that Weir writes. It is the same for all replicas, so that one can continue
	// another's work.
	fieldManager = "weir"

	acceptPerSecond = 10 // statuses written, at most
	acceptBurst     = 50
)

// acceptance reports the result for each resource. The log names resources not in use, once for each generation, and
// the condition Accepted states whether a resource is in use. If the CRD has no status, an Event names a resource not
// in use. It owns only that condition, and does not touch it if another controller owns it.
type acceptance struct {
	// Immutable.
	cluster *Cluster
	config  NamesConfig
	log     logr.Logger
	kinds   map[string]*nameKind
	limit   flowcontrol.RateLimiter
	wake    chan struct{} // of capacity 1

	mu       sync.Mutex
	verdicts []names.Verdict

	// Owned by the goroutine of run.
	said map[types.UID]names.Verdict // logged
	left map[types.UID]names.Verdict // another controller owns the condition
	lack <-chan struct{}             // a permission awaited by a write; nil: none
}

func newAcceptance(cluster *Cluster, kinds []*nameKind, config NamesConfig, log logr.Logger) *acceptance {
	a := &acceptance{
		cluster: cluster, config: config, log: log, kinds: map[string]*nameKind{},
		limit: flowcontrol.NewTokenBucketRateLimiter(acceptPerSecond, acceptBurst), wake: make(chan struct{}, 1),
		said: map[types.UID]names.Verdict{}, left: map[types.UID]names.Verdict{},
	}
	for _, k := range kinds {
		a.kinds[k.kind] = k
	}
	return a
}

func (a *acceptance) judge(verdicts []names.Verdict) {
	a.mu.Lock()
	a.verdicts = verdicts
	a.mu.Unlock()
	awaken(a.wake)
}

// again retries writes that failed, or that were another replica's.
func (a *acceptance) again() { awaken(a.wake) }

// run reports the newest verdicts until ctx is done.
func (a *acceptance) run(ctx context.Context) {
	for {
		select {
		case <-a.wake:
		case <-a.lack:
		case <-ctx.Done():
			return
		}
		a.lack = nil
		a.mu.Lock()
		verdicts := a.verdicts
		a.mu.Unlock()
		said, left := map[types.UID]names.Verdict{}, map[types.UID]names.Verdict{}
		for _, v := range verdicts {
			if ctx.Err() != nil {
				return
			}
			a.say(ctx, v)
			if before, ok := a.said[v.UID]; ok {
				said[v.UID] = before
			}
			if before, ok := a.left[v.UID]; ok {
				left[v.UID] = before
			}
		}
		a.said, a.left = said, left // forgets resources that are gone
	}
}

// say reports one verdict, unless it was reported before.
func (a *acceptance) say(ctx context.Context, v names.Verdict) {
	o, group, hasStatus := a.kinds[v.Kind].find(v.Name)
	if o == nil || o.GetUID() != v.UID {
		return // it is gone or replaced
	}
	if v.Accepted() {
		delete(a.said, v.UID)
	} else if a.said[v.UID] != v && a.tell(o, hasStatus, v) { // otherwise it is tried again
		a.said[v.UID] = v
	}
	if hasStatus && a.left[v.UID] != v && a.mayWrite(group, v.Kind) {
		a.write(ctx, o, group, v)
	}
}

// tell reports in the log, and without a status also in an Event, that a resource is not in use. It returns false if
// the limit of reports prevents it.
func (a *acceptance) tell(o client.Object, hasStatus bool, v names.Verdict) bool {
	if !hasStatus {
		return a.cluster.Tell(o, v.Reason, v.Message)
	}
	if !a.cluster.telling.allowed.allows(v.Kind, v.UID) {
		return false
	}
	a.log.Info("WARNING: "+v.Message, "kind", v.Kind, "namespace", o.GetNamespace(), "name", v.Name, "reason", v.Reason)
	return true
}

// mayWrite reports whether this replica writes statuses, and has the permission.
func (a *acceptance) mayWrite(group schema.GroupVersion, kind string) bool {
	if a.config.Leads != nil && !a.config.Leads() {
		return false
	}
	resource := schema.GroupResource{Group: group.Group, Resource: a.kinds[kind].resource + "/status"}
	granted := a.cluster.Need(Permission{Verb: "patch", GroupResource: resource, Namespace: a.config.Namespace})
	select {
	case <-granted:
		return true
	default:
		a.lack = granted
		return false
	}
}

// write sets the condition of a resource to the verdict, if it differs.
func (a *acceptance) write(ctx context.Context, o client.Object, group schema.GroupVersion, v names.Verdict) {
	want := metav1.Condition{
		Type: kubeapi.ConditionAccepted, Status: metav1.ConditionFalse, ObservedGeneration: v.Generation,
		Reason: v.Reason, Message: v.Message,
	}
	if v.Accepted() {
		want.Status = metav1.ConditionTrue
	}
	have := meta.FindStatusCondition(statusOf(o).Conditions, want.Type)
	want.LastTransitionTime = metav1.NewTime(time.Now())
	if have != nil && have.Status == want.Status {
		want.LastTransitionTime = have.LastTransitionTime
		if have.ObservedGeneration == want.ObservedGeneration && have.Reason == want.Reason && have.Message == want.Message {
			return
		}
	}
	if err := a.limit.Wait(ctx); err != nil {
		return
	}
	condition, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&want)
	if err != nil {
		panic(err) // it is a struct of plain values
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"status": map[string]any{"conditions": []any{condition}},
	}}
	u.SetGroupVersionKind(group.WithKind(v.Kind))
	u.SetNamespace(o.GetNamespace())
	u.SetName(o.GetName())
	u.SetUID(v.UID) // not another resource of that name
	call, cancel := context.WithTimeout(ctx, callTimeout)
	err = a.cluster.Client().Status().Apply(call, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(fieldManager))
	cancel()
	switch {
	case err == nil || apierrors.IsNotFound(err) || ctx.Err() != nil:
	case isOwned(err):
		_, known := a.left[v.UID]
		if a.left[v.UID] = v; known {
			return
		}
		a.log.Info("WARNING: another controller writes the condition Accepted of this resource, so Weir does not", "kind", v.Kind,
			"namespace", o.GetNamespace(), "name", v.Name, "error", err.Error())
	default:
		a.log.V(1).Info("a status was not written; it is tried again", "kind", v.Kind, "name", v.Name, "error", fmt.Sprint(err))
	}
}

// isOwned reports whether a server-side apply was refused because another manager owns the field.
func isOwned(err error) bool {
	return apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict)
}
