package chart

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/kubeenv"
)

// others are the modules with the CustomResourceDefinitions for the chart's optional objects, and their directories.
var others = []struct{ module, dir, files string }{
	{"sigs.k8s.io/gateway-api@v1.6.3", "config/crd/standard", "*_httproutes.yaml"},
	{"github.com/prometheus-operator/prometheus-operator@v0.85.0", "example/prometheus-operator-crd", "*_podmonitors.yaml"},
	{"github.com/prometheus-operator/prometheus-operator@v0.85.0", "example/prometheus-operator-crd", "*_servicemonitors.yaml"},
	{"github.com/prometheus-operator/prometheus-operator@v0.85.0", "example/prometheus-operator-crd", "*_prometheusrules.yaml"},
	{"github.com/cert-manager/cert-manager@v1.21.2", "deploy/crds", "*_certificates.yaml"},
	{"sigs.k8s.io/gateway-api@v1.6.3", "config/crd/standard", "*_backendtlspolicies.yaml"},
	{envoyGateway, envoyGatewayCRDs, "*_backends.yaml"},
	{envoyGateway, envoyGatewayCRDs, "*_backendtrafficpolicies.yaml"},
	{envoyGateway, envoyGatewayCRDs, "*_clienttrafficpolicies.yaml"},
	{envoyGateway, envoyGatewayCRDs, "*_envoyextensionpolicies.yaml"},
	{"istio.io/api@v1.32.0", "kubernetes", "customresourcedefinitions.gen.yaml"},
	{"github.com/kedacore/keda/v2@v2.21.0", "config/crd/bases", "keda.sh_scaledobjects.yaml"},
}

// The module of hack/tools/egctl, and the directory of its definitions.
const (
	envoyGateway     = "github.com/envoyproxy/gateway@v1.9.1"
	envoyGatewayCRDs = "charts/gateway-helm/charts/crds/crds/generated"
)

// cluster returns the apiserver of all tests, with the chart's CRDs and those of others.
func cluster(t *testing.T) *kubeenv.Env {
	t.Helper()
	env := kubeenv.Shared(t)
	dir := t.TempDir()
	for _, o := range others {
		found, err := filepath.Glob(filepath.Join(moduleDir(t, o.module), o.dir, o.files))
		if err != nil || len(found) != 1 {
			t.Fatalf("%s has %v for %s/%s: %v", o.module, found, o.dir, o.files, err)
		}
		text := readFile(t, found[0])
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(found[0])), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env.InstallCRDs(t, dir)
	env.InstallCRDs(t, crds())
	return env
}

// crds is the directory of the clusters' CRDs: the chart's own, or the published ones.
func crds() string {
	if dir := os.Getenv("UPSTREAM_CRDS"); dir != "" {
		return dir
	}
	return chartDir + "/crds"
}

// moduleDir returns the directory of a module's version, which the go command downloads if it is missing.
func moduleDir(t *testing.T, module string) string {
	t.Helper()
	out, err := run(t, "go", "mod", "download", "-json", module)
	if err != nil {
		t.Fatal(err)
	}
	var m struct{ Dir, Error string }
	if err := json.Unmarshal([]byte(out), &m); err != nil || m.Dir == "" {
		t.Fatalf("%s: %v %s", module, err, m.Error)
	}
	return m.Dir
}

// A real apiserver accepts every object of every combination, with strict field validation: no field is unknown, and no
// value is invalid.
func TestAPIServerTakesEverything(t *testing.T) {
	env := cluster(t)
	for name, values := range matrix {
		t.Run(name, func(t *testing.T) {
			ns := env.Namespace(t)
			text, err := template(t, values)
			if err != nil {
				t.Fatal(err)
			}
			// Rendered for an existing namespace.
			text = strings.ReplaceAll(text, "namespace: "+namespace+"\n", "namespace: "+ns+"\n")
			text = strings.ReplaceAll(text, "namespace: "+namespace+" ", "namespace: "+ns+" ")
			text = strings.ReplaceAll(text, "namespace: "+strconv.Quote(namespace)+"\n", "namespace: "+ns+"\n")
			if err := env.DryRun(t.Context(), ns, text); err != nil {
				t.Error(err)
			}
		})
	}
	for name := range kustomized {
		t.Run("kustomize "+filepath.Base(name), func(t *testing.T) {
			ns := env.Namespace(t)
			text := overlay(t, name).manifests(t)
			text = strings.ReplaceAll(text, "namespace: "+namespace+"\n", "namespace: "+ns+"\n")
			if err := env.DryRun(t.Context(), ns, text); err != nil {
				t.Error(err)
			}
		})
	}
}
