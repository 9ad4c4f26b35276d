package binaries

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestMain(m *testing.M) { os.Exit(Run(m, EPP)) }

func TestRun(t *testing.T) {
	if out, err := exec.Command(Path(EPP), "--version").Output(); err != nil || !strings.HasPrefix(string(out), "epp ") {
		t.Errorf("epp --version: %q, %v", out, err)
	}
}

// The error has the command that failed to build, and the reason.
func TestBuildFails(t *testing.T) {
	err := build(t.TempDir(), t.TempDir(), []string{"none"})
	if err == nil || !strings.Contains(err.Error(), "cmd/none") {
		t.Errorf("error is %v", err)
	}
}

// Run replaces a shared program built from other sources. An earlier Run's copy stays.
func TestStaleProgramIsReplaced(t *testing.T) {
	shared, first, second := t.TempDir(), t.TempDir(), t.TempDir()
	older, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(shared, EPP), older, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := build(shared, first, []string{EPP}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(shared, EPP), older, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := build(shared, second, []string{EPP}); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{first, second} {
		out, err := exec.Command(filepath.Join(dir, EPP), "--version").Output()
		if err != nil || !strings.HasPrefix(string(out), "epp ") {
			t.Errorf("epp --version: %q, %v", out, err)
		}
	}
}
