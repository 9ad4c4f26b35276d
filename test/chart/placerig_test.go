package chart

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	kubeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-epp/weir/internal/binaries"
	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/kubeenv"
)

// place is a namespace with a release of another picker, demo, the engines of its pool, and an Envoy as a gateway would
// make it from the HTTPRoute, the InferencePool and the Service of the picker.
type place struct {
	t           *testing.T
	env         *kubeenv.Env
	ns          string
	kubeconfig  string
	values      string // the file of their values
	engine      *heldEngine
	addresses   []string  // of the engines
	theirs      *deployed // stands in for their picker
	weir        *deployed
	replicas    map[string]*deployed // by the UID of the pod
	envoy       *envoyrun.Envoy
	eds         string // the file with the picker's address
	translation translation
}

const gatewayAPI = "gateway.networking.k8s.io/v1"

// translation is a gateway's reading of the objects, without the address of the picker.
type translation struct {
	timeout     string
	failOpen    bool
	destination string // of the pool's endpoints, separated by blanks
}

// newPlace installs a release of the other picker by its values, in which PORTS stands for the engines' ports, and starts
// the stand-in and the gateway.
func newPlace(t *testing.T, values string) *place {
	t.Helper()
	p := &place{t: t, env: cluster(t), engine: &heldEngine{}, replicas: map[string]*deployed{}, eds: filepath.Join(t.TempDir(), "eds.json")}
	p.ns = p.env.Namespace(t)
	p.kubeconfig = p.env.Kubeconfig(t, p.env.Admin(), p.ns)
	var ports []string
	for range 2 { // two engines on one pod
		server := httptest.NewServer(p.engine)
		t.Cleanup(server.Close)
		p.addresses = append(p.addresses, server.Listener.Addr().String())
		_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
		ports = append(ports, "{ number: "+port+" }")
	}
	p.values = filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(p.values, []byte(strings.ReplaceAll(values, "PORTS", strings.Join(ports, ", "))), 0o600); err != nil {
		t.Fatal(err)
	}
	p.helm("install", "demo", "../peers/picker", "--values", p.values)
	if !strings.Contains(p.helm("get", "manifest", "demo"), "kind: HTTPRoute") {
		p.env.Apply(t, p.ns, `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: demo }
spec:
  parentRefs: [ { name: inference-gateway } ]
  rules: [ { backendRefs: [ { group: inference.networking.k8s.io, kind: InferencePool, name: demo } ], timeouts: { request: 300s } } ]
`)
	}
	p.theirs = p.startTheirs()
	p.engines()
	p.gateway()
	return p
}

// engines creates the pod of the engines, with the labels of the pool.
func (p *place) engines() {
	p.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "engines", Labels: map[string]string{"app": "qwen"}},
		Spec:       corev1.PodSpec{NodeName: "node", Containers: []corev1.Container{{Name: "vllm", Image: "vllm"}}},
	}
	pods := p.env.Clients().CoreV1().Pods(p.ns)
	made, err := pods.Create(p.t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	made.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: "127.0.0.1", PodIPs: []corev1.PodIP{{IP: "127.0.0.1"}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}
	if _, err := pods.UpdateStatus(p.t.Context(), made, metav1.UpdateOptions{}); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) helm(args ...string) string {
	p.t.Helper()
	return p.command("helm", args...)
}

func (p *place) kubectl(args ...string) string {
	p.t.Helper()
	return p.command("kubectl", args...)
}

func (p *place) command(name string, args ...string) string {
	p.t.Helper()
	out, err := p.try(name, args...)
	if err != nil {
		p.t.Fatal(err)
	}
	return out
}

// try runs a tool as the cluster's administrator, in the namespace.
func (p *place) try(name string, args ...string) (string, error) {
	p.t.Helper()
	return run(p.t, tool(p.t, name), append(args, "--kubeconfig", p.kubeconfig, "--namespace", p.ns)...)
}

