//go:build e2evllm

package e2evllm

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/envoyrun"
)

// section is the result of a scene.
type section struct{ title, text string }

// page is the result of a run.
type page struct {
	before   float64 // the machine's load
	engine   string  // vLLM's version
	sections []section
}

const pageHead = `# Weir before a real engine

<!-- Written by: make e2e-vllm -->

This page has Weir's figures before a real engine, for readers who want more than simulators.
` + "`make e2e-vllm`" + ` runs a real vLLM on the CPU (%s, a tiny model of random weights, %d batch slots), a real Envoy
(%s, [gate.yaml](../config/envoy/gate.yaml)) and the real epp before it, with watermark and both bounds at %d unless
a scene says otherwise, and fails if a figure below misses its target. The times are a small CPU's, not a GPU's;
everything else is the real thing: the engine's scheduler and its batches, its answers, its aborts.

The machine: %d processors for engine, Envoy, epp and clients together; load average before the start %.2f.
`

// keep writes the page.
func (p *page) keep(t *testing.T, file string) {
	t.Helper()
	var text strings.Builder
	fmt.Fprintf(&text, pageHead, p.engine, slots, envoyVersion(t), bound, runtime.NumCPU(), p.before)
	for _, s := range p.sections {
		fmt.Fprintf(&text, "\n## %s\n\n%s\n", s.title, strings.TrimSpace(s.text))
	}
	if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Logf("kept in %s", file)
}

// envoyVersion is such as 1.40.0.
func envoyVersion(t *testing.T) string {
	t.Helper()
	binary, err := envoyrun.Find()
	if err != nil {
		t.Fatal(err)
	}
	said, err := exec.Command(binary, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	// "PATH  version: COMMIT/1.40.0/Clean/RELEASE/BoringSSL"
	_, after, _ := strings.Cut(string(said), "version: ")
	parts := strings.Split(after, "/")
	if len(parts) < 2 {
		t.Fatalf("Envoy's version: %q", said)
	}
	return parts[1]
}
