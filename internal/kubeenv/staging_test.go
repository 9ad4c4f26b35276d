package kubeenv

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/checkout"
)

// The modules that Kubernetes publishes beside itself have its version: v0.36.3 with v1.36.3. No other test would
// notice an update of one without the others.
func TestStagingModulesAreOfOneVersion(t *testing.T) {
	root, err := checkout.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "hack", "tools", "kube-apiserver", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	var want string
	replaced := 0
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) >= 2 && fields[0] == "k8s.io/kubernetes" {
			want = strings.Replace(fields[1], "v1.", "v0.", 1)
		}
	}
	for line := range strings.Lines(string(text)) {
		if module, with, ok := strings.Cut(line, "=>"); ok {
			replaced++
			if got := strings.TrimSpace(module) + " " + want; strings.TrimSpace(with) != got {
				t.Errorf("%s is replaced with %s, want %s", strings.TrimSpace(module), strings.TrimSpace(with), got)
			}
		}
	}
	if want == "" || replaced < 30 {
		t.Errorf("%d modules of version %q", replaced, want)
	}
}
