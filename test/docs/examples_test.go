package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/binaries"
)

// foreign are the first lines of yaml blocks that are not configurations of Weir, and of one that is invalid on
// purpose.
var foreign = []string{
	"# workload.yaml",
	"# before envoy.filters.http.buffer", "# of ai_protocol_manager", "# The cluster weir of recommended.yaml",
	"# in the HttpConnectionManager", "# in static_resources.clusters", "# The same, standing by", "# values.yaml", "# workload.yaml", "# pool.yaml", "# theirs.yaml", "# priority.yaml", "# policy.yaml",
	"grafana: {", // of the chart
	"# weir.yaml\nrequestQueueController: { watermarkPerBackend: many }",
}

var (
	fence    = regexp.MustCompile("(?ms)^```.*?^```$")
	indented = regexp.MustCompile(`(?m)^ {4,}([a-z][A-Za-z]+: \{.*\})$`)
)

// Every example of a configuration or an endpoints file on a page is valid, also one that no command of the page reads.
func TestExamplesAreValid(t *testing.T) {
	tried := 0
	for _, page := range pages(t) {
		text := read(t, page)
		var examples []string
		for _, a := range acts(text) {
			for _, b := range a.blocks {
				if b.kind == "yaml" {
					examples = append(examples, b.text)
				}
			}
		}
		for _, m := range indented.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			examples = append(examples, m[1]+"\n")
		}
		for _, example := range examples {
			if isForeign(example) {
				continue
			}
			tried++
			arguments := []string{"config", "validate"}
			if strings.Contains("\n"+example, "\nendpoints:") {
				arguments = append(arguments, "--endpoints")
			}
			file := filepath.Join(t.TempDir(), "example.yaml")
			if err := os.WriteFile(file, []byte(example), 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command(binaries.Path("weir"), append(arguments, file)...).CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s%s", page, err, example, out)
			}
		}
	}
	if tried < 20 {
		t.Errorf("only %d examples were found", tried)
	}
}

// isForeign reports whether an example is another program's.
func isForeign(example string) bool {
	for _, first := range foreign {
		if strings.HasPrefix(example, first) {
			return true
		}
	}
	return false
}
