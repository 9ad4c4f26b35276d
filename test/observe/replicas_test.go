package observe

import (
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/kubeenv"
	"github.com/weir-epp/weir/internal/modelsim"
	"github.com/weir-epp/weir/internal/pki"
)

// objects are a pool of one pod, and the objects in which a leader publishes itself.
const objects = `
apiVersion: inference.networking.k8s.io/v1
kind: InferencePool
metadata: {name: chat}
spec:
  selector: {matchLabels: {app: chat}}
  targetPorts: [{number: %d}]
  endpointPickerRef: {name: weir, port: {number: 9002}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: weir, labels: {kubernetes.io/service-name: weir}}
addressType: IPv4
ports: [{name: grpc, port: 9002}]
---
apiVersion: v1
kind: Pod
metadata: {name: chat-0, labels: {app: chat}}
spec: {nodeName: node, containers: [{name: vllm, image: vllm}]}
---
apiVersion: v1
kind: Pod
metadata: {name: weir-0, labels: {app: weir}}
spec: {nodeName: node, containers: [{name: epp, image: weir}]}
`

// With a real apiserver: a replica that leads, until another holder has its Lease, and then the end of the apiserver.
func TestDoesOneReplicaLeadAndReachTheAPIServer(t *testing.T) {
	t.Parallel()
	env := kubeenv.Start(t)
	env.InstallCRDs(t, "../../charts/weir/crds")
	ns := env.Namespace(t)
	engine, err := modelsim.Start(slots(4, 100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(engine.Close)
	address, err := net.ResolveTCPAddr("tcp", engine.Address())
	if err != nil {
		t.Fatal(err)
	}
	env.Apply(t, ns, fmt.Sprintf(objects, address.Port))
	pods := env.Clients().CoreV1().Pods(ns)
	pod, err := pods.Get(t.Context(), "chat-0", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: "127.0.0.1", PodIPs: []corev1.PodIP{{IP: "127.0.0.1"}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}
	if _, err := pods.UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}

	r := newRig(t, setup{name: "replicas", environment: []string{"POD_NAME=weir-0", "POD_UID=0", "NAMESPACE=" + ns, "POD_IP=10.9.9.9"}})
	r.engines = []*modelsim.Server{engine}
	r.epp = startEPP(t, r.with, []string{
		"--kubeconfig=" + env.Kubeconfig(t, env.Admin(), ns), "--pool-name=chat", "--pool-namespace=" + ns, "--metrics-endpoint-auth=false",
		"--ha-enable-leader-election", "--leader-endpoint-slice=weir",
	})
	expect.Eventually(t, "it leads", func() error {
		lease, err := env.Clients().CoordinationV1().Leases(ns).Get(context.Background(), "chat-weir", metav1.GetOptions{})
		if err == nil && lease.Spec.HolderIdentity == nil {
			err = fmt.Errorf("nobody holds %s", lease.Name)
		}
		return err
	})
	r.scraped()
	const leads, reaches = "Does exactly one replica lead?", "Does each replica reach the apiserver?"
	r.healthy(leads, reaches, "Which engine is not ready?")

	leases := env.Clients().CoordinationV1().Leases(ns)
	expect.Eventually(t, "somebody else takes the Lease", func() error {
		lease, err := leases.Get(context.Background(), "chat-weir", metav1.GetOptions{})
		if err != nil {
			return err
		}
		lease.Spec = coordinationv1.LeaseSpec{
			HolderIdentity: new("somebody"), LeaseDurationSeconds: new(int32(3600)), RenewTime: &metav1.MicroTime{Time: time.Now()},
		}
		_, err = leases.Update(context.Background(), lease, metav1.UpdateOptions{})
		return err
	})
	r.red(leads, "pool", "chat")
	r.alarmed("WeirNoLeader")

	env.StopAPIServer(t)
	r.red(reaches, "pod", "weir-0")
	r.alarmed("WeirAPIServerUnreachable", "WeirNoLeader")
}

// The certificate of Weir is about to expire, and then expires: an Envoy that verifies it cannot connect any more.
func TestDoCertificatesHold(t *testing.T) {
	t.Parallel()
	authority, dir := pki.NewAuthority(t), t.TempDir()
	valid := func(until time.Time) {
		certificate, key := authority.Issue("weir", func(c *x509.Certificate) { c.NotAfter = until })
		for name, text := range map[string][]byte{"tls.key": key, "tls.crt": certificate} {
			expect.Replaced(t, filepath.Join(dir, name), string(text))
		}
	}
	valid(time.Now().AddDate(0, 1, 0))
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, authority.PEM, 0o600); err != nil {
		t.Fatal(err)
	}
	verifying := func(b envoyrun.Bootstrap) error {
		b.Cluster(envoyrun.WeirCluster)["transport_socket"] = map[string]any{
			"name": "envoy.transport_sockets.tls",
			"typed_config": map[string]any{
				"@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
				"common_tls_context": map[string]any{
					"validation_context": map[string]any{"trusted_ca": map[string]any{"filename": ca}},
				},
			},
		}
		return nil
	}
	r := start(t, setup{name: "certificates", edit: verifying, flags: []string{"--secure-serving", "--cert-path=" + dir}})
	r.load(2, "team")
	const expires, fails, past = "When does the certificate expire?", "Do TLS handshakes fail?", "Is anything passing Weir by?"
	r.healthy(append([]string{expires, fails}, fullness...)...)

	valid(time.Now().Add(-time.Minute))
	r.red(expires, "pod", "weir-0")
	r.loadAt(r.envoy(r.addresses(), verifying), 2, "team") // the first one is connected
	r.scraped()
	r.red(fails, "reason", "other")
	r.red(past, "pod", "envoy-1")
	r.loadAt(r.envoy(r.addresses(), nil), 2, "team") // in plain text
	r.becomesRed(fails, "reason", "plaintext")
	r.alarmed("WeirBypassed", "WeirCertificateExpires")
}
