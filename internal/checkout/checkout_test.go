package checkout

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRoot(t *testing.T) {
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	if here, _ := os.Getwd(); here != filepath.Join(root, "internal", "checkout") {
		t.Errorf("%s is not the root above %s", root, here)
	}
	t.Chdir(t.TempDir())
	if _, err := Root(); !errors.Is(err, ErrNone) {
		t.Errorf("outside: %v, want %v", err, ErrNone)
	}
}

func TestTool(t *testing.T) {
	t.Setenv("HELM", "/usr/bin/myhelm")
	if path, err := Tool(t.Context(), "helm"); err != nil || path != "/usr/bin/myhelm" {
		t.Errorf("%q, %v; the environment names another one", path, err)
	}
	if _, err := Tool(t.Context(), "hammer"); err == nil || !strings.Contains(err.Error(), "no tool 'hammer'") {
		t.Errorf("an unknown tool: %v", err)
	}
}
