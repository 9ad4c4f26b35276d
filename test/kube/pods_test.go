package kube

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/kubeenv"
)

// The pods of an InferencePool become endpoints, through all events of a pod's life.
func TestPodsOfAPool(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(role, pool)
	w.pod("a", "10.0.0.1", true)
	w.pod("b", "10.0.0.2", false)
	w.pod("other", "10.0.0.3", true, func(p *corev1.Pod) { p.Labels = map[string]string{"app": "other"} })
	e := w.epp("--pool-name=chat")
	e.ready(true)
	e.want("10.0.0.1:8000", "10.0.0.2:8000 (not ready)")
	e.wantMetric(`weir_upper_bound{pool="chat"}`, 2.2)

	w.status("b", "10.0.0.2", true)
	e.want("10.0.0.1:8000", "10.0.0.2:8000")
	e.wantMetric(`weir_upper_bound{pool="chat"}`, 4.4)

	w.pod("c", "", false) // scheduled, and without an address
	w.status("c", "2001:db8::3", true)
	// A pod of two families is at its first address.
	two := map[string]any{"phase": "Running", "podIP": "10.0.0.2", "podIPs": []any{
		map[string]any{"ip": "10.0.0.2"}, map[string]any{"ip": "2001:db8::2"},
	}}
	if err := w.patchPod(t.Context(), "b", map[string]any{"status": two}, "status"); err != nil {
		t.Fatal(err)
	}
	e.want("10.0.0.1:8000", "10.0.0.2:8000", "[2001:db8::3]:8000")

	// A pod whose label changes leaves the pool, and one that gets the label joins it.
	w.change("a", map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "old"}}})
	w.change("other", map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "chat"}}})
	e.want("10.0.0.2:8000", "10.0.0.3:8000", "[2001:db8::3]:8000")

	// Ready, but it ends.
	w.remove("b", 3600)
	e.want("10.0.0.2:8000 (not ready)", "10.0.0.3:8000", "[2001:db8::3]:8000")
	w.remove("b", 0)
	e.want("10.0.0.3:8000", "[2001:db8::3]:8000")

	// A Job's completed pod that was not deleted.
	if err := w.patchPod(t.Context(), "other", map[string]any{"status": map[string]any{"phase": "Succeeded"}}, "status"); err != nil {
		t.Fatal(err)
	}
	e.want("[2001:db8::3]:8000")
	w.remove("c", 0)
	e.want()
	e.ready(true) // an empty pool is known, too
}

// Without an InferencePool a selector and ports determine the endpoints.
func TestPodsOfASelector(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(strings.ReplaceAll(role, "- {apiGroups: [inference.networking.k8s.io], resources: [inferencepools], verbs: [list, watch]}\n", ""))
	label := func(value string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Labels = map[string]string{"app": value, "gpu": "h100"} }
	}
	w.pod("a", "10.0.0.1", true, label("one"))
	w.pod("b", "10.0.0.2", true, label("two"))
	w.pod("c", "10.0.0.3", true, label("three"))
	e := w.epp("--endpoint-selector=app in (one,two),gpu", "--endpoint-target-ports=8000,8001")
	e.ready(true)
	e.want("10.0.0.1:8000", "10.0.0.1:8001", "10.0.0.2:8000", "10.0.0.2:8001")
	e.wantMetric(`weir_kubernetes_synced{pool="app in (one,two),gpu"}`, 1)
}

