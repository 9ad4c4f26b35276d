package chart

import (
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
	"k8s.io/client-go/util/retry"

	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/kubeenv"
)

// labelled is the file with the objects of the earlier chart, whose leader had a label.
const labelled = "testdata/labelled.yaml"

// upgrade is a release of Helm's, with the endpoints of its Service.
type upgrade struct {
	t          *testing.T
	env        *kubeenv.Env
	ns         string
	kubeconfig string
	service    *leadersService
}

// shortWindow are values with a drain window that a test can wait for.
const shortWindow = minimal + "config: { requestQueueController: { drainWindow: 10s } }\n"

// newUpgrade installs the earlier chart, whose leader had a label, and makes the pod of its leader.
func newUpgrade(t *testing.T, install func(*upgrade)) (u *upgrade, old *corev1.Pod) {
	t.Helper()
	env := cluster(t)
	u = &upgrade{t: t, env: env, ns: env.Namespace(t)}
	u.kubeconfig = env.Kubeconfig(t, env.Admin(), u.ns)
	install(u)
	u.service = watchService(t, env, u.ns, "llama-weir")
	old = u.labelledLeader("old-0", "10.255.9.8")
	u.leadsTo(old.Status.PodIP)
	u.service.counts()
	return u, old
}

// byHelm installs that chart with Helm.
func byHelm(u *upgrade) { u.helm("install", release, labelledChart(u.t)) }

