package chart

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/binaries"
	"github.com/weir-epp/weir/internal/kubeenv"
)

// epp --validate accepts the flags and the configuration of every combination.
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

// Releases with similar names up to a point, or with a dot, have their own objects, with valid names. No two namespaces
// and releases share a cluster role.
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

// The chart's InferencePool is valid with all of GIE's definitions since 1.0. Those before 1.4 have no appProtocol, and
// reject a value other than the default.
func TestPublishedDefinitionsOfPools(t *testing.T) {
	env := kubeenv.Start(t)
	for _, gie := range []struct {
		version  string
		protocol bool
	}{{"v1.0.0", false}, {"v1.1.0", false}, {"v1.2.1", false}, {"v1.3.0", false}, {"v1.4.0", true}} {
		text := readFile(t, filepath.Join(moduleDir(t, "sigs.k8s.io/gateway-api-inference-extension@"+gie.version),
			"config", "crd", "bases", "inference.networking.k8s.io_inferencepools.yaml"))
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "pools.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		env.InstallCRDs(t, dir)
		ns := env.Namespace(t)
		try := func(values string) error {
			pool := objects{"": render(t, values).get(t, "InferencePool/"+release)}
			delete(pool[""]["metadata"].(map[string]any), "namespace")
			return env.DryRun(t.Context(), ns, pool.manifests(t))
		}
		// The apiserver may take some moments to use a changed definition.
		for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
			plain, err := try(minimal), try("pool: { matchLabels: { app: llama }, appProtocol: kubernetes.io/h2c }\n")
			if plain == nil && gie.protocol && err == nil {
				break
			}
			if plain == nil && !gie.protocol && err != nil && strings.Contains(err.Error(), "appProtocol") {
				break
			}
			if time.Now().After(end) {
				t.Errorf("GIE %s: the default pool: %v; one with appProtocol, want taken %t: %v", gie.version, plain, gie.protocol, err)
				break
			}
		}
	}
}
