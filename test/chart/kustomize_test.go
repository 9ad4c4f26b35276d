package chart

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// kustomized are the overlays of config/overlays, and the chart's values for the same objects.
var kustomized = map[string]string{
	"../base":        "",
	"single":         "replicas: 1\nleaderElection: { enabled: false }\n",
	"envoy":          "envoy: { mode: standalone }\n",
	"monitoring":     "metrics: { serviceMonitor: { enabled: true }, prometheusRule: { enabled: true } }\n",
	"autoscaling":    "autoscaling: { enabled: true, target: { name: model-server } }\n",
	"cert-manager":   "tls: { certManager: { enabled: true, issuerRef: { name: weir } } }\n",
	"network-policy": "networkPolicy: { enabled: true, gateways: [ " + inNamespace("gateways") + " ], scrapers: [ " + inNamespace("monitoring") + " ] }\n",
}

func inNamespace(name string) string {
	return "{ namespaceSelector: { matchLabels: { kubernetes.io/metadata.name: " + name + " } } }"
}

// overlay builds an overlay with kustomize.
func overlay(t *testing.T, name string) objects {
	t.Helper()
	text, err := run(t, tool(t, "kubectl"), "kustomize", filepath.Join("../../config/overlays", name))
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, text)
}

// Kustomize makes the same objects as the chart, except for Helm's own labels and helm test.
func TestKustomizeMakesTheSame(t *testing.T) {
	for name, values := range kustomized {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			got := overlay(t, name)
			text, err := run(t, tool(t, "helm"), append([]string{"template", "weir", chartDir, "--namespace", namespace},
				files(t, []string{"pool: { matchLabels: { app: model-server } }\n", values})...)...)
			if err != nil {
				t.Fatal(err)
			}
			want := parse(t, text)
			for key, o := range want {
				if o.at("metadata", "annotations", "helm.sh/hook") != nil {
					delete(want, key)
				}
				withoutHelm(map[string]any(o))
			}
			for _, all := range []objects{got, want} {
				for _, o := range all {
					sortVolumes(o.at("spec", "template", "spec"))
				}
			}
			if !slices.Equal(slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want))) {
				t.Fatalf("kustomize makes %v\nthe chart makes %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
			}
			for key := range want {
				if !reflect.DeepEqual(got[key], want[key]) {
					g, _ := yaml.Marshal(map[string]any(got[key]))
					w, _ := yaml.Marshal(map[string]any(want[key]))
					t.Errorf("%s: kustomize makes\n%s\nthe chart makes\n%s", key, g, w)
				}
			}
			consistent(t, got)
		})
	}
}

// withoutHelm removes Helm's labels of ownership everywhere.
func withoutHelm(v any) {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "helm.sh/chart")
		delete(v, "app.kubernetes.io/managed-by")
		for _, inner := range v {
			withoutHelm(inner)
		}
	case []any:
		for _, inner := range v {
			withoutHelm(inner)
		}
	}
}

// sortVolumes sorts the volumes of a pod and their mounts by name: a patch puts new ones in front.
func sortVolumes(pod any) {
	spec, is := pod.(map[string]any)
	if !is {
		return
	}
	byName := func(list any) {
		l, _ := list.([]any)
		slices.SortFunc(l, func(a, b any) int {
			return strings.Compare(object(a.(map[string]any)).text("name"), object(b.(map[string]any)).text("name"))
		})
	}
	byName(spec["volumes"])
	for _, c := range containers(spec) {
		byName(c["volumeMounts"])
	}
}

// Every existing overlay is compared.
func TestOverlaysAreAllTested(t *testing.T) {
	entries, err := os.ReadDir("../../config/overlays")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if _, ok := kustomized[e.Name()]; !ok {
			t.Errorf("no values make the objects of config/overlays/%s", e.Name())
		}
	}
}

// Kustomize installs the chart's CustomResourceDefinitions.
func TestCRDsAreTheSame(t *testing.T) {
	for _, pair := range [][2]string{{chartDir + "/crds", "../../config/base/crds"}, {"../../config/base/crds", chartDir + "/crds"}} {
		entries, err := os.ReadDir(pair[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.Name() == "kustomization.yaml" {
				continue
			}
			if readFile(t, filepath.Join(pair[0], e.Name())) != readFile(t, filepath.Join(pair[1], e.Name())) {
				t.Errorf("%s differs between %s and %s", e.Name(), pair[0], pair[1])
			}
		}
	}
	all, err := run(t, tool(t, "kubectl"), "kustomize", "../../config/base/crds")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(chartDir + "/crds")
	if err != nil {
		t.Fatal(err)
	}
	if got := len(parse(t, all)); got != len(entries) {
		t.Errorf("kustomize installs %d definitions, the chart %d", got, len(entries))
	}
}
