package kube

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-epp/weir/internal/modelsim"
)

// expired answers that the requested version is gone from the apiserver's history, as after a compaction: then
// everything is listed anew.
func expired(out http.ResponseWriter, _ *http.Request) {
	out.Header().Set("Content-Type", "application/json")
	out.WriteHeader(http.StatusGone)
	_, _ = out.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","message":"m","code":410}`))
}

// Pods re-created under their names while Weir cannot watch them, like those of a StatefulSet, are in the next list: no
// request goes to the address of a deleted one.
func TestPodsAreReplacedUnseen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pods := startEngines(t, modelsim.Fixed(8, 5*time.Millisecond))
	old, stays, fresh := "127.0.4.1", "127.0.4.2", "127.0.4.3"
	w.apply(role, strings.ReplaceAll(pool, "number: 8000", fmt.Sprint("number: ", pods.port())))
	w.pod("chat-0", old, true)
	w.pod("chat-1", stays, true)
	at := func(ip string) string { return fmt.Sprintf("%s:%d", ip, pods.port()) }
	proxy, kubeconfig := w.behindFaults()
	e := w.eppWith(kubeconfig, "--pool-name=chat")
	e.ready(true)
	e.want(at(old), at(stays))
	envoy := pods.front(e, old, stays, fresh)

	proxy.begin(expired)
	w.remove("chat-0", 0)
	w.pod("chat-0", fresh, true)
	proxy.end()
	e.want(at(stays), at(fresh))
	for range 6 {
		if status, body := ask(t, envoy); status != http.StatusOK {
			t.Fatalf("answer %d: %s", status, body)
		}
	}
	if n := pods.at(old).Stats().Completed; n != 0 {
		t.Errorf("%d of 6 requests went to the pod that is gone", n)
	}
	w.remove("chat-0", 0)
	e.want(at(stays))
}

// Other objects re-created unseen are other objects too: the InferencePool, and an objective.
func TestThePoolAndItsNamesAreReplacedUnseen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(role, pool, objective(oldGroup, "urgent", 5))
	w.pod("a", "10.0.0.1", true)
	proxy, kubeconfig := w.behindFaults()
	e := w.eppWith(kubeconfig, "--pool-name=chat")
	e.ready(true)
	e.want("10.0.0.1:8000")
	proxy.begin(expired)
	w.removePool()
	objectives := w.env.Objects().Resource(schema.GroupVersionResource{Group: oldGroup, Version: "v1alpha2", Resource: "inferenceobjectives"})
	if err := objectives.Namespace(w.namespace).Delete(t.Context(), "urgent", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.apply(strings.ReplaceAll(pool, "number: 8000", "number: 8001"), objective(oldGroup, "urgent", 7))
	proxy.end()
	e.want("10.0.0.1:8001")
	e.logs("THE INFERENCEPOOL WAS DELETED")
	e.logs("the InferencePool exists again")
	e.wantMetric(`weir_pool_missing{pool="chat"}`, 0)
}
