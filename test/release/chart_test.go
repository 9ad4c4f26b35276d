package release

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/checkout"
)

// The chart has the version as its own and as the image's tag. Helm accepts it unchanged, and would have packaged the
// same files.
func TestChartNamesTheVersion(t *testing.T) {
	helm, err := checkout.Tool(t.Context(), "helm")
	if err != nil {
		t.Fatal(err)
	}
	packed := filepath.Join(dist, "weir-"+version+".tgz")
	must(t, dist, helm, "lint", "--strict", packed, "--set", "pool.matchLabels.app=llama")
	rendered := must(t, dist, helm, "template", "llama", packed, "--set", "pool.matchLabels.app=llama")
	if image := "image: ghcr.io/weir-epp/weir:" + version + "\n"; !strings.Contains(rendered, image) {
		t.Errorf("the chart renders no %s:\n%s", image, rendered)
	}
	metadata := must(t, dist, helm, "show", "chart", packed) + "\n"
	for _, line := range []string{"version: " + version + "\n", "appVersion: " + version + "\n", "name: weir\n"} {
		if !strings.Contains("\n"+metadata, "\n"+line) {
			t.Errorf("Chart.yaml has no line %q:\n%s", line, metadata)
		}
	}
	dir := t.TempDir()
	for _, sub := range []string{"ours", "helms"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	clone := filepath.Dir(dist)
	must(t, dir, helm, "package", "--version", version, "--app-version", version, "--destination", dir, filepath.Join(clone, "charts", "weir"))
	must(t, dir, "tar", "-xzf", packed, "-C", "ours")
	must(t, dir, "tar", "-xzf", filepath.Join(dir, filepath.Base(packed)), "-C", "helms")
	must(t, dir, "diff", "-r", "-x", "Chart.yaml", "ours", "helms") // Helm writes Chart.yaml anew
}
