package kube

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-epp/weir/internal/binaries"
	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/pki"
)

// elected is the Lease of an election won by pod weir-0.
const elected = `
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: chat-weir}
spec: {holderIdentity: weir-0_u-0_boot_10.9.9.9, leaseDurationSeconds: 15}
`

// otherVersion is an InferencePool of another group, in a version that Weir does not read.
const otherVersion = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: inferencepools.old.example}
spec:
  group: old.example
  names: {kind: InferencePool, plural: inferencepools, singular: inferencepool}
  scope: Namespaced
  versions:
  - {name: v1alpha2, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`

// doctor runs `weir doctor --kubernetes`, and returns the identifiers of its findings, its exit code, and its output.
func (w *world) doctor(kubeconfig string, flags ...string) (ids []string, code int, out string) {
	w.t.Helper()
	command := exec.CommandContext(w.t.Context(), binaries.Path(binaries.Weir), append([]string{
		"doctor", "--kubernetes", "-o", "json", "--kubeconfig=" + kubeconfig, "--pool-namespace=" + w.namespace,
		"--pool-name=chat", "--metrics-endpoint-auth=false",
	}, flags...)...)
	text, err := command.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.t.Fatal(err)
	}
	var report struct {
		Findings []struct{ ID, Where, Found, Change string }
	}
	if command.ProcessState.ExitCode() != 2 {
		if err := json.Unmarshal(text, &report); err != nil {
			w.t.Fatalf("%v\n%s", err, text)
		}
	}
	for _, f := range report.Findings {
		ids = append(ids, f.ID)
	}
	return ids, command.ProcessState.ExitCode(), string(text)
}

// A cluster without a fault has no finding. Each part that Weir needs is broken once, and is then the one finding.
func TestDoctorOfACluster(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(role, electing, pool, elected)
	w.pod("engine", "127.0.3.1", true)
	admin := w.env.Kubeconfig(t, w.env.Admin(), w.namespace)
	w.env.Token(t, w.namespace, "weir") // makes the account
	authority := pki.NewAuthority(t)
	secret := func(edit func(*x509.Certificate)) {
		t.Helper()
		certificate, key := authority.Issue("weir", edit)
		object := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "weir-tls"}, Type: corev1.SecretTypeTLS, Data: map[string][]byte{
			corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key,
		}}
		secrets := w.env.Clients().CoreV1().Secrets(w.namespace)
		_ = secrets.Delete(t.Context(), object.Name, metav1.DeleteOptions{})
		if _, err := secrets.Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	secret(nil)
	leader := func(pods ...string) {
		t.Helper()
		var entries []string
		for _, pod := range pods {
			entries = append(entries, fmt.Sprintf(`{"addresses":["10.9.9.9"],"targetRef":{"kind":"Pod","name":%q}}`, pod))
		}
		patch := fmt.Appendf(nil, `{"endpoints":[%s]}`, strings.Join(entries, ","))
		slices := w.env.Clients().DiscoveryV1().EndpointSlices(w.namespace)
		if _, err := slices.Patch(t.Context(), "weir", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	leader("weir-0")
	all := []string{
		"--service-account=weir", "--certificate-secret=weir-tls", "--ha-enable-leader-election", "--leader-endpoint-slice=weir",
	}
	want := func(what string, more []string, says string, ids ...string) {
		t.Helper()
		code := min(len(ids), 1)
		// The apiserver applies a change of roles and definitions a moment later.
		expect.Eventually(t, what, func() error {
			got, exit, out := w.doctor(admin, slices.Concat(all, more)...)
			if !slices.Equal(got, ids) || exit != code || !strings.Contains(out, says) {
				return fmt.Errorf("found %v, exit code %d, want %v, %d and %q:\n%s", got, exit, ids, code, says, out)
			}
			return nil
		})
	}
	want("nothing is broken", nil, `"findings": []`)

	w.apply(otherVersion)
	t.Cleanup(func() { w.undefine("inferencepools.old.example") })
	want("another version of the CRD", []string{"--pool-group=old.example"}, "served as v1alpha2", "crd-version")
	want("no CRD", []string{"--pool-group=none.example"}, "not installed", "crd-version")

	w.apply(strings.ReplaceAll(role, "[pods], verbs: [list, watch]", "[pods], verbs: [list]"))
	want("a verb short", nil, "watch pods is not allowed", "permission")
	w.apply(role)
	want("the verb is back", nil, "")

	w.status("engine", "127.0.3.1", false)
	want("no pod is ready", nil, "none is ready", "pool-pods")
	w.remove("engine", 0)
	want("no pod", nil, "matches no pod", "pool-pods")
	want("no pool", []string{"--pool-name=none"}, "there is none in namespace", "pool-pods", "leader-slice") // its Lease has no holder
	w.pod("engine", "127.0.3.1", true)

	leader("weir-1")
	want("the Service leads to a follower", nil, "pod weir-0 leads", "leader-slice")
	leader("weir-0", "weir-1")
	want("the Service leads to two", nil, "weir-0, weir-1", "leader-slice")
	leader("weir-0")
	want("no EndpointSlice", []string{"--leader-endpoint-slice=none"}, "there is none", "permission", "permission", "leader-slice")

	secret(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
	want("the certificate is over", nil, "it ended at", "certificate")
	secret(func(c *x509.Certificate) {
		c.NotBefore, c.NotAfter = time.Now().Add(-24*time.Hour), time.Now().Add(time.Hour)
	})
	want("the certificate is nearly over", nil, "nine tenths", "certificate")
	want("no certificate", []string{"--certificate-secret=none"}, "there is none", "certificate")

	// Weir's own account may read most of it.
	own := w.env.Kubeconfig(t, w.env.As(t, w.namespace, "weir"), w.namespace)
	got, code, out := w.doctor(own, "--secure-serving=false", "--ha-enable-leader-election", "--leader-endpoint-slice=weir")
	if len(got) != 0 || code != 0 {
		t.Errorf("as Weir: found %v, exit code %d\n%s", got, code, out)
	}
	if _, code, out := w.doctor("/none"); code != 2 {
		t.Errorf("without an apiserver: exit code %d\n%s", code, out)
	}
}

// undefine removes a definition.
func (w *world) undefine(name string) {
	definitions := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	if err := w.env.Objects().Resource(definitions).Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
		w.t.Error(err)
	}
}
