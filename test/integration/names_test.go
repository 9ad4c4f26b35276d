package integration

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/modelsim"
)

// Clients choose the names of tenants and models, so they may send any number, of any length, with any bytes. Flows
// come and go, and metrics stay within their numbers of series.
func TestNamesWithoutEnd(t *testing.T) {
	t.Parallel()
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
	families := s.epp.scrape()
	ofFlows := 0
	for name, family := range families {
		switch n := len(family.GetMetric()); {
		case strings.HasPrefix(name, "weir_flow_"):
			ofFlows += n
		case strings.HasPrefix(name, "weir_") && n > 2*(mostLabels+1):
			t.Errorf("%s has %d series", name, n)
		}
	}
	if ofFlows > 20*(mostLabels+1) {
		t.Errorf("%d series by flow, want at most 20 of each", ofFlows)
	}
	if n := families.Sum("weir_bypass_total"); n != names {
		t.Errorf("%v bypassed, want all %d", n, names)
	}
	if n := families.Sum("weir_bypass_total", "model", "other"); n < names-mostLabels {
		t.Errorf("%v are counted as others, want at least %d", n, names-mostLabels)
	}
}

// Ten waiting requests for invented models lock out a real one if each is its own flow, but not if they share one: then
// their eleventh is rejected instead.
func TestInventedModelsLockNobodyOut(t *testing.T) {
	t.Parallel()
	for _, unknown := range []string{"own", "shared"} {
		t.Run(unknown, func(t *testing.T) {
			t.Parallel()
			v := newValve()
			s := start(t, setup{models: v.one(), config: single + fmt.Sprintf(
				"fairRequestQueue: { totalCapacity: 100, flowCapacity: 10 }\nflows: { unknownModels: %s }\nmodels: [ { name: tiny } ]\n", unknown)})
			s.begin(ask{})
			s.epp.waitFor(1, "weir_stock_level")
			for i := range 10 {
				s.begin(ask{body: chat(fmt.Sprintf("zz%d", i), false)})
			}
			s.epp.waitFor(10, "weir_queue_length")
			if unknown == "own" {
				wantRejection(t, s.send(ask{}), rejection{status: 503, reason: "queue-full"})
			} else {
				s.begin(ask{})
				s.epp.waitFor(11, "weir_queue_length")
				s.epp.waitFor(10, "weir_queue_length", "model", "unknown")
				wantRejection(t, s.send(ask{body: chat("zz10", false)}), rejection{status: 503, reason: "flow-full"})
			}
			v.open()
			s.epp.settled()
		})
	}
}

// Secret flow keys appear nowhere: not on a page, in a metric or in the log.
func TestSecretFlowKeysAreShownNowhere(t *testing.T) {
	t.Parallel()
	const secret = "sk-very-secret"
	v := newValve()
	s := start(t, setup{
		models: v.one(), flags: []string{"--hash-flow-keys", "--v=1"},
		config: "flows: { key: [\"header:x-tenant\"], weights: { " + secret + ": 3 } }\n" + single +
			"tenantPolicies: { " + secret + ": { maxClass: Critical } }\n",
	})
	s.begin(from(secret))
	s.epp.waitFor(1, "weir_stock_level")
	s.begin(from(secret))
	s.epp.waitFor(1, "weir_queue_length")
	shown := 0
	for _, page := range []string{
		s.epp.MetricsURL + "/metrics", s.epp.DebugURL + "/debug/flows", s.epp.DebugURL + "/debug/config", s.epp.DebugURL + "/statusz",
	} {
		text := expect.Page(t, page)
		if strings.Contains(text, secret) {
			t.Errorf("%s shows the key", page)
		}
		shown += strings.Count(text, "sha256:")
	}
	v.open()
	s.epp.settled()
	if strings.Contains(s.epp.Log.String(), secret) {
		t.Error("the log has the key")
	}
	expect.True(t, "the hash is shown", func() bool { return shown > 0 && strings.Contains(s.epp.Log.String(), "sha256:") })
}
