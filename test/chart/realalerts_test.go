package chart

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/kubeenv"
)

// openMetrics has alerts, and public metrics.
const openMetrics = minimal + "metrics: { auth: { enabled: false }, prometheusRule: { enabled: true } }\n"

// askedMetrics matches the samples of the alerts' metrics.
func askedMetrics(t *testing.T) *regexp.Regexp {
	t.Helper()
	var names []string
	rules, _ := alerts(t)
	for _, r := range rules {
		names = append(names, metricName.FindAllString(r.Expr, -1)...)
	}
	return regexp.MustCompile(`(?m)^(?:` + strings.Join(names, "|") + `)(?:\{.*\})? \S+$`)
}

// samples returns Prometheus' samples of a replica, those of the alerts and that it is up, and of an Envoy before it.
func (d *deployed) samples() string {
	d.t.Helper()
	_, text := d.scrape("")
	return "up 1\n" + strings.Join(askedMetrics(d.t).FindAllString(text, -1), "\n") + "\n" + quietEnvoy
}

// fires waits until exactly these alerts would fire in a constant state of the replica.
func (d *deployed) fires(what, until string, want ...string) {
	d.t.Helper()
	d.await(what, func() error {
		if _, text := d.scrape(""); !regexp.MustCompile(`(?m)^` + until + `$`).MatchString(text) {
			return fmt.Errorf("the metrics have no %s", until)
		}
		return nil
	})
	firing(d.t, what, d.samples(), want...)
}

// On a real replica no alert fires without a fault, and each has its metrics. Faults of the cluster and of the
// configuration make their own alerts fire.
func TestAlertsOnARealRun(t *testing.T) {
	env := kubeenv.Start(t)
	env.InstallCRDs(t, crds())
	ns := env.Namespace(t)
	all := render(t, openMetrics)
	for key := range all { // no operator is there
		if strings.HasPrefix(key, "PrometheusRule/") {
			delete(all, key)
		}
	}
	deploy(t, env, ns, all)
	modelServer(t, env, ns, "engine-0", "")
	d := replica(t, env, ns, all)
	d.await("it is ready", d.serving("readiness"))
	d.fires("nothing", `weir_ready_backends\{pool="llama"\} 1`)

	config := filepath.Join(d.files["config"], "weir.yaml")
	valid := readFile(t, config)
	expect.Replaced(t, config, "profile: none\n")
	d.fires("the configuration", "weir_config_valid 0", "WeirConfigInvalid")
	expect.Replaced(t, config, valid)
	d.fires("nothing any more", "weir_config_valid 1")

	// It may open the file, but not list the directory. It notices a replaced file.
	if err := os.Chmod(d.files["config"], 0o311); err != nil { //nolint:gosec // fewer rights than the owner's
		t.Fatal(err)
	}
	expect.Replaced(t, config, valid+"\n")
	d.fires("the directory", "weir_files_followed 0", "WeirFilesNotFollowed")
	if err := os.Chmod(d.files["config"], 0o700); err != nil { //nolint:gosec // it is a directory
		t.Fatal(err)
	}
	if err := d.process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	d.fires("nothing any more", "weir_files_followed 1")

	ready(t, env, ns, "engine-0", corev1.ConditionFalse)
	d.fires("the model server", `weir_ready_backends\{pool="llama"\} 0`, "WeirNoReadyBackends")
	ready(t, env, ns, "engine-0", corev1.ConditionTrue)
	d.fires("nothing any more", `weir_ready_backends\{pool="llama"\} 1`)

	pools := env.Objects().Resource(kubeschema.GroupVersionResource{Group: "inference.networking.k8s.io", Version: "v1", Resource: "inferencepools"})
	if err := pools.Namespace(ns).Delete(t.Context(), "llama", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	d.fires("the pool", `weir_pool_missing\{pool="llama"\} 1`, "WeirPoolMissing")
	deploy(t, env, ns, all)
	d.fires("nothing any more", `weir_pool_missing\{pool="llama"\} 0`)

	env.StopAPIServer(t)
	d.fires("the apiserver", `weir_kubernetes_apiserver_up\{pool="llama"\} 0`, "WeirAPIServerUnreachable")
	env.StartAPIServer(t)
	d.fires("nothing any more", `weir_kubernetes_apiserver_up\{pool="llama"\} 1`)

	firing(t, "the process", strings.Replace(d.samples(), "up 1\n", "up 0\n", 1), "WeirDown")
}

// A replica that may not read the pods, and one whose leader is a holder that does not exist.
func TestAlertsOfAReplicaThatCannotServe(t *testing.T) {
	env := cluster(t)
	ns := env.Namespace(t)
	blind := withoutGrant(t, openMetrics, grant{"Role/llama-weir", "", "pods", "list"})
	deploy(t, env, ns, blind)
	d := replica(t, env, ns, blind)
	expect.True(t, "the pool is known", func() bool {
		_, text := d.scrape("")
		return strings.Contains(text, `weir_pool_missing{pool="llama"} 0`)
	})
	d.fires("a permission", `weir_kubernetes_permission_missing\{.*resource="pods",verb="list"\} 1`,
		"WeirPermissionMissing", "WeirNotSynced", "WeirNoReadyBackends", "WeirNoLeader")

	ns = env.Namespace(t)
	all := render(t, openMetrics)
	deploy(t, env, ns, all)
	modelServer(t, env, ns, "engine-0", "")
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "llama-weir"}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: new("somebody"), LeaseDurationSeconds: new(int32(3600)), RenewTime: &metav1.MicroTime{Time: time.Now()},
	}}
	if _, err := env.Clients().CoordinationV1().Leases(ns).Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	d = replica(t, env, ns, all)
	d.await("it has synced", d.serving("synced"))
	d.fires("a leader", `weir_leader\{pool="llama"\} 0`, "WeirNoLeader")
}

