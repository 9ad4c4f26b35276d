package chart

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/weir-epp/weir/internal/binaries"
	"github.com/weir-epp/weir/internal/kubeenv"
)

// epp accepts the flags and the configuration of every combination, as epp --validate says.
func TestEppValidatesTheChart(t *testing.T) {
	for name, values := range matrix {
		all := render(t, values)
		config := "profile: recommended\n"
		if !strings.Contains(values, "existingConfigMap") {
			config = all.get(t, "ConfigMap/"+all.deployment(t).name()).text("data", "weir.yaml")
		}
		file := filepath.Join(t.TempDir(), "weir.yaml")
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		args := append(all.epp(t).texts("args"), "--validate", "--config-file="+file) // the last one counts
		if out, err := run(t, binaries.Path(binaries.EPP), args...); err != nil || !strings.Contains(out, "valid (profile ") {
			t.Errorf("%s: %q, %v", name, out, err)
		}
	}
}

// Releases whose names are alike up to a point, or have a dot, have objects of their own, with names that the apiserver
// takes; and no two namespaces and releases share a cluster role.
func TestNamesOfReleases(t *testing.T) {
	seen := map[string]string{}
	long := strings.Repeat("a", 52)
	for _, at := range [][2]string{
		{"one", long + "1"},
		{"one", long + "2"},
		{"one", "weir-" + long[5:] + "1"},
		{"one", "weir-" + long[5:] + "2"},
		{"one", long[:45]},
		{"one", long[:46]},
		{"one", "a.b"},
		{"one", "a-b"},
		{"one-a", "b"},
	} {
		text, err := run(t, tool(t, "helm"), append([]string{"template", at[1], chartDir, "--namespace", at[0]},
			files(t, []string{minimal, "envoy: { mode: standalone }\n"})...)...)
		if err != nil {
			t.Fatal(err)
		}
		for key, o := range parse(t, text) {
			where := at[0] + "/" + at[1]
			if o.kind() == "InferencePool" {
				continue // it has the release's name
			}
			if !strings.HasPrefix(o.kind(), "ClusterRole") {
				key = at[0] + "/" + key
				if len(o.name()) > 63 || strings.Contains(o.name(), ".") {
					t.Errorf("%s: %s", where, key)
				}
			}
			if other, twice := seen[key]; twice {
				t.Errorf("%s and %s have the same %s", where, other, key)
			}
			seen[key] = where
		}
	}
}

// The chart's InferencePool is one in clusters with earlier definitions, which have no appProtocol (GIE 1.0 to 1.3), and of
// them the first (1.0) takes one port only. These are not the published files: they are the chart's own definition without
// what came later.
func TestEarlierDefinitionsOfPools(t *testing.T) {
	for name, ports := range map[string]int{"GIE 1.0": 1, "GIE 1.1 to 1.3": 8} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var definition map[string]any
			text := readFile(t, filepath.Join(chartDir, "crds", "inferencepools.inference.networking.k8s.io.yaml"))
			if err := yaml.Unmarshal([]byte(text), &definition); err != nil {
				t.Fatal(err)
			}
			spec, _ := object(definition).at("spec", "versions", 0, "schema", "openAPIV3Schema", "properties", "spec", "properties").(map[string]any)
			if spec["appProtocol"] == nil {
				t.Fatal("the definition has no appProtocol")
			}
			delete(spec, "appProtocol")
			spec["targetPorts"].(map[string]any)["maxItems"] = ports
			out, err := yaml.Marshal(definition)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "pools.yaml"), out, 0o600); err != nil {
				t.Fatal(err)
			}
			env := kubeenv.Start(t)
			env.InstallCRDs(t, dir)
			try := func(values string) error {
				pool := objects{"": render(t, values).get(t, "InferencePool/"+release)}
				delete(pool[""]["metadata"].(map[string]any), "namespace")
				return env.DryRun(t.Context(), env.Namespace(t), pool.manifests(t))
			}
			if err := try(minimal); err != nil {
				t.Error(err)
			}
			if err := try("pool: { matchLabels: { app: llama }, appProtocol: kubernetes.io/h2c }\n"); err == nil || !strings.Contains(err.Error(), "appProtocol") {
				t.Errorf("the definition takes appProtocol: %v", err)
			}
		})
	}
}
