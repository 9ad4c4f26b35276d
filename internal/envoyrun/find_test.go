package envoyrun

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// executable writes an executable file.
func executable(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// $ENVOY, then PATH without the PyPI package's script or anything that is not Envoy, then .cache of the repository,
// then a helpful error.
func TestFind(t *testing.T) {
	envoy, err := Find()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	repository := filepath.Join(dir, "repository")
	bin := filepath.Join(dir, "bin")
	inside := filepath.Join(repository, "pkg", "deep")
	executable(t, filepath.Join(inside, "file"), "")
	executable(t, filepath.Join(repository, "go.mod"), "module x\n")
	t.Chdir(inside)
	t.Setenv("PATH", bin)
	t.Setenv("ENVOY", "")

	if _, err := Find(); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "make envoy") {
		t.Errorf("with nothing: %v", err)
	}
	cached := executable(t, filepath.Join(repository, ".cache/envoy-venv/lib/python3.11/site-packages/envoy/_bin/envoy"), "\x7fELF")
	wantFound(t, cached)
	executable(t, filepath.Join(bin, "envoy"), "#!/usr/bin/python3\n")
	wantFound(t, cached)
	executable(t, filepath.Join(bin, "envoy"), "\x7fELF, but no Envoy")
	wantFound(t, cached)
	if err := errors.Join(os.Remove(filepath.Join(bin, "envoy")), os.Symlink(envoy, filepath.Join(bin, "envoy"))); err != nil {
		t.Fatal(err)
	}
	wantFound(t, envoy)
	own := executable(t, filepath.Join(dir, "own"), "#!/bin/sh\necho 'envoy  version: x/1.40.2/Clean/RELEASE/BoringSSL'\n")
	t.Setenv("ENVOY", own)
	wantFound(t, own)
	old := executable(t, filepath.Join(dir, "old"), "#!/bin/sh\necho 'envoy  version: x/1.39.9/Clean/RELEASE/BoringSSL'\n")
	for _, path := range []string{old, "/bin/true", filepath.Join(dir, "none")} {
		t.Setenv("ENVOY", path)
		if _, err := Find(); err == nil || !strings.Contains(err.Error(), "ENVOY: ") || !strings.Contains(err.Error(), path) {
			t.Errorf("with ENVOY=%s: %v", path, err)
		}
	}
	t.Setenv("ENVOY", "")
	t.Setenv("PATH", "")
	t.Chdir(dir) // in no checkout
	if _, err := Find(); !errors.Is(err, ErrNotFound) || strings.Contains(err.Error(), "go.mod") {
		t.Errorf("outside of a checkout: %v", err)
	}
}

func wantFound(t *testing.T, want string) {
	t.Helper()
	got, err := Find()
	if err != nil {
		t.Fatal(err)
	}
	// The temporary directory may be behind a symbolic link.
	got, want = resolved(t, got), resolved(t, want)
	if got != want {
		t.Errorf("found %s, want %s", got, want)
	}
}

func resolved(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
