package docs

import (
	"os"
	"path/filepath"

	"github.com/weir-epp/weir/internal/checkout"
	"github.com/weir-epp/weir/internal/kubeenv"
)

// cluster gives the commands an apiserver, as whose administrator they run kubectl and helm. It has no controllers.
func (s *stage) cluster() {
	s.t.Helper()
	env := kubeenv.Start(s.t)
	s.variables = append(s.variables, "KUBECONFIG="+env.Kubeconfig(s.t, env.Admin(), "default"))
	for _, home := range []string{"CACHE", "CONFIG", "DATA"} {
		s.variables = append(s.variables, "HELM_"+home+"_HOME="+s.t.TempDir())
	}
	tools := filepath.Join(s.dir, "tools")
	if err := os.Mkdir(tools, 0o700); err != nil {
		s.t.Fatal(err)
	}
	for _, name := range []string{"helm", "kubectl"} {
		path, err := checkout.Tool(s.t.Context(), name)
		if err != nil {
			s.t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(tools, name)); err != nil {
			s.t.Fatal(err)
		}
	}
	s.path = append(s.path, tools)
}