// startTheirs starts an epp without a queue as a stand-in for their picker, in a pod of their Deployment.
func (p *place) startTheirs() *deployed {
	p.t.Helper()
	all := parse(p.t, p.helm("get", "manifest", "demo"))
	all.deployment(p.t).at("spec", "template", "spec", "containers", 0).(map[string]any)["args"] = []any{
		"--config-text={ profile: recommended, requestQueueController: { enabled: false, drainWindow: 0s } }",
		"--endpoints=" + strings.Join(p.addresses, ","), "--metrics-endpoint-auth=false",
	}
	d := p.add(replica(p.t, p.env, p.ns, all))
	d.await("their picker is ready", d.serving("readiness"))
	return d
}

func (p *place) add(d *deployed) *deployed {
	p.replicas[string(d.pod.UID)] = d
	return d
}

// end ends a replica and its pod.
func (p *place) end(d *deployed) {
	p.t.Helper()
	_, _ = d.process.Stop(time.Minute)
	now := int64(0)
	if err := p.env.Clients().CoreV1().Pods(p.ns).Delete(p.t.Context(), d.pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		p.t.Fatal(err)
	}
	delete(p.replicas, string(d.pod.UID))
}

// installWeir installs the chart with the values converted from theirs and the operator's additions. It returns when
// the replica leads.
func (p *place) installWeir(from, more string) {
	p.t.Helper()
	text, err := run(p.t, binaries.Path(binaries.Weir), "config", "import", "--from", from, "--beside", "demo", p.values)
	if err != nil {
		p.t.Fatal(err)
	}
	p.helm(append([]string{"install", "weir", chartDir, "--skip-crds"}, files(p.t, []string{text, more})...)...)
	p.weir = p.add(replica(p.t, p.env, p.ns, parse(p.t, p.helm("get", "manifest", "weir"))))
	p.weir.await("Weir leads", p.weir.serving("readiness"))
}

// rule is the host of Istio's rule for a Service; "" without one.
func (p *place) rule(service string) string {
	p.t.Helper()
	return p.live(onlyNamed("networking.istio.io/v1beta1", "DestinationRule", service)).text("spec", "host")
}

// onlyNamed is an object with a known name only.
func onlyNamed(version, kind, name string) object {
	return object{"apiVersion": version, "kind": kind, "metadata": map[string]any{"name": name}}
}

// refer points the pool to a Service, as an operator does, and the gateway follows.
func (p *place) refer(service string) {
	p.t.Helper()
	p.kubectl("patch", "inferencepool", "demo", "--type=merge", "--patch", `{"spec":{"endpointPickerRef":{"name":"`+service+`"}}}`)
	p.follow()
}

// release returns the current objects of their release, and the HTTPRoute, without the apiserver's own fields.
func (p *place) release() objects {
	p.t.Helper()
	all := parse(p.t, p.helm("get", "manifest", "demo"))
	all["HTTPRoute/demo"] = onlyNamed(gatewayAPI, "HTTPRoute", "demo")
	for key, o := range all {
		live := p.live(o)
		if live == nil {
			delete(all, key)
			continue
		}
		delete(live, "status")
		meta := live["metadata"].(map[string]any)
		for _, own := range []string{"resourceVersion", "generation", "managedFields"} {
			delete(meta, own)
		}
		all[key] = live
	}
	return all
}

