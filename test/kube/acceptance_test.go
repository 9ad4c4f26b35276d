package kube

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/kubeapi"
	"github.com/weir-epp/weir/internal/kubeenv"
)

func resourceOf(group, resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: "v1alpha2", Resource: resource}
}

// A resource that cannot be used has a status that says so, once, and another when it can be: one condition of Weir's
// own beside those of others.
func TestResourcesSayWhetherTheyAreInUse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(role, pool, objective(newGroup, "good", 3), `
apiVersion: llm-d.ai/v1alpha2
kind: InferenceModelRewrite
metadata: {name: bad}
spec:
  poolRef: {name: chat}
  rules: [{matches: [{model: {value: chat}}], targets: [{modelRewrite: v1, weight: 1}, {modelRewrite: v2}]}]
`, `
apiVersion: inference.networking.x-k8s.io/v1alpha2
kind: InferenceModel
metadata: {name: a}
spec: {modelName: talk, poolRef: {name: chat}}
`)
	rewrites, theirs := resourceOf(newGroup, "inferencemodelrewrites"), metav1.Condition{
		Type: "Theirs", Status: metav1.ConditionTrue, Reason: "R", Message: "m", LastTransitionTime: metav1.Now(),
	}
	w.setCondition(rewrites, "InferenceModelRewrite", "bad", "somebody", theirs)
	e := w.epp("--pool-name=chat")
	e.ready(true)
	bad := w.wantCondition(rewrites, "bad", metav1.ConditionFalse, "Invalid")
	if want := "spec.rules[0].targets[1].weight: must be given for all targets or for none"; !strings.HasPrefix(bad.Message, want) || bad.ObservedGeneration != 1 {
		t.Errorf("condition %+v", bad)
	}
	w.wantCondition(resourceOf(newGroup, "inferenceobjectives"), "good", metav1.ConditionTrue, "Accepted")
	w.wantCondition(resourceOf(oldGroup, "inferencemodels"), "a", metav1.ConditionTrue, "Accepted")
	e.wantMetric(`weir_name_resources_unaccepted{kind="InferenceModelRewrite",pool="chat"}`, 1)
	e.wantRows(soon, "NOT IN USE | Invalid: "+bad.Message+" | InferenceModelRewrite/bad")

	time.Sleep(time.Second) // so that it is younger
	w.apply(`
apiVersion: inference.networking.x-k8s.io/v1alpha2
kind: InferenceModel
metadata: {name: b}
spec: {modelName: talk, poolRef: {name: chat}}
`, strings.ReplaceAll(rewriteAll, "name: all", "name: bad"))
	w.wantCondition(resourceOf(oldGroup, "inferencemodels"), "b", metav1.ConditionFalse, "ModelNameInUse")
	if good := w.wantCondition(rewrites, "bad", metav1.ConditionTrue, "Accepted"); good.ObservedGeneration != 2 {
		t.Errorf("condition %+v", good)
	}
	if got := w.condition(rewrites, "bad", "Theirs"); got == nil || got.Reason != "R" {
		t.Errorf("another writer's condition is %+v", got)
	}
	e.logs(bad.Message)
	if n := strings.Count(e.Log.String(), bad.Message); n != 1 {
		t.Errorf("the log has the problem %d times", n)
	}
	writes := 0
	for _, r := range w.env.Requests(t, kubeenv.ServiceAccountUser(w.namespace, "weir")) {
		if r.Subresource == "status" && r.Code == http.StatusOK { // one that the apiserver has no time for is tried again
			writes++
		}
		if r.Verb != "list" && r.Verb != "watch" && strings.HasPrefix(r.Resource, "inference") && (r.Verb != "patch" || r.Subresource != "status") {
			t.Errorf("%s of %s/%s", r.Verb, r.Resource, r.Subresource)
		}
	}
	if writes != 5 {
		t.Errorf("%d statuses were written, want one for each resource and change: 5", writes)
	}
}

