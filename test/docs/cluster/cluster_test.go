// Package cluster runs the commands of the pages that need a cluster, with a real apiserver: those of test/docs in its
// scene "cluster".
package cluster

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/weir-epp/weir/internal/binaries"
	"github.com/weir-epp/weir/internal/checkout"
	"github.com/weir-epp/weir/internal/kubeenv"
	"github.com/weir-epp/weir/test/docs"
)

func TestMain(m *testing.M) { os.Exit(binaries.Run(m, binaries.EPP, binaries.Weir)) }

// The commands of every page about Kubernetes do what the page says.
func TestCommandsInACluster(t *testing.T) {
	docs.Play(t, map[string]func(*docs.Stage){docs.InCluster: cluster})
}

// cluster gives the commands an apiserver, as whose administrator they run kubectl and helm. It has no controllers.
func cluster(s *docs.Stage) {
	t := s.T()
	t.Helper()
	env := kubeenv.Start(t)
	variables := []string{"KUBECONFIG=" + env.Kubeconfig(t, env.Admin(), "default")}
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
}
