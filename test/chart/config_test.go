package chart

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/binaries"
)

// The configuration in the ConfigMap is valid, and says what the values say.
func TestConfigurationIsValid(t *testing.T) {
	for name, values := range matrix {
		if strings.Contains(values, "existingConfigMap") {
			continue
		}
		all := render(t, values)
		file := filepath.Join(t.TempDir(), "weir.yaml")
		text := all.get(t, "ConfigMap/"+all.deployment(t).name()).text("data", "weir.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := run(t, binaries.Path(binaries.Weir), "config", "validate", file); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	all := render(t, minimal, "config: { profile: smg-priority, requestQueueController: { slotsPerBackend: 8 } }\n")
	text := all.get(t, "ConfigMap/llama-weir").text("data", "weir.yaml")
	for _, want := range []string{"apiVersion: weir.dev/v1alpha1\n", "kind: EndpointPickerConfig\n", "profile: smg-priority\n", "slotsPerBackend: 8\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("the configuration lacks %q:\n%s", want, text)
		}
	}
}
