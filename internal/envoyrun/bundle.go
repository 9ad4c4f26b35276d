package envoyrun

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	shipped "github.com/weir-epp/weir/config/envoy"
)

// shippedFolder is the path of the shipped files, as they refer to each other: relative to the root of the repository.
const shippedFolder = "config/envoy/"

// bundle copies files below config/envoy that the configuration refers to, such as keys, into dir, and makes it refer
// to the copies, so that Envoy can run in any working directory.
func (b Bootstrap) bundle(dir string) error {
	err := fs.WalkDir(shipped.Files, "auth", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(dir, path)
		if entry.IsDir() {
			return os.MkdirAll(target, 0o700)
		}
		content, err := fs.ReadFile(shipped.Files, path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, content, 0o600)
	})
	if err != nil {
		return fmt.Errorf("copying what the configuration names: %w", err)
	}
	renamed(map[string]any(b), dir)
	return nil
}

// renamed returns a part of a configuration with each path below config/envoy replaced by one below dir.
func renamed(part any, dir string) any {
	switch p := part.(type) {
	case string:
		if rest, ok := strings.CutPrefix(p, shippedFolder); ok {
			return filepath.Join(dir, rest)
		}
	case []any:
		for i := range p {
			p[i] = renamed(p[i], dir)
		}
	case map[string]any:
		for key := range p {
			p[key] = renamed(p[key], dir)
		}
	}
	return part
}
