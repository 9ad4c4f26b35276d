// Package checkout finds the parts of a checkout of this repository: its root, and the tools that it builds for its
// tests and demonstrations. It builds nothing itself; hack/tool.sh does.
package checkout

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrNone means that the working directory is in no checkout.
var ErrNone = errors.New("checkout: no go.mod here or above")

// Root returns the nearest directory with a go.mod, from the working directory upward; ErrNone if there is none.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", ErrNone
		}
		dir = parent
	}
}

// Tool returns the path of a tool: from the environment (HELM for helm), or else built by hack/tool.sh, which may take
// minutes the first time.
func Tool(ctx context.Context, name string) (string, error) {
	if path := os.Getenv(strings.ToUpper(name)); path != "" {
		return path, nil
	}
	root, err := Root()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(root, "hack", "tool.sh"), name)
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("checkout: hack/tool.sh %s: %w\n%s", name, err, problems.String())
	}
	return strings.TrimSpace(string(out)), nil
}
