package kube

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-epp/weir/internal/expect"
)

// restless repeats a call, as fast as the apiserver accepts it, until the test ends or stop is called.
func (w *world) restless(what func(ctx context.Context, i int) error) (stop func() (times int)) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan int, 1)
	go func() {
		i := 0
		for ; ctx.Err() == nil; i++ {
			if err := what(ctx, i); err != nil && ctx.Err() == nil {
				w.t.Error(err)
				break
			}
		}
		done <- i
	}()
	return func() int {
		cancel()
		return <-done
	}
}

// selects makes the InferencePool select the pods with a label.
func (w *world) selects(ctx context.Context, label, value string) error {
	patch := fmt.Sprintf(`[{"op":"replace","path":"/spec/selector/matchLabels","value":{"%s":"%s"}}]`, label, value)
	_, err := w.env.Objects().Resource(poolsResource).Namespace(w.namespace).
		Patch(ctx, "chat", types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// Pods with a constant stream of new errors do not keep the errors of other resources from being reported: a resource
// gets its condition and its line in the log. The apiserver gets few Events.
func TestNoisyPodsSilenceNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(role, pool)
	const noisy = 30
	for i := range noisy {
		w.pod(fmt.Sprint("noisy", i), fmt.Sprint("10.0.0.", i+1), true)
	}
	e := w.epp("--pool-name=chat")
	e.ready(true)
	stop := w.restless(func(ctx context.Context, i int) error {
		return w.patchPod(ctx, fmt.Sprint("noisy", i%noisy), map[string]any{"metadata": map[string]any{"annotations": map[string]any{"weir.dev/slots": fmt.Sprint("bad", i)}}})
	})
	expect.Eventually(t, "the pod is told of no more", func() error {
		if n := strings.Count(e.Log.String(), `\"bad`); n < 100 {
			return fmt.Errorf("%d times", n)
		}
		return nil
	})
	w.apply(`
apiVersion: llm-d.ai/v1alpha2
kind: InferenceModelRewrite
metadata: {name: wrong}
spec: {poolRef: {name: chat}, rules: [{targets: [{modelRewrite: v1, weight: 1}, {modelRewrite: v2}]}]}
`)
	w.wantCondition(resourceOf(newGroup, "inferencemodelrewrites"), "wrong", metav1.ConditionFalse, "Invalid")
	e.logs("must be given for all targets")
	changes := stop()
	created := 0
	for _, r := range w.env.Requests(t, w.user()) {
		if r.Resource == "events" {
			created++
		}
	}
	if created > 200 {
		t.Errorf("%d Events of %d changes", created, changes)
	}
}

// wantEvent waits for an Event about an object.
func (w *world) wantEvent(kind, name, note string) {
	w.t.Helper()
	expect.Eventually(w.t, fmt.Sprintf("an Event of %s %s: %s", kind, name, note), func() error {
		events, err := w.env.Clients().EventsV1().Events(w.namespace).List(w.t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, event := range events.Items {
			if event.Regarding.Kind == kind && event.Regarding.Name == name && strings.Contains(event.Note, note) {
				return nil
			}
		}
		return fmt.Errorf("%d others", len(events.Items))
	})
}

// An object may have the longest possible name: it still gets its Event.
func TestEventsOfLongNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(role, pool)
	name := strings.Repeat("a.", 126) + "a"
	w.pod(name, "10.0.0.1", true, annotated("weir.dev/slots", "lots"))
	e := w.epp("--pool-name=chat")
	e.ready(true)
	w.wantEvent("Pod", name, `"lots"`)
}

// A constantly changing selector costs the apiserver little, and no pool loses its pods. Once constant, it takes
// effect.
func TestASelectorThatNeverRests(t *testing.T) {
	t.Parallel()
	const labels = 100
	w := newWorld(t)
	w.apply(role, pool)
	w.pod("a", "10.0.0.1", true, func(p *corev1.Pod) {
		for i := range labels {
			p.Labels[fmt.Sprint("l", i)] = "y"
		}
	})
	w.pod("b", "10.0.0.2", true, func(p *corev1.Pod) { p.Labels = map[string]string{"app": "other"} })
	e := w.epp("--pool-name=chat")
	e.ready(true)
	e.want("10.0.0.1:8000")
	began := time.Now()
	stop := w.restless(func(ctx context.Context, i int) error {
		return w.selects(ctx, fmt.Sprint("l", i%labels), "y")
	})
	for range 40 {
		if got := e.endpoints(); !slices.Equal(got, []string{"10.0.0.1:8000"}) {
			t.Fatalf("the endpoints are %q while the selector changes", got)
		}
		time.Sleep(100 * time.Millisecond)
	}
	changes := stop()
	most := 6 + int(time.Since(began).Seconds())
	selectors := map[string]bool{}
	for _, r := range w.env.Requests(t, w.user()) {
		if r.Resource == "pods" {
			selectors[r.LabelSelector] = true
		}
	}
	if len(selectors) > most || changes < 5*most {
		t.Errorf("of %d changes of the selector %d were followed, want at most %d", changes, len(selectors), most)
	}
	if err := w.selects(t.Context(), "app", "other"); err != nil {
		t.Fatal(err)
	}
	e.want("10.0.0.2:8000")
}

// Leases with the pool's label have foreign content. Only a possible record of a replica counts, and requests go on.
func TestHostileRecords(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(role, pool)
	w.pod("a", "10.0.0.1", true)
	at, err := w.env.Clients().CoreV1().Pods(w.namespace).Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	records := map[string]string{
		"huge":     fmt.Sprintf(`{"boot":"b","total":1,"endpoints":{"%s:8000":1000000000}}`, at.UID),
		"negative": fmt.Sprintf(`{"boot":"b","total":-5,"endpoints":{"%s:8000":-5}}`, at.UID),
		"half":     `{"boot":"b","total":`,
		"digits":   `{"boot":"b","total":` + strings.Repeat("9", 50000) + `}`,
		"long":     `{"boot":"b","more":"` + strings.Repeat("x", 100000) + `"}`,
		"keys":     fmt.Sprintf(`{"boot":"%s","total":1}`, strings.Repeat("b", 100)),
		"empty":    "",
		"others":   `{"boot":"b","total":3,"endpoints":{"somebody:8000":3}}`, // valid, but not Weir's
	}
	for name, record := range records {
		_, err := w.env.Clients().CoordinationV1().Leases(w.namespace).Create(t.Context(), &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{
				Name: "stranger-" + name, Labels: map[string]string{"weir.dev/pool": "chat"},
				Annotations: map[string]string{"weir.dev/in-flight": record},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	w.apply(`
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata:
  name: of-another-pool
  labels: {weir.dev/pool: other}
  annotations: {weir.dev/in-flight: '{"boot":"b","total":1000000}'}
`)
	e := w.epp("--pool-name=chat")
	e.ready(true)
	e.want("10.0.0.1:8000")
	e.logs("a replica's record is not valid and does not count")
	e.wantMetric(`weir_foreign_stock{pool="chat"}`, 0)
	r := e.send("chat")
	if got := r.granted(t); got != "10.0.0.1:8000" {
		t.Error(got)
	}
	r.end()
	for line := range strings.Lines(e.Log.String()) {
		if len(line) > 2000 {
			t.Errorf("a line of %d bytes: %.200s", len(line), line)
		}
	}
}

// Impossible slots, at the largest number of ports, do not stop the pool, and it is a pool again without them.
func TestHugeSlots(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(role, strings.ReplaceAll(pool, "[{number: 8000}]", "[{number: 1}, {number: 2}, {number: 3}, {number: 4}, {number: 5}, {number: 6}, {number: 7}, {number: 65535}]"))
	for i := range 5 {
		w.pod(fmt.Sprint("p", i), fmt.Sprint("10.0.0.", i+1), true, annotated("weir.dev/slots", "2147483647"))
	}
	e := w.epp("--pool-name=chat")
	e.ready(true)
	e.wantMetric(`weir_watermark{pool="chat"}`, 40*1_000_000) // the most that counts for one endpoint
	for range 3 {
		r := e.send("chat")
		if got := r.granted(t); !strings.HasPrefix(got, "10.0.0.") {
			t.Error(got)
		}
		r.end()
	}
	for i := range 5 {
		w.change(fmt.Sprint("p", i), map[string]any{"metadata": map[string]any{"annotations": map[string]any{"weir.dev/slots": "1"}}})
	}
	e.wantMetric(`weir_watermark{pool="chat"}`, 40)
}

// A valid record beyond a backend's stock counts that stock, in requests and in tokens, so that it ends with the
// takeover window like that of a killed leader. A record of Weir's own counts in full.
func TestRecordsCloseNoPool(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(role, pool)
	w.pod("a", "10.0.0.1", true)
	at, err := w.env.Clients().CoreV1().Pods(w.namespace).Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "config.yaml")
	const bounds = "requestQueueController: { watermarkPerBackend: 4, lowerBoundPerBackend: 4, upperBoundPerBackend: 4, " +
		"watermarkTokensPerBackend: 100, upperBoundTokensPerBackend: 120 }\n"
	if err := os.WriteFile(config, []byte("apiVersion: weir.dev/v1alpha1\nkind: EndpointPickerConfig\n"+bounds), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := []string{"--config-file=" + config, "--takeover-window=1h"} // a record hardly falls during the test
	one, other := w.replica("weir-0", flags...), w.replica("weir-1", flags...)
	one.ready(true)
	other.ready(true)
	const requests, tokens = `weir_foreign_stock{pool="chat"}`, `weir_foreign_stock_tokens{pool="chat"}`
	going := one.send("chat")
	going.granted(t)
	other.wantMetric(requests, 1)
	other.wantMetric(tokens, 1)

	_, err = w.env.Clients().CoordinationV1().Leases(w.namespace).Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name: "stranger", Labels: map[string]string{"weir.dev/pool": "chat"}, Annotations: map[string]string{"weir.dev/in-flight": fmt.Sprintf(
				`{"boot":"b","total":1000000,"endpoints":{"%[1]s:8000":1000000},"tokens":1000000000000,"endpointTokens":{"%[1]s:8000":1000000000000}}`,
				at.UID)},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	other.wantMetric(requests, 4)
	other.wantMetric(tokens, 120)
	going.end()
}
