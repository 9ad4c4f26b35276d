package binaries

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestMain(m *testing.M) { os.Exit(Run(m, EPP)) }

func TestRun(t *testing.T) {
	if out, err := exec.Command(Path(EPP), "--version").Output(); err != nil || !strings.HasPrefix(string(out), "epp ") {
		t.Errorf("epp --version: %q, %v", out, err)
	}
}

// The error names the command that cannot be built, and the reason.
func TestBuildFails(t *testing.T) {
	err := build(t.TempDir(), []string{"none"})
	if err == nil || !strings.Contains(err.Error(), "cmd/none") {
		t.Errorf("error is %v", err)
	}
}
