package chart

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-epp/weir/internal/binaries"
	"github.com/weir-epp/weir/internal/child"
	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/kubeenv"
)

// deployed is a replica in the Deployment's form: its pod is an object in the apiserver, and its process runs here with
// the pod's arguments, environment and files, and a token of its service account.
type deployed struct {
	t         *testing.T
	env       *kubeenv.Env
	apiserver string // its URL
	pod       *corev1.Pod
	ip        string // of the pod; empty: 127.0.0.1, and other ports than the container's
	binary    string // the program
	process   *child.Process
	log       string            // the file
	files     map[string]string // directories by the name of their volume
	ports     struct{ GRPC, Health, Metrics, Debug int }
}

// deploy applies objects to a namespace of the apiserver.
func deploy(t *testing.T, env *kubeenv.Env, ns string, all objects) {
	t.Helper()
	env.Apply(t, ns, inNamespaceOf(all.manifests(t), ns))
}

// inNamespaceOf moves rendered objects from the tests' namespace to another one.
func inNamespaceOf(manifests, ns string) string {
	for _, end := range []string{"\n", " ", "-", ".llama", ".weir"} { // the last two: cluster roles
		manifests = strings.ReplaceAll(manifests, ": "+namespace+end, ": "+ns+end)
	}
	return manifests
}

// replica creates a pod from the Deployment's template and starts its process. It returns when the process listens.
func replica(t *testing.T, env *kubeenv.Env, ns string, all objects) *deployed {
	t.Helper()
	return replicaBy(t, env, ns, all, env.Admin().Host)
}

// replicaBy is replica for one that reaches the apiserver at another URL.
func replicaBy(t *testing.T, env *kubeenv.Env, ns string, all objects, apiserver string) *deployed {
	t.Helper()
	return replicaAt(t, env, ns, all, apiserver, "")
}

// replicaAt is replicaBy for a replica whose pod has its own address in 127.0.0.0/8, and the container's ports there.
func replicaAt(t *testing.T, env *kubeenv.Env, ns string, all objects, apiserver, ip string) *deployed {
	t.Helper()
	return replicaOf(t, binaries.Path(binaries.EPP), env, ns, all, apiserver, ip)
}

// replicaOf is replicaAt for another program than the tests' build.
func replicaOf(t *testing.T, binary string, env *kubeenv.Env, ns string, all objects, apiserver, ip string) *deployed {
	t.Helper()
	deployment := all.deployment(t)
	template, err := json.Marshal(deployment.at("spec", "template"))
	if err != nil {
		t.Fatal(err)
	}
	var pod corev1.Pod
	if err := json.Unmarshal(template, &pod); err != nil {
		t.Fatal(err)
	}
	pod.GenerateName = deployment.name() + "-"
	pod.Spec.NodeName = "node" // so that the test decides its end
	pods := env.Clients().CoreV1().Pods(ns)
	made, err := pods.Create(t.Context(), &pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d := &deployed{
		t: t, env: env, apiserver: apiserver, pod: made, ip: ip, binary: binary, log: filepath.Join(t.TempDir(), "epp.log"),
		files: map[string]string{},
	}
	d.start()
	return d
}

// start starts the process of the container epp.
func (d *deployed) start() {
	d.t.Helper()
	dir := d.t.TempDir()
	container := d.pod.Spec.Containers[0]
	portsFile := filepath.Join(dir, "ports")
	args := append([]string{}, container.Args...)
	for _, m := range container.VolumeMounts {
		to := filepath.Join(dir, filepath.Base(m.MountPath))
		if d.mounted(m.Name, to) {
			d.files[m.Name] = to
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], "="+m.MountPath, "="+to)
			}
		}
	}
	// Several run on this machine, so each has other ports. pflag takes the last of two.
	args = append(args, "--bind-address="+d.host(), "--debug-port=0", "--ports-file="+portsFile)
	if d.ip == "" {
		args = append(args, "--grpc-port=0", "--grpc-health-port=0", "--metrics-port=0")
	}
	cmd := exec.Command(d.binary, args...)
	if os.Getuid() == 0 { // the container has no capabilities, so the modes of files count
		setpriv, err := exec.LookPath("setpriv")
		if err != nil {
			d.t.Fatalf("as root the tests need setpriv, of util-linux: %v", err)
		}
		cmd = exec.Command(setpriv, append([]string{"--bounding-set=-all", "--inh-caps=-all", cmd.Path}, args...)...)
	}
	// The environment is the container's, with the connection to the apiserver, which a pod would have as files of the
	// kubelet's.
	account := d.env.As(d.t, d.pod.Namespace, d.pod.Spec.ServiceAccountName)
	account.Host = d.apiserver
	cmd.Env = []string{"KUBECONFIG=" + d.env.Kubeconfig(d.t, account, d.pod.Namespace)}
	for _, e := range container.Env {
		cmd.Env = append(cmd.Env, e.Name+"="+d.variable(e))
	}
	out, err := os.Create(d.log)
	if err != nil {
		d.t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = out, out
	if d.process, err = child.Start(cmd); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() {
		_, _ = d.process.Stop(0)
		_ = out.Close()
		if d.t.Failed() {
			text, _ := os.ReadFile(d.log)
			d.t.Logf("the log of epp %v:\n%s", args, text)
		}
	})
	d.await("it listens", func() error {
		text, err := os.ReadFile(portsFile)
		if err == nil {
			err = json.Unmarshal(text, &d.ports)
		}
		if d.process.Ended() {
			d.t.Fatal("epp has ended")
		}
		return err
	})
}

