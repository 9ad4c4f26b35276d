package chart

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kubeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-epp/weir/internal/kubeenv"
)

// An existing definition, here one that Helm has applied for another chart, stays unchanged if the chart is installed
// by docs/kubernetes.md. Missing definitions are added. Without --skip-crds it would not stay: Helm 4 applies the
// folder crds under one name for all charts, so it replaces another chart's definitions (ADR 0093).
func TestDefinitionsOfOthersStay(t *testing.T) {
	const pools = "inferencepools.inference.networking.k8s.io"
	env := kubeenv.Start(t)
	config := "--kubeconfig=" + env.Kubeconfig(t, env.Admin(), "default")
	kubectl, helm := tool(t, "kubectl"), tool(t, "helm")

	own := readFile(t, filepath.Join(chartDir, "crds", pools+".yaml"))
	theirs := strings.Replace(own, "shortNames: [infpool]", "shortNames: [infpool, theirs]", 1)
	file := filepath.Join(t.TempDir(), "theirs.yaml")
	if err := os.WriteFile(file, []byte(theirs), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t, kubectl, config, "apply", "--server-side", "--field-manager=helm", "-f", file); err != nil {
		t.Fatal(err)
	}
	shortNames := func() string {
		kind := kubeschema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
		definition, err := env.Objects().Resource(kind).Get(t.Context(), pools, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		names, _, _ := unstructured.NestedStringSlice(definition.Object, "spec", "names", "shortNames")
		return strings.Join(names, " ")
	}
	install := func(flags ...string) {
		t.Helper()
		arguments := append([]string{"upgrade", "--install", release, chartDir, config, "--namespace", env.Namespace(t)}, flags...)
		if _, err := run(t, helm, append(arguments, files(t, []string{minimal})...)...); err != nil {
			t.Fatal(err)
		}
	}

	if _, err := run(t, kubectl, config, "create", "-f", chartDir+"/crds"); err == nil || strings.Count(err.Error(), "AlreadyExists") != 1 {
		t.Errorf("kubectl create: %v, want an error for the existing one", err)
	}
	if _, err := run(t, kubectl, config, "wait", "--for=condition=Established", "-f", chartDir+"/crds"); err != nil {
		t.Error(err) // all are there
	}
	install("--skip-crds")
	if got := shortNames(); got != "infpool theirs" {
		t.Errorf("their definition has the short names %s now", got)
	}
	install()
	if got := shortNames(); got != "infpool" {
		t.Errorf("Helm leaves their definition (short names %s): docs/kubernetes.md need not ask for --skip-crds", got)
	}
}