// live returns the current object, nil if there is none.
func (p *place) live(o object) object {
	p.t.Helper()
	kind, err := kubeschema.ParseGroupVersion(o.text("apiVersion"))
	if err != nil {
		p.t.Fatal(err)
	}
	resource := p.env.Objects().Resource(kind.WithResource(strings.ToLower(o.kind()) + "s"))
	live, err := resource.Namespace(p.ns).Get(p.t.Context(), o.name(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		p.t.Fatal(err)
	}
	return live.Object
}

// selectsItsOwn checks that Services and disruption budgets select only pods of their own release, and the pool
// engines.
func (p *place) selectsItsOwn() {
	p.t.Helper()
	services, err := p.env.Clients().CoreV1().Services(p.ns).List(p.t.Context(), metav1.ListOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	for _, s := range services.Items {
		for _, d := range p.selected(s.Spec.Selector) {
			if want := map[bool]*deployed{true: p.theirs, false: p.weir}[s.Name == "demo-epp"]; d != want {
				p.t.Errorf("the Service %s selects the pod %s", s.Name, d.pod.Name)
			}
		}
	}
	budgets, err := p.env.Clients().PolicyV1().PodDisruptionBudgets(p.ns).List(p.t.Context(), metav1.ListOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	for _, b := range budgets.Items {
		for _, d := range p.selected(b.Spec.Selector.MatchLabels) {
			if d != p.weir {
				p.t.Errorf("the PodDisruptionBudget %s selects the pod %s", b.Name, d.pod.Name)
			}
		}
	}
}

// selected returns the replicas whose pods have all labels; without a selector none.
func (p *place) selected(selector map[string]string) (found []*deployed) {
	for _, d := range p.replicas {
		if len(selector) > 0 && labels.SelectorFromSet(selector).Matches(labels.Set(d.pod.Labels)) {
			found = append(found, d)
		}
	}
	return found
}

// picker returns the replica behind a Service: that of its selector, or of its EndpointSlice if it has none.
func (p *place) picker(service string, port int64) *deployed {
	p.t.Helper()
	s, err := p.env.Clients().CoreV1().Services(p.ns).Get(p.t.Context(), service, metav1.GetOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	if !slices.ContainsFunc(s.Spec.Ports, func(each corev1.ServicePort) bool { return int64(each.Port) == port }) {
		p.t.Fatalf("the Service %s has no port %d", service, port)
	}
	found := p.selected(s.Spec.Selector)
	slices, err := p.env.Clients().DiscoveryV1().EndpointSlices(p.ns).List(p.t.Context(),
		metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=" + service})
	if err != nil {
		p.t.Fatal(err)
	}
	for _, s := range slices.Items {
		for _, e := range s.Endpoints {
			found = append(found, p.replicas[string(e.TargetRef.UID)])
		}
	}
	if len(found) != 1 {
		p.t.Fatalf("the Service %s leads to %d pods, want 1", service, len(found))
	}
	return found[0]
}

// read returns a gateway's reading of the HTTPRoute and the InferencePool, and the picker.
func (p *place) read() (translation, *deployed) {
	p.t.Helper()
	route := p.live(onlyNamed(gatewayAPI, "HTTPRoute", "demo"))
	name, _ := route.at("spec", "rules", 0, "backendRefs", 0, "name").(string)
	pool := p.live(onlyNamed("inference.networking.k8s.io/v1", "InferencePool", name))
	if pool == nil || route.at("spec", "rules", 1) != nil {
		p.t.Fatalf("the route has another rule, or leads to no pool: %v", route)
	}
	reference := object(pool.at("spec", "endpointPickerRef").(map[string]any))
	service, port := reference.text("name"), reference.at("port", "number").(int64)
	if host := p.rule(service); p.rule("demo-epp") != "" && host != service+"."+p.ns+".svc.cluster.local" {
		p.t.Fatalf("Istio would speak plaintext to the Service %s; its rule is for %q", service, host)
	}
	var endpoints []string
	selector := labels.Set{}
	for key, value := range pool.at("spec", "selector", "matchLabels").(map[string]any) {
		selector[key] = value.(string)
	}
	pods, err := p.env.Clients().CoreV1().Pods(p.ns).List(p.t.Context(), metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		p.t.Fatal(err)
	}
	for _, pod := range pods.Items {
		for _, port := range pool.at("spec", "targetPorts").([]any) {
			endpoints = append(endpoints, fmt.Sprint(pod.Status.PodIP, ":", object(port.(map[string]any)).at("number")))
		}
	}
	return translation{
		timeout:     route.text("spec", "rules", 0, "timeouts", "request"),
		failOpen:    reference.text("failureMode") == "FailOpen",
		destination: strings.Join(endpoints, " "),
	}, p.picker(service, port)
}

// gateway starts Envoy by the objects: the shipped file with bodies in full duplex, as gateways have them.
func (p *place) gateway() {
	p.t.Helper()
	p.translation, _ = p.read()
	p.follow()
	var err error
	p.envoy, err = envoyrun.Start(context.Background(), envoyrun.Options{
		Config: "full-duplex", Weir: "127.0.0.1:1", ModelServers: strings.Fields(p.translation.destination),
		Edit: func(b envoyrun.Bootstrap) error {
			b["node"] = map[string]any{"id": "gateway", "cluster": "gateway"}
			b.Route()["timeout"] = p.translation.timeout
			b.Filter(envoyrun.ExtProcFilter)["failure_mode_allow"] = p.translation.failOpen
			picker := b.Cluster(envoyrun.WeirCluster)
			delete(picker, "load_assignment")
			maps.Copy(picker, map[string]any{
				"type": "EDS",
				"eds_cluster_config": map[string]any{"eds_config": map[string]any{
					"resource_api_version": "V3", "path_config_source": map[string]any{"path": p.eds},
				}},
				"transport_socket": map[string]any{"name": "envoy.transport_sockets.tls", "typed_config": map[string]any{
					"@type":              "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
					"common_tls_context": map[string]any{"alpn_protocols": []any{"h2"}},
				}},
			})
			return nil
		},
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(p.envoy.Kill)
}

// follow writes the address of the picker for Envoy. Nothing else of the translation may have changed.
func (p *place) follow() {
	p.t.Helper()
	now, picker := p.read()
	if now != p.translation {
		p.t.Fatalf("the gateway reads %+v, and read %+v before", now, p.translation)
	}
	text, err := json.Marshal(map[string]any{"version_info": picker.pod.Name, "resources": []any{map[string]any{
		"@type":        "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
		"cluster_name": envoyrun.WeirCluster,
		"endpoints": []any{map[string]any{"lb_endpoints": []any{map[string]any{"endpoint": map[string]any{"address": map[string]any{
			"socket_address": map[string]any{"address": picker.host(), "port_value": picker.ports.GRPC},
		}}}}}},
	}}})
	if err != nil {
		p.t.Fatal(err)
	}
	expect.Replaced(p.t, p.eds, string(text))
}

// ask sends a request, and returns an error unless it is served.
func (p *place) ask(ctx context.Context) error {
	return expect.Post(ctx, p.envoy.URL()+"/v1/completions", `{"model":"qwen","prompt":"Hello","max_tokens":8}`).Served()
}

// load sends requests, two at a time, until it is stopped. The test fails if one is not served.
func (p *place) load() (stop func()) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	var clients sync.WaitGroup
	for range 2 {
		clients.Go(func() {
			for ctx.Err() == nil {
				if err := p.ask(context.Background()); err != nil {
					p.t.Errorf("a request of the load: %v", err)
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
	stop = sync.OnceFunc(func() {
		if ctx.Err() != nil {
			p.t.Errorf("the load ended %v after its start, before it was stopped", 2*patience)
		}
		cancel()
		clients.Wait()
	})
	p.t.Cleanup(stop)
	return stop
}

// served waits until a picker has the requests of the load.
func (p *place) served(by *deployed) {
	p.t.Helper()
	seen := func() float64 {
		_, text := by.scrape("")
		return sumOf(text, "weir_requests_total")
	}
	before := seen()
	by.await("requests go by "+by.pod.Name, func() error {
		if n := seen() - before; n < 10 {
			return fmt.Errorf("%g did", n)
		}
		return nil
	})
}