// host is the address of the process's listeners.
func (d *deployed) host() string { return cmp.Or(d.ip, "127.0.0.1") }

// podIP is the address of a pod whose process listens at an address of this machine, which no EndpointSlice may have.
func podIP(host string) string { return strings.Replace(host, "127.0.", "10.255.", 1) }

// hostOf is the inverse of podIP.
func hostOf(ip string) string { return strings.Replace(ip, "10.255.", "127.0.", 1) }

// variable returns the value of an environment variable in the kubelet's form.
func (d *deployed) variable(e corev1.EnvVar) string {
	if e.ValueFrom == nil || e.ValueFrom.FieldRef == nil {
		return e.Value
	}
	switch path := e.ValueFrom.FieldRef.FieldPath; path {
	case "metadata.namespace":
		return d.pod.Namespace
	case "metadata.name":
		return d.pod.Name
	case "metadata.uid":
		return string(d.pod.UID)
	case "status.podIP":
		return podIP(d.host())
	default:
		d.t.Fatalf("the kubelet has more fields than this test, which lacks %s", path)
		return ""
	}
}

// mounted writes a volume's files to a directory, and reports whether it has any.
func (d *deployed) mounted(volume, dir string) bool {
	d.t.Helper()
	for _, v := range d.pod.Spec.Volumes {
		if v.Name != volume {
			continue
		}
		files := map[string]string{}
		switch {
		case v.ConfigMap != nil:
			m, err := d.env.Clients().CoreV1().ConfigMaps(d.pod.Namespace).Get(d.t.Context(), v.ConfigMap.Name, metav1.GetOptions{})
			if err != nil {
				d.t.Fatal(err)
			}
			files = m.Data
		case v.Secret != nil:
			s, err := d.env.Clients().CoreV1().Secrets(d.pod.Namespace).Get(d.t.Context(), v.Secret.SecretName, metav1.GetOptions{})
			if err != nil {
				d.t.Fatal(err)
			}
			for name, text := range s.Data {
				files[name] = string(text)
			}
		default:
			return false
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			d.t.Fatal(err)
		}
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				d.t.Fatal(err)
			}
		}
		return true
	}
	return false
}

// patience bounds waits for fast events, on a busy machine.
const patience = time.Minute

// await waits until a check has no error.
func (d *deployed) await(what string, ask func() error) {
	d.t.Helper()
	expect.Eventually(d.t, what, ask)
}

// health returns the state of a gRPC health service.
func (d *deployed) health(service string) healthv1.HealthCheckResponse_ServingStatus {
	d.t.Helper()
	conn, err := grpc.NewClient(fmt.Sprintf("%s:%d", d.host(), d.ports.Health), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		d.t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(d.t.Context(), patience)
	defer cancel()
	answer, err := healthv1.NewHealthClient(conn).Check(ctx, &healthv1.HealthCheckRequest{Service: service})
	if err != nil {
		d.t.Fatal(err)
	}
	return answer.Status
}

// healthOf reports whether a health service is SERVING. Without an answer it is not.
func healthOf(host string, port int, service string) bool {
	conn, err := grpc.NewClient(fmt.Sprintf("%s:%d", host, port), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	answer, err := healthv1.NewHealthClient(conn).Check(ctx, &healthv1.HealthCheckRequest{Service: service})
	return err == nil && answer.Status == healthv1.HealthCheckResponse_SERVING
}

// serving returns an error unless a health service is SERVING.
func (d *deployed) serving(service string) func() error {
	return func() error {
		if status := d.health(service); status != healthv1.HealthCheckResponse_SERVING {
			return fmt.Errorf("%s is %s", service, status)
		}
		return nil
	}
}

// scrape reads the metrics with a token, unless it is empty, and returns the status.
func (d *deployed) scrape(token string) (status int, text string) {
	d.t.Helper()
	scheme := "http"
	for _, a := range d.pod.Spec.Containers[0].Args {
		if a == "--metrics-secure-serving" {
			scheme = "https"
		}
	}
	request, err := http.NewRequestWithContext(d.t.Context(), http.MethodGet, fmt.Sprintf("%s://%s:%d/metrics", scheme, d.host(), d.ports.Metrics), nil)
	if err != nil {
		d.t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // self-signed
	defer client.CloseIdleConnections()
	answer, err := client.Do(request)
	if err != nil {
		d.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

// debug reads a page of the debug port.
func (d *deployed) debug(path string) string {
	d.t.Helper()
	return expect.Page(d.t, fmt.Sprintf("http://127.0.0.1:%d%s", d.ports.Debug, path))
}

// logged returns the process's log.
func (d *deployed) logged() string { return readFile(d.t, d.log) }

// modelServer creates a ready pod with the labels of the tests' model servers at 127.0.0.1. The apiserver has no
// scheduler and no kubelet, so the test sets the pod's node and readiness.
func modelServer(t *testing.T, env *kubeenv.Env, ns, name, annotation string) {
	t.Helper()
	const pod = `apiVersion: v1
kind: Pod
metadata: { name: %s, labels: { app: llama }, annotations: { %s } }
spec: { nodeName: node, containers: [ { name: engine, image: engine } ] }
`
	env.Apply(t, ns, fmt.Sprintf(pod, name, annotation))
	pods := env.Clients().CoreV1().Pods(ns)
	made, err := pods.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	made.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: "127.0.0.1", PodIPs: []corev1.PodIP{{IP: "127.0.0.1"}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}
	if _, err := pods.UpdateStatus(t.Context(), made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}
