package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-epp/weir/internal/binaries"
	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/kubeenv"
	"github.com/weir-epp/weir/internal/scene"
)

func TestMain(m *testing.M) {
	os.Exit(kubeenv.Run(func() int { return binaries.Run(m, binaries.EPP, binaries.Weir) }))
}

// soon bounds immediate events.
const soon = time.Minute

// role has the permissions that Weir's service account needs.
const role = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: weir}
rules:
- {apiGroups: [""], resources: [pods], verbs: [list, watch]}
- {apiGroups: [inference.networking.k8s.io], resources: [inferencepools], verbs: [list, watch]}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, list, create, update, delete]}
- {apiGroups: [events.k8s.io], resources: [events], verbs: [create]}
- apiGroups: [llm-d.ai, inference.networking.x-k8s.io]
  resources: [inferenceobjectives, inferencemodelrewrites, inferencemodels]
  verbs: [list, watch]
- apiGroups: [llm-d.ai, inference.networking.x-k8s.io]
  resources: [inferenceobjectives/status, inferencemodelrewrites/status, inferencemodels/status]
  verbs: [patch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: weir}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: weir}
subjects: [{kind: ServiceAccount, name: weir}]
`

// pool is an InferencePool named chat of the pods with app: chat.
const pool = `
apiVersion: inference.networking.k8s.io/v1
kind: InferencePool
metadata: {name: chat}
spec:
  selector: {matchLabels: {app: chat}}
  targetPorts: [{number: 8000}]
  endpointPickerRef: {name: weir, port: {number: 9002}}
