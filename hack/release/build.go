package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/mod/modfile"
)

// stamp is the package that knows the version of a program.
const stamp = "github.com/weir-epp/weir/internal/version"

// goOf returns the name of the Go version that the module of a checkout names, like go1.26.8.
func goOf(source string) (string, error) {
	file := filepath.Join(source, "go.mod")
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	mod, err := modfile.ParseLax(file, text, nil)
	if err != nil {
		return "", err
	}
	if mod.Go == nil {
		return "", fmt.Errorf("%s names no version of Go", file)
	}
	return "go" + mod.Go.Version, nil
}

// checkGo returns an error if this program was built by another Go than that of go.mod: compressed bytes differ by version.
func checkGo(source string) error {
	want, err := goOf(source)
	if err == nil && runtime.Version() != want {
		err = fmt.Errorf("this is %s, go.mod has %s: make release, or GOTOOLCHAIN=%s", runtime.Version(), want, want)
	}
	return err
}

// fetching returns the settings of this machine's Go by which it finds modules: they change no program, since go.sum has the
// sums of what may come. No other setting of `go env -w` counts.
func fetching() ([]string, error) {
	names := []string{"GOPROXY", "GOSUMDB", "GOPRIVATE", "GONOPROXY", "GONOSUMDB", "GOINSECURE", "GOAUTH", "GOVCS", "GOCACHE", "GOMODCACHE", "GOPATH"}
	out, err := exec.Command("go", append([]string{"env"}, names...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	values := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(values) != len(names) {
		return nil, fmt.Errorf("go env: %d values of %d", len(values), len(names))
	}
	for i, name := range names {
		values[i] = name + "=" + values[i]
	}
	return values, nil
}

// build builds the programs for every platform. Everything in the environment that changes a program has a fixed value.
func (r release) build() error {
	toolchain, err := goOf(r.source)
	if err != nil {
		return err
	}
	kept, err := fetching()
	if err != nil {
		return err
	}
	ldflags := fmt.Sprintf("-s -w -X %s.Version=%s -X %s.Revision=%s", stamp, r.version, stamp, r.commit.hash)
	for _, p := range platforms {
		dir := filepath.Join(r.dir, p.String())
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		args := []string{"build", "-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags", ldflags, "-o", dir + "/"}
		for _, program := range programs {
			args = append(args, "./cmd/"+program)
		}
		cmd := exec.Command("go", args...)
		cmd.Dir = r.source
		cmd.Env = append(os.Environ(), kept...)
		cmd.Env = append(cmd.Env, "GOENV=off", "GOTOOLCHAIN="+toolchain, "GOFLAGS=", "GOWORK=off", "GOEXPERIMENT=", "GOFIPS140=off",
			"CGO_ENABLED=0", "GOOS="+p.os, "GOARCH="+p.arch, "GOAMD64=v1", "GOARM64=v8.0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("building for %s: %w\n%s", p, err, out)
		}
	}
	return nil
}