// If another writer owns the condition Accepted, Weir does not change it.
func TestConditionsOfOthersStay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(role, pool, objective(newGroup, "theirs", 3))
	objectives := resourceOf(newGroup, "inferenceobjectives")
	w.setCondition(objectives, "InferenceObjective", "theirs", "somebody", metav1.Condition{
		Type: "Accepted", Status: metav1.ConditionUnknown, Reason: "Theirs", Message: "m", LastTransitionTime: metav1.Now(),
	})
	e := w.epp("--pool-name=chat")
	e.ready(true)
	e.logs("another controller writes the condition Accepted")
	w.apply(objective(newGroup, "mine", 3))
	w.wantCondition(objectives, "mine", metav1.ConditionTrue, "Accepted")
	w.wantCondition(objectives, "theirs", metav1.ConditionUnknown, "Theirs")
	e.wantRows(soon, "objective theirs | priority 3 | InferenceObjective/theirs")
}

// Without the permission to write statuses, Weir goes on and names the missing permission. Once it is given, it writes
// them.
func TestStatusesWantPermission(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(strings.ReplaceAll(role, "inferenceobjectives/status, ", ""), pool, objective(newGroup, "one", 3))
	e := w.epp("--pool-name=chat")
	e.ready(true)
	missing := `weir_kubernetes_permission_missing{namespace="` + w.namespace + `",pool="chat",resource="inferenceobjectives/status.llm-d.ai",verb="patch"}`
	e.wantMetric(missing, 1)
	if got := w.condition(resourceOf(newGroup, "inferenceobjectives"), "one", "Accepted"); got != nil && got.Reason == "Accepted" {
		t.Errorf("condition %+v", got)
	}
	w.apply(role)
	w.wantCondition(resourceOf(newGroup, "inferenceobjectives"), "one", metav1.ConditionTrue, "Accepted")
	e.wantMetric(missing, 0)
}

// Only the leading replica writes the status of a resource; all use the resource.
func TestOnlyTheLeaderWritesStatuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(role, pool, objective(newGroup, "one", 3), `
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: chat-weir}
spec: {holderIdentity: another, leaseDurationSeconds: 15, renewTime: "2026-01-01T00:00:00.000000Z"}
`)
	e := w.epp("--pool-name=chat", "--ha-enable-leader-election")
	e.wantRows(soon, "objective one | priority 3 | InferenceObjective/one")
	time.Sleep(2 * time.Second)
	if got := w.condition(resourceOf(newGroup, "inferenceobjectives"), "one", "Accepted"); e.serving("readiness") || got != nil && got.Reason == "Accepted" {
		t.Fatalf("a follower is ready (%t), or has written the condition %+v", e.serving("readiness"), got)
	}
	err := w.env.Clients().CoordinationV1().Leases(w.namespace).Delete(t.Context(), "chat-weir", metav1.DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	e.ready(true)
	w.wantCondition(resourceOf(newGroup, "inferenceobjectives"), "one", metav1.ConditionTrue, "Accepted")
}

// setCondition applies a condition as a field manager.
func (w *world) setCondition(resource schema.GroupVersionResource, kind, name, manager string, condition metav1.Condition) {
	w.t.Helper()
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&condition)
	if err != nil {
		w.t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": resource.GroupVersion().String(), "kind": kind, "metadata": map[string]any{"name": name},
		"status": map[string]any{"conditions": []any{object}},
	}}
	_, err = w.env.Objects().Resource(resource).Namespace(w.namespace).
		ApplyStatus(w.t.Context(), name, u, metav1.ApplyOptions{FieldManager: manager, Force: true})
	if err != nil {
		w.t.Fatal(err)
	}
}

// condition returns a condition of a resource, or nil.
func (w *world) condition(resource schema.GroupVersionResource, name, kind string) *metav1.Condition {
	w.t.Helper()
	u, err := w.env.Objects().Resource(resource).Namespace(w.namespace).Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	var o struct {
		Status kubeapi.Status `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &o); err != nil {
		w.t.Fatal(err)
	}
	return meta.FindStatusCondition(o.Status.Conditions, kind)
}

// wantCondition waits until a resource's condition Accepted has this status and reason.
func (w *world) wantCondition(resource schema.GroupVersionResource, name string, status metav1.ConditionStatus, reason string) (c metav1.Condition) {
	w.t.Helper()
	expect.Eventually(w.t, fmt.Sprintf("%s %s has Accepted=%s, %s", resource.Resource, name, status, reason), func() error {
		got := w.condition(resource, name, "Accepted")
		if got == nil || got.Status != status || got.Reason != reason {
			return fmt.Errorf("it is %+v", got)
		}
		c = *got
		return nil
	})
	return c
}
