package kube

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-epp/weir/pkg/leader"
)

// The apiserver refuses to change or delete another version of a Lease, or another Lease of the same name, than the
// given one, and reports the time of each write. pkg/leader relies on that and tests with an imitation, so this test
// checks the real one.
func TestLeasesAreReplacedByTheirVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(role)
	leases, err := leader.NewLeases(w.env.As(t, w.namespace, "weir"), w.namespace)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	lease := func() *coordinationv1.Lease {
		holder := "weir-0"
		return &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: "weir-weir-0", Labels: map[string]string{leader.PoolLabel: "chat"}},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder},
		}
	}
	must := func(l *coordinationv1.Lease, err error) *coordinationv1.Lease {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	conflict := func(what string, err error) {
		t.Helper()
		if !apierrors.IsConflict(err) {
			t.Errorf("%s: %v, want a conflict", what, err)
		}
	}
	first := must(leases.Create(ctx, lease()))
	if _, err := leases.Create(ctx, lease()); !apierrors.IsAlreadyExists(err) {
		t.Errorf("created twice: %v", err)
	}
	if at := first.ManagedFields; len(at) != 1 || at[0].Time == nil || time.Since(at[0].Time.Time).Abs() > time.Minute {
		t.Errorf("written at %v", at)
	}
	edited := first.DeepCopy()
	edited.Annotations = map[string]string{leader.Annotation: "{}"}
	second := must(leases.Update(ctx, edited))
	_, err = leases.Update(ctx, edited)
	conflict("an old version is updated", err)
	conflict("an old version is deleted", leases.Delete(ctx, first))

	if err := leases.Delete(ctx, second); err != nil {
		t.Fatal(err)
	}
	_, err = leases.Update(ctx, second)
	conflict("one that is gone is updated", err)
	again := must(leases.Create(ctx, lease()))
	other := again.DeepCopy()
	other.UID = second.UID
	conflict("another one of that name is deleted", leases.Delete(ctx, other))
	_, err = leases.Update(ctx, other)
	conflict("another one of that name is updated", err)
	if left, more, err := leases.List(ctx, leader.PoolLabel+"=chat", 1); err != nil || more || len(left) != 1 || left[0].UID != again.UID {
		t.Errorf("left: %v, more %t (%v)", left, more, err)
	}
	another := lease()
	another.Name = "weir-weir-1"
	must(leases.Create(ctx, another))
	if page, more, err := leases.List(ctx, leader.PoolLabel+"=chat", 1); err != nil || !more || len(page) != 1 {
		t.Errorf("a page of one: %d, more %t (%v)", len(page), more, err)
	}
	if err := leases.Delete(ctx, again); err != nil {
		t.Error(err)
	}
	if err := leases.Delete(ctx, again); !apierrors.IsNotFound(err) {
		t.Errorf("deleted twice: %v", err)
	}
}
