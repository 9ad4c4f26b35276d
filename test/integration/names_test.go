package integration

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/weir-epp/weir/internal/modelsim"
)

// Clients choose the names of tenants and models, so they may send as many as they like, as long as they like, in any
// bytes: flows come and go, and metrics have no more series than they are allowed.
func TestNamesWithoutEnd(t *testing.T) {
	const names, mostLabels = 3000, 1000
	server := modelsim.Instant()
	s := start(t, setup{
		models: []modelsim.Config{server, server},
		config: `
flows: { key: ["header:x-llm-d-inference-fairness-id", "model"] }
requestBody: always
requestQueueController: { watermarkPerBackend: 100 }
`,
	})
	numbers := make(chan int)
	var workers sync.WaitGroup
	for range 16 {
		workers.Go(func() {
			for i := range numbers {
				name := fmt.Sprintf("name-%d-%s", i, strings.Repeat("é", i%500))
				a := ask{body: chat(name, false)}
				if i%2 == 0 {
					a.tenant = name
				}
				if got := s.send(a); got.status != 200 {
					t.Errorf("name %d: got %d %v %s", i, got.status, got.err, got.body)
				}
			}
		})
	}
	for i := range names {
		numbers <- i
	}
	close(numbers)
	workers.Wait()
	s.epp.settled()
	families, err := s.epp.scrape()
	if err != nil {
		t.Fatal(err)
	}
	for name, family := range families {
		if n := len(family.GetMetric()); strings.HasPrefix(name, "weir_") && n > 2*(mostLabels+1) {
			t.Errorf("%s has %d series", name, n)
		}
	}
	if n := sum(families, "weir_bypass_total"); n != names {
		t.Errorf("%v bypassed, want all %d", n, names)
	}
	if n := sum(families, "weir_bypass_total", "model", "other"); n < names-mostLabels {
		t.Errorf("%v are counted as others, want at least %d", n, names-mostLabels)
	}
}