// A UID identifies a pod: another pod of the same name has another address, and another one with the same address
// begins with nothing in flight, while the requests of the old one run on.
func TestPodsAreTheirUIDs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(role, pool)
	w.pod("a", "10.0.0.1", true)
	e := w.epp("--pool-name=chat")
	e.want("10.0.0.1:8000")
	inFlight := `weir_endpoint_in_flight{endpoint="10.0.0.1:8000",pool="chat"}`

	first := e.send("chat")
	if at := first.granted(t); at != "10.0.0.1:8000" {
		t.Fatal(at)
	}
	e.wantMetric(inFlight, 1)
	w.remove("a", 0)
	e.want()
	w.pod("z", "10.0.0.1", true)
	e.want("10.0.0.1:8000")
	e.wantMetric(inFlight, 0)
	e.wantMetric(`weir_stock_level{model="chat",pool="chat",target_model="chat"}`, 1)
	first.end()
	e.wantMetric(`weir_stock_level{model="chat",pool="chat",target_model="chat"}`, 0)
	e.wantMetric(inFlight, 0)

	// The same name, another address.
	w.remove("z", 0)
	w.pod("z", "10.0.0.9", true)
	e.want("10.0.0.9:8000")

	// Two at one address: the newest that is ready.
	w.pod("y", "10.0.0.9", false)
	e.logs("several endpoints have the same address")
	e.want("10.0.0.9:8000")
	second := e.send("chat")
	second.granted(t)
	defer second.end()
	nine := `weir_endpoint_in_flight{endpoint="10.0.0.9:8000",pool="chat"}`
	e.wantMetric(nine, 1)
	time.Sleep(time.Second) // creation timestamps have whole seconds
	w.pod("x", "10.0.0.9", true)
	e.wantMetric(nine, 0) // it is x
	w.remove("x", 3600)
	e.wantMetric(nine, 1) // it is z again, with what runs there
}

// The pool itself may change, and be missing.
func TestThePoolChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(role)
	w.pod("a", "10.0.0.1", true)
	w.pod("b", "10.0.0.2", true, func(p *corev1.Pod) { p.Labels = map[string]string{"app": "new"} })
	e := w.epp("--pool-name=chat")
	e.logs("the InferencePool does not exist")
	e.ready(false)
	e.wantMetric(`weir_pool_missing{pool="chat"}`, 1)
	e.wantMetric(`weir_kubernetes_synced{pool="chat"}`, 0)

	w.apply(pool)
	e.ready(true)
	e.want("10.0.0.1:8000")
	e.wantMetric(`weir_pool_missing{pool="chat"}`, 0)
	e.wantMetric(`weir_kubernetes_synced{pool="chat"}`, 1)

	w.apply(strings.ReplaceAll(pool, "{number: 8000}", "{number: 8000}, {number: 8001}"))
	e.want("10.0.0.1:8000", "10.0.0.1:8001")
	w.apply(strings.ReplaceAll(pool, "app: chat", "app: new"))
	e.want("10.0.0.2:8000")

	// After its deletion the pods stay, and are followed.
	w.removePool()
	e.logs("THE INFERENCEPOOL WAS DELETED")
	e.wantMetric(`weir_pool_missing{pool="chat"}`, 1)
	e.want("10.0.0.2:8000")
	w.status("b", "10.0.0.2", false)
	e.want("10.0.0.2:8000 (not ready)")
	e.ready(true)
	w.apply(pool)
	e.logs("the InferencePool exists again")
	e.want("10.0.0.1:8000")
	e.wantMetric(`weir_pool_missing{pool="chat"}`, 0)
}

// While the pods of a new selector are not known yet, those of the old one stay.
func TestASelectorThatChangesDropsNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(role, pool)
	both := func(p *corev1.Pod) { p.Labels = map[string]string{"app": "chat", "track": "stable"} }
	for i := range 5 {
		w.pod(fmt.Sprint("p", i), fmt.Sprint("10.0.0.", i+1), true, both)
	}
	e := w.epp("--pool-name=chat")
	e.wantMetric(`weir_watermark{pool="chat"}`, 10)
	for i := range 10 {
		label := []string{"app: chat", "track: stable"}[(i+1)%2]
		w.apply(strings.ReplaceAll(pool, "app: chat", label))
		for range 20 {
			if n, _ := e.metric(`weir_watermark{pool="chat"}`); n != 10 {
				t.Fatalf("the watermark is %g after selector %s", n, label)
			}
		}
	}
	e.logs("the pool has another selector now")
}

