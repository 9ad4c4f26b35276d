// Package cluster runs the commands of the pages that need a cluster, with a real apiserver: those of test/docs in its
// scenes "cluster" and "llm-d".
package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/weir-epp/weir/internal/binaries"
	"github.com/weir-epp/weir/internal/checkout"
	"github.com/weir-epp/weir/internal/kubeenv"
	"github.com/weir-epp/weir/test/docs"
)

func TestMain(m *testing.M) { os.Exit(binaries.Run(m, binaries.EPP, binaries.Weir)) }

// The commands of every page about Kubernetes have the results on the page.
func TestCommandsInACluster(t *testing.T) {
	docs.Play(t, map[string]func(*docs.Stage){
		docs.InCluster:  func(s *docs.Stage) { cluster(s) },
		docs.BesideLLMD: besideLLMD,
	})
}

// besideLLMD is a cluster with a release of llm-d's, demo, in Istio's care.
func besideLLMD(s *docs.Stage) {
	t := s.T()
	t.Helper()
	env, helm, variables := cluster(s)
	for _, dir := range []string{"charts/weir/crds", "test/peers/crds/gateway", "test/peers/crds/istio"} {
		env.InstallCRDs(t, filepath.Join("..", "..", "..", dir))
	}
	cmd := exec.CommandContext(t.Context(), helm, "install", "demo", "../../peers/picker",
		"--set", "router.modelServers.matchLabels.app=qwen,httpRoute.create=true,provider.name=istio")
	cmd.Env = append(os.Environ(), variables...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// cluster gives the commands an apiserver, where they run kubectl and helm as its administrator. It has no controllers.
// It returns helm's path, and the variables that make it use the apiserver.
func cluster(s *docs.Stage) (env *kubeenv.Env, helm string, variables []string) {
	t := s.T()
	t.Helper()
	env = kubeenv.Start(t)
	variables = []string{"KUBECONFIG=" + env.Kubeconfig(t, env.Admin(), "default")}
	for _, home := range []string{"CACHE", "CONFIG", "DATA"} {
		variables = append(variables, "HELM_"+home+"_HOME="+t.TempDir())
	}
	tools := t.TempDir()
	for _, name := range []string{"helm", "kubectl"} {
		path, err := checkout.Tool(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(tools, name)); err != nil {
			t.Fatal(err)
		}
	}
	s.Offer(tools, variables...)
	return env, filepath.Join(tools, "helm"), variables
}
