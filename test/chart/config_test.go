package chart

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/binaries"
)

// The configuration in the ConfigMap is valid, and has the values.
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

// The values also set the unit of shares. Large numbers stay whole numbers.
func TestTokensInTheValues(t *testing.T) {
	all := render(t, minimal, `
config:
  profile: recommended
  flows: { anonymous: shared, weights: { anonymous: 0.1 }, capacities: { anonymous: 20 } }
  requestQueueController:
    watermarkTokensPerBackend: 300000
    lowerBoundTokensPerBackend: 300000
    upperBoundTokensPerBackend: 1000000000
    maxTokensInFlightPerFlow: 1000000000
    maxTokensInFlightPerFlowPerBackend: 150000
  usage: trailers
  tokens: { weights: { output: 2.5 }, stockWeights: { cachedInput: 0 }, output: { coldStart: 500 } }
`)
	file := filepath.Join(t.TempDir(), "weir.yaml")
	text := all.get(t, "ConfigMap/llama-weir").text("data", "weir.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := run(t, binaries.Path(binaries.Weir), "config", "show", file)
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, text)
	}
	for _, want := range []string{
		"cost: tokens\n", "usage: trailers\n", "discipline: vtc\n", "anonymous: shared\n", "anonymous: 0.1\n", "anonymous: 20\n",
		"watermarkTokensPerBackend: 300000\n", "upperBoundTokensPerBackend: 1000000000\n", "maxTokensInFlightPerFlow: 1000000000\n",
		"output: 2.5\n", "cachedInput: 0\n", "coldStart: 500\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the configuration lacks %q:\n%s", want, out)
		}
	}
}