`

// world is a namespace of an apiserver.
type world struct {
	t         *testing.T
	env       *kubeenv.Env
	namespace string

	environment []string // of each epp that is started, beside that of the test
	host        string   // the apiserver's address for epp; empty: the apiserver's own
}

var definitions sync.Once

// crds is the directory of the CRDs: Weir's own, or the published ones.
func crds() string {
	if dir := os.Getenv("UPSTREAM_CRDS"); dir != "" {
		return dir
	}
	return filepath.Join("..", "..", "charts", "weir", "crds")
}

// newWorld returns a namespace of its own in the apiserver that the tests share.
func newWorld(t *testing.T) *world {
	t.Helper()
	env := kubeenv.Shared(t)
	definitions.Do(func() { env.InstallCRDs(t, crds()) })
	return &world{t: t, env: env, namespace: env.Namespace(t)}
}

// apply applies manifests to the namespace.
func (w *world) apply(manifests ...string) {
	w.t.Helper()
	for _, m := range manifests {
		w.env.Apply(w.t, w.namespace, m)
	}
}

// pod makes a pod with app: chat, changed by changes, with an address and the condition Ready. An empty address is
// none.
func (w *world) pod(name, address string, ready bool, changes ...func(*corev1.Pod)) {
	w.t.Helper()
	if err := w.createPod(w.t.Context(), name, changes...); err != nil {
		w.t.Fatal(err)
	}
	w.status(name, address, ready)
}

func (w *world) createPod(ctx context.Context, name string, changes ...func(*corev1.Pod)) error {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "chat"}},
		Spec: corev1.PodSpec{
			NodeName:   "node", // so that the test decides its end
			Containers: []corev1.Container{{Name: "vllm", Image: "vllm"}},
		},
	}
	for _, change := range changes {
		change(pod)
	}
	_, err := w.env.Clients().CoreV1().Pods(w.namespace).Create(ctx, pod, metav1.CreateOptions{})
	return err
}

// status sets a pod's address and readiness.
func (w *world) status(name, address string, ready bool) {
	w.t.Helper()
	if err := w.setStatus(w.t.Context(), name, address, ready); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) setStatus(ctx context.Context, name, address string, ready bool) error {
	condition := "False"
	if ready {
		condition = "True"
	}
	status := map[string]any{
		"phase": "Running", "conditions": []any{map[string]any{"type": "Ready", "status": condition}},
	}
	if address != "" {
		status["podIP"], status["podIPs"] = address, []any{map[string]any{"ip": address}}
	}
	return w.patchPod(ctx, name, map[string]any{"status": status}, "status")
}

func (w *world) patchPod(ctx context.Context, name string, change map[string]any, subresources ...string) error {
	text, err := json.Marshal(change)
	if err != nil {
		return err
	}
	_, err = w.env.Clients().CoreV1().Pods(w.namespace).
		Patch(ctx, name, types.StrategicMergePatchType, text, metav1.PatchOptions{}, subresources...)
	return err
}

// remove deletes a pod. With grace it begins to end, without grace it is gone.
func (w *world) remove(name string, grace int64) {
	w.t.Helper()
	err := w.env.Clients().CoreV1().Pods(w.namespace).
		Delete(w.t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: &grace})
	if err != nil {
		w.t.Fatal(err)
	}
}

// epp is the real binary as a process.
type epp struct {
	*scene.EPP
	t             *testing.T
	grpc          *grpc.ClientConn
	health        healthv1.HealthClient
	metrics, page string // URLs
}

// epp starts epp as the service account weir, and returns when it listens.
func (w *world) epp(flags ...string) *epp {
	w.t.Helper()
	config := w.env.As(w.t, w.namespace, "weir")
	if w.host != "" {
		config.Host = w.host
	}
	return w.eppWith(w.env.Kubeconfig(w.t, config, w.namespace), flags...)
}

// eppWith is epp with a kubeconfig file.
func (w *world) eppWith(kubeconfig string, flags ...string) *epp {
	w.t.Helper()
	t := w.t
	e := &epp{t: t, EPP: binaries.StartEPP(t, scene.EPPOptions{
		Shipped: true, Environment: w.environment,
		Flags: append([]string{
			"--kubeconfig=" + kubeconfig, "--pool-namespace=" + w.namespace,
			"--metrics-endpoint-auth=false", "--min-drain=0s", "--profile=wfq",
		}, flags...),
	})}
	connect := func(target string) *grpc.ClientConn {
		conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	e.grpc, e.health = connect(e.Address), healthv1.NewHealthClient(connect(e.Health))
	e.metrics, e.page = e.MetricsURL+"/metrics", e.DebugURL+"/statusz"
	return e
}

// serving reports whether a health service is SERVING.
func (e *epp) serving(service string) bool {
	e.t.Helper()
	answer, err := e.health.Check(e.t.Context(), &healthv1.HealthCheckRequest{Service: service})
	if err != nil {
		e.t.Fatal(err)
	}
	return answer.GetStatus() == healthv1.HealthCheckResponse_SERVING
}

// ready waits for this readiness.
func (e *epp) ready(want bool) {
	e.t.Helper()
	expect.Eventually(e.t, fmt.Sprint("readiness is ", want), func() error {
		if !e.serving("liveness") {
			e.t.Fatal("liveness is down")
		}
		if e.serving("readiness") != want || e.serving("synced") != want {
			return fmt.Errorf("readiness is %t", !want)
		}
		return nil
	})
}

// endpoints lists the endpoints of the status page, with a minus before unready ones, sorted by address.
func (e *epp) endpoints() []string {
	e.t.Helper()
	page, err := expect.Read(e.page)
	if err != nil {
		e.t.Fatal(err)
	}
	_, table, _ := strings.Cut(page, "\nendpoint ")
	var list []string
	for i, line := range strings.Split(strings.TrimSpace(table), "\n") {
		fields := strings.Fields(line)
		if i == 0 || len(fields) < 2 {
			continue
		}
		list = append(list, fields[0]+map[string]string{"true": "", "false": " (not ready)"}[fields[1]])
	}
	slices.Sort(list)
	return list
}

// want waits until the endpoints are these.
func (e *epp) want(endpoints ...string) {
	e.t.Helper()
	expect.Eventually(e.t, fmt.Sprintf("the endpoints are %q", endpoints), func() error {
		if got := e.endpoints(); !slices.Equal(got, endpoints) {
			return fmt.Errorf("they are %q", got)
		}
		return nil
	})
}
