package chart

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/config"
)

// The chart accepts the values that weir config import makes from llm-d's and GIE's, and their configuration is valid.
func TestChartTakesImportedValues(t *testing.T) {
	for file, replicas := range map[string]string{"flowcontrol": "2", "gie": "1", "gie-older": "2"} {
		im, err := config.ImportLLMD([]byte(readFile(t, "../../internal/config/testdata/llm-d/"+file+".yaml")))
		if err != nil {
			t.Fatal(err)
		}
		values, err := im.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		all := render(t, string(values))
		if got := fmt.Sprint(all.deployment(t)["spec"].(map[string]any)["replicas"]); got != replicas {
			t.Errorf("%s: %s replicas, want %s", file, got, replicas)
		}
		text := all.get(t, "ConfigMap/"+all.deployment(t).name()).text("data", "weir.yaml")
		if _, err := config.Load(config.Source{Text: []byte(text)}); err != nil || file == "flowcontrol" && !strings.Contains(text, "slotsPerBackend: 128") {
			t.Errorf("%s: %v\n%s", file, err, text)
		}
	}
}