// labelledChart returns a chart with the objects of the file.
func labelledChart(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "templates"), 0o700); err != nil {
		t.Fatal(err)
	}
	objects := inNamespaceOf(readFile(t, labelled), "{{ .Release.Namespace }}")
	for file, text := range map[string]string{
		"Chart.yaml": "{apiVersion: v2, name: weir, version: 0.0.1}", "templates/all.yaml": objects,
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// helm runs Helm in the namespace.
func (u *upgrade) helm(args ...string) {
	u.t.Helper()
	u.tool("helm", args...)
}

// tool runs a tool as the administrator.
func (u *upgrade) tool(name string, args ...string) {
	u.t.Helper()
	out, err := run(u.t, tool(u.t, name), append([]string{"--kubeconfig", u.kubeconfig, "--namespace", u.ns}, args...)...)
	if err != nil {
		u.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// present upgrades to the present chart.
func (u *upgrade) present(more ...string) {
	u.t.Helper()
	u.presentWith(shortWindow, more...)
}

// presentWith is present with other values.
func (u *upgrade) presentWith(values string, more ...string) {
	u.t.Helper()
	u.helm(append(append([]string{"upgrade", release, chartDir}, files(u.t, []string{values})...), more...)...)
}

// selector returns the Service's selector.
func (u *upgrade) selector() map[string]string {
	u.t.Helper()
	service, err := u.env.Clients().CoreV1().Services(u.ns).Get(u.t.Context(), "llama-weir", metav1.GetOptions{})
	if err != nil {
		u.t.Fatal(err)
	}
	return service.Spec.Selector
}

// leadsTo waits until the Service leads to these addresses and no others.
func (u *upgrade) leadsTo(addresses ...string) {
	u.t.Helper()
	expect.Eventually(u.t, "the Service's addresses", func() error {
		if got := u.service.leadsTo(); !slices.Equal(got, addresses) {
			return fmt.Errorf("it leads to %v, want %v", got, addresses)
		}
		return nil
	})
}

// neverEmpty checks that the Service had no endpoint for at most the promised time since the last check.
func (u *upgrade) neverEmpty(most time.Duration, when string) {
	u.t.Helper()
	time.Sleep(5 * serviceLook)
	if empty := u.service.counts(); empty > most {
		u.t.Errorf("%s: the Service led nowhere for %v, want at most %v", when, empty, most)
	} else if empty > 0 {
		u.t.Logf("%s: the Service led nowhere for %v", when, empty)
	}
}

// labelledLeader makes that chart's leader in the cluster's view: a ready pod with the label, and the Lease.
func (u *upgrade) labelledLeader(name, ip string) *corev1.Pod {
	u.t.Helper()
	pods := u.env.Clients().CoreV1().Pods(u.ns)
	pod, err := pods.Create(u.t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			"app.kubernetes.io/name": "weir", "app.kubernetes.io/instance": release, "app.kubernetes.io/component": "epp",
			"weir.dev/leader": "true",
		}},
		Spec: corev1.PodSpec{NodeName: "node", Containers: []corev1.Container{{Name: "epp", Image: "epp"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		u.t.Fatal(err)
	}
	pod = u.ready(pod, ip)
	leases := u.env.Clients().CoordinationV1().Leases(u.ns)
	holder, seconds, now := name+"_"+string(pod.UID)+"_boot", int32(15), metav1.NowMicro()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "llama-weir"}}
	if there, err := leases.Get(u.t.Context(), lease.Name, metav1.GetOptions{}); err == nil {
		lease = there
	}
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = &holder, &seconds, &now
	if lease.ResourceVersion == "" {
		_, err = leases.Create(u.t.Context(), lease, metav1.CreateOptions{})
	} else {
		_, err = leases.Update(u.t.Context(), lease, metav1.UpdateOptions{})
	}
	if err != nil {
		u.t.Fatal(err)
	}
	return pod
}

// ready gives a pod an address and the condition Ready, as a kubelet does.
func (u *upgrade) ready(pod *corev1.Pod, ip string) *corev1.Pod {
	u.t.Helper()
	status := corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}
	name, pods := pod.Name, u.env.Clients().CoreV1().Pods(u.ns)
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() (err error) { // a leader changes its own label
		if pod, err = pods.Get(u.t.Context(), name, metav1.GetOptions{}); err != nil {
			return err
		}
		pod.Status = status
		pod, err = pods.UpdateStatus(u.t.Context(), pod, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		u.t.Fatal(err)
	}
	return pod
}

// replica starts one of the present chart.
func (u *upgrade) replica(ip string) *deployed {
	u.t.Helper()
	d := replicaAt(u.t, u.env, u.ns, render(u.t, shortWindow), u.env.Admin().Host, ip)
	d.await("the replica has synced", d.serving("synced"))
	d.pod = u.ready(d.pod, podIP(ip))
	return d
}

// gone removes a pod that has ended.
func (u *upgrade) gone(name string) {
	u.t.Helper()
	now := int64(0)
	err := u.env.Clients().CoreV1().Pods(u.ns).Delete(u.t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: &now})
	if err != nil {
		u.t.Fatal(err)
	}
}

// label puts the label of the earlier chart on a pod, by docs/upgrade.md for a rollback.
func (u *upgrade) label(pod string) {
	u.t.Helper()
	patch := []byte(`{"metadata":{"labels":{"weir.dev/leader":"true"}}}`)
	_, err := u.env.Clients().CoreV1().Pods(u.ns).Patch(u.t.Context(), pod, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		u.t.Fatal(err)
	}
}

// Helm upgrades a release whose leader had a label, twice as docs/upgrade.md says, then again in every way that Helm
// has, and rolls it back. The Service leads to a leader all the time, and never to a pod that is gone. Only Helm's
// --force-replace empties the EndpointSlice, for a retry period.
func TestUpgradeFromALabelledLeader(t *testing.T) {
	const period = 2 * time.Second // the chart's retryPeriod
	u, old := newUpgrade(t, byHelm)
	u.present()
	if u.selector()["weir.dev/leader"] != "true" {
		t.Errorf("the first upgrade leaves the Service with the selector %v", u.selector())
	}
	u.leadsTo(old.Status.PodIP)
	begun := time.Now()
	first := u.replica("127.0.9.1")
	u.leadsTo(podIP(first.ip), old.Status.PodIP)
	t.Logf("the new replica led and was published %v after its start", time.Since(begun))
	u.gone(old.Name)
	u.leadsTo(podIP(first.ip))
	u.neverEmpty(0, "the first upgrade")

	u.present()
	if s := u.selector(); len(s) != 0 {
		t.Errorf("the second upgrade leaves the Service with the selector %v", s)
	}
	u.leadsTo(podIP(first.ip))
	u.neverEmpty(0, "the second upgrade")

	for _, way := range []string{"--server-side=true --force-conflicts", "--server-side=false", "--reuse-values", "--set=replicas=3"} {
		u.present(strings.Fields(way)...)
		time.Sleep(period + time.Second)
		u.leadsTo(podIP(first.ip))
		u.neverEmpty(0, "helm upgrade "+way)
	}
	u.present("--server-side=false", "--force-replace")
	u.leadsTo(podIP(first.ip))
	u.neverEmpty(period+4*time.Second, "helm upgrade --force-replace")

	// Rollback. The earlier chart's Service selects the leader by its label again, which no pod has.
	u.label(first.pod.Name)
	u.helm("rollback", release, "1")
	if u.selector()["weir.dev/leader"] != "true" {
		t.Errorf("the rollback leaves the Service with the selector %v", u.selector())
	}
	u.leadsTo(podIP(first.ip))
	if status := first.serving("readiness")(); status != nil {
		t.Errorf("the leader after the rollback: %v", status)
	}
	again := u.labelledLeader("old-1", "10.255.9.7")
	if _, err := first.process.Stop(time.Minute); err != nil {
		t.Error(err)
	}
	u.gone(first.pod.Name)
	u.leadsTo(again.Status.PodIP)
	u.neverEmpty(5*time.Second, "the rollback") // the time of Kubernetes' controller
	slices, err := u.env.Clients().DiscoveryV1().EndpointSlices(u.ns).List(t.Context(), metav1.ListOptions{
		LabelSelector: "endpointslice.kubernetes.io/managed-by=weir.dev",
	})
	if err != nil || len(slices.Items) != 0 {
		t.Errorf("after the rollback there are still the EndpointSlices %v (%v)", slices.Items, err)
	}

	// And forward again.
	u.present()
	second := u.replica("127.0.9.2")
	u.leadsTo(podIP(second.ip), again.Status.PodIP)
	u.gone(again.Name)
	u.present()
	u.leadsTo(podIP(second.ip))
	u.neverEmpty(0, "the upgrade after the rollback")
}

// Tools other than Helm remove the selector at once. Kubernetes keeps its slice, with the address of the old leader,
// until it is deleted by docs/upgrade.md. The new leader is there beside it all the time.
func TestUpgradeWithoutHelm(t *testing.T) {
	for name, how := range map[string][]string{
		"kubectl apply": nil, "kubectl apply on the server's side": {"--server-side", "--force-conflicts"},
	} {
		t.Run(name, func(t *testing.T) {
			apply := func(u *upgrade, manifests string) {
				t.Helper()
				file := filepath.Join(t.TempDir(), "all.yaml")
				if err := os.WriteFile(file, []byte(inNamespaceOf(manifests, u.ns)), 0o600); err != nil {
					t.Fatal(err)
				}
				u.tool("kubectl", append([]string{"apply", "--filename", file}, how...)...)
			}
			u, old := newUpgrade(t, func(u *upgrade) { apply(u, readFile(t, labelled)) })
			present := render(t, shortWindow).manifests(t)
			apply(u, present)
			if s := u.selector(); len(s) != 0 {
				t.Errorf("the Service has the selector %v", s)
			}
			first := u.replica("127.0.9.3")
			u.gone(old.Name)
			time.Sleep(5 * serviceLook)
			u.leadsTo(podIP(first.ip), old.Status.PodIP) // the latter's pod is gone
			u.tool("kubectl", "delete", "endpoints", "llama-weir")
			u.tool("kubectl", "delete", "endpointslices", "--selector",
				"kubernetes.io/service-name=llama-weir,endpointslice.kubernetes.io/managed-by!=weir.dev")
			u.leadsTo(podIP(first.ip))
			apply(u, present)
			time.Sleep(time.Second)
			u.leadsTo(podIP(first.ip))
			u.neverEmpty(0, name)
		})
	}
}

// A rollback without the label leaves the Service empty until a replica of the earlier chart leads, as the page says.
func TestRollbackWithoutTheLabel(t *testing.T) {
	u, old := newUpgrade(t, byHelm)
	u.present()
	first := u.replica("127.0.9.4")
	u.gone(old.Name)
	u.present()
	u.leadsTo(podIP(first.ip))
	u.helm("rollback", release, "1")
	u.leadsTo()
	u.label(first.pod.Name) // too late, and it still helps
	u.leadsTo(podIP(first.ip))
	if status := first.serving("readiness")(); status != nil {
		t.Error(status)
	}
}
