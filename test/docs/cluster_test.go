package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

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
		if err := os.Symlink(s.tool(name), filepath.Join(tools, name)); err != nil {
			s.t.Fatal(err)
		}
	}
	s.path = append(s.path, tools)
}

// tool returns the path of a tool: the one that the environment names (HELM for helm), else what hack/tool.sh builds.
func (s *stage) tool(name string) string {
	s.t.Helper()
	if path := os.Getenv(strings.ToUpper(name)); path != "" {
		return path
	}
	out, err := exec.CommandContext(s.t.Context(), filepath.Join(root, "hack/tool.sh"), name).Output()
	if err != nil {
		s.t.Fatalf("hack/tool.sh %s: %v", name, err)
	}
	return strings.TrimSpace(string(out))
}