// A leader without the apiserver leads on while another replica takes the Lease: until it learns of that, two lead.
func TestAlertOfTwoLeaders(t *testing.T) {
	env := cluster(t)
	ns := env.Namespace(t)
	all := render(t, openMetrics, "leaderElection: { leaseDuration: 2s, retryPeriod: 500ms }\n")
	deploy(t, env, ns, all)
	modelServer(t, env, ns, "engine-0", "")
	cable := newCable(t, env.Admin().Host)
	first := replicaBy(t, env, ns, all, cable.url())
	first.await("it leads", first.serving("readiness"))
	second := replica(t, env, ns, all)
	second.await("it has synced", second.serving("synced"))
	both := func() string { return first.samples() + second.samplesOf("weir-1") }
	firing(t, "nothing", both())

	cable.sever()
	second.await("it leads, too", second.serving("readiness"))
	first.await("the other one knows nothing of that", func() error {
		if n := first.value(`weir_kubernetes_apiserver_up{pool="llama"}`); n != 0 {
			return fmt.Errorf("the apiserver is up: %v", n)
		}
		return first.serving("readiness")()
	})
	firing(t, "the way to the apiserver", both(), "WeirTwoLeaders", "WeirAPIServerUnreachable")
}

// samplesOf returns samples with another pod's name than firing gives them.
func (d *deployed) samplesOf(pod string) string {
	d.t.Helper()
	labels := regexp.MustCompile(`(?m)^(\w+)(?:\{(.*)\})? `)
	return labels.ReplaceAllString(strings.TrimSuffix(d.samples(), quietEnvoy), `$1{pod="`+pod+`",$2} `)
}

// ready sets whether a pod is ready.
func ready(t *testing.T, env *kubeenv.Env, ns, name string, status corev1.ConditionStatus) {
	t.Helper()
	pods := env.Clients().CoreV1().Pods(ns)
	pod, err := pods.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
	if _, err := pods.UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}