// Annotations state a pod's capabilities. Bad ones are reported, in the log and as an Event, and ignored.
func TestAnnotations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(role, pool)
	w.pod("a", "10.0.0.1", true, annotated("weir.dev/slots", "32", "weir.dev/models", "llama, chat"))
	w.pod("b", "10.0.0.2", true, annotated("weir.dev/slots", "lots", "weir.dev/models", strings.Repeat("x", 200000)))
	e := w.epp("--pool-name=chat")
	e.want("10.0.0.1:8000", "10.0.0.2:8000")
	e.wantMetric(`weir_endpoint_bound{endpoint="10.0.0.1:8000",pool="chat"}`, 32)
	e.wantMetric(`weir_endpoint_bound{endpoint="10.0.0.2:8000",pool="chat"}`, 2.2)
	for _, text := range []string{
		`metadata.annotations[weir.dev/slots]: \"lots\": must be a whole number from 0 to 2147483647; it is ignored`,
		`must have at most 8192 bytes; it is ignored`,
	} {
		e.logs(text)
	}
	expect.Eventually(t, "an Event of the pod", func() error {
		events, err := w.env.Clients().EventsV1().Events(w.namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, event := range events.Items {
			if isOf(event, "b") && strings.Contains(event.Note, `"lots"`) && event.Type == corev1.EventTypeWarning {
				return nil
			}
		}
		return fmt.Errorf("%d others", len(events.Items))
	})
	// A change takes effect while the pod runs.
	w.change("b", map[string]any{"metadata": map[string]any{"annotations": map[string]any{"weir.dev/slots": "7", "weir.dev/models": nil}}})
	e.wantMetric(`weir_endpoint_bound{endpoint="10.0.0.2:8000",pool="chat"}`, 7)
}

// annotated gives a pod annotations, as names and values in turn.
func annotated(values ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Annotations = map[string]string{"other": "x"}
		for i := 0; i < len(values); i += 2 {
			p.Annotations[values[i]] = values[i+1]
		}
	}
}

func isOf(event eventsv1.Event, pod string) bool {
	return event.Regarding.Kind == "Pod" && event.Regarding.Name == pod && event.Regarding.UID != ""
}

// Weir reads only the data that it needs: one namespace, by label and by field, list and watch.
func TestOnlyWhatIsNeededIsAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(role, pool)
	w.pod("a", "10.0.0.1", true)
	e := w.epp("--pool-name=chat")
	e.ready(true)
	e.want("10.0.0.1:8000")
	w.status("a", "10.0.0.1", false)
	e.want("10.0.0.1:8000 (not ready)")
	const phases = "status.phase!=Succeeded,status.phase!=Failed"
	seen := map[string]bool{}
	for _, r := range w.env.Requests(t, w.user()) {
		if r.Resource == "" || r.Resource == "selfsubjectaccessreviews" {
			continue
		}
		if r.Namespace != w.namespace {
			t.Errorf("%s of %s in namespace %q", r.Verb, r.Resource, r.Namespace)
		}
		what := r.Verb + " " + r.Resource + " " + r.LabelSelector + " " + r.FieldSelector
		switch what {
		case "list inferenceobjectives  ", "watch inferenceobjectives  ", "list inferencemodelrewrites  ", "watch inferencemodelrewrites  ",
			"list inferencemodels  ", "watch inferencemodels  ": // each says itself which pool it is for
		case "list leases weir.dev/pool=chat ", "get leases  ", "create leases  ", "update leases  ": // its own, and those beside it
		case "list pods app=chat " + phases, "watch pods app=chat " + phases,
			"list inferencepools  metadata.name=chat", "watch inferencepools  metadata.name=chat":
			seen[what] = true
		default:
			t.Errorf("%s", what)
		}
	}
	if len(seen) < 2 {
		t.Errorf("seen: %v", seen)
	}
}

var poolsResource = schema.GroupVersionResource{Group: "inference.networking.k8s.io", Version: "v1", Resource: "inferencepools"}

func (w *world) removePool() {
	w.t.Helper()
	if err := w.env.Objects().Resource(poolsResource).Namespace(w.namespace).Delete(w.t.Context(), "chat", metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// user is the service account as the apiserver's log has it.
func (w *world) user() string { return kubeenv.ServiceAccountUser(w.namespace, "weir") }

// change patches a pod.
func (w *world) change(name string, change map[string]any) {
	w.t.Helper()
	if err := w.patchPod(w.t.Context(), name, change); err != nil {
		w.t.Fatal(err)
	}
}
