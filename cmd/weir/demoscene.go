package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/weir-epp/weir/internal/loadgen"
)

// The scenes' names in the table and the pictures.
const (
	sceneWithout    = "Envoy alone"
	sceneWith       = "Envoy with Weir"
	sceneNoPriority = "Weir, no priority"
	scenePriority   = "Weir with priority"
)

// demoScene is one of the demo's scenes: its Envoys, the senders and their requests, and the results.
type demoScene struct {
	name      string
	url       string
	workloads []loadgen.Workload
	report    *loadgen.Report
}

// scenes returns the demo's scenes: a pair about fairness, without and with Weir, and a pair about priority, without
// and with classes in requests.
func (d *demoSetting) scenes(options demoOptions) (fairness, priority pair) {
	tenants := []loadgen.Workload{
		steadyLoad(options, quietTenant, quietRate, demoRequest(quietTenant, "", demoBodies)),
		floodLoad(options, noisyTenant, noisyWorkers, demoRequest(noisyTenant, "", demoBodies)),
	}
	fairness = pair{
		steady:  quietTenant,
		without: &demoScene{name: sceneWithout, url: d.direct.URL(), workloads: tenants},
		with:    &demoScene{name: sceneWith, url: d.weir.URL(), workloads: tenants},
	}
	priority = pair{
		steady:  interactiveTenant,
		without: &demoScene{name: sceneNoPriority, url: d.gate.URL(), workloads: priorityWorkloads(options, "", "")},
		with: &demoScene{
			name: scenePriority, url: d.gate.URL(), workloads: priorityWorkloads(options, interactiveTenant, bulkTenant),
		},
	}
	return fairness, priority
}

// steadyLoad returns a tenant's requests throughout a scene.
func steadyLoad(options demoOptions, tenant string, rate float64, request loadgen.Template) loadgen.Workload {
	return loadgen.Workload{
		Tenant: tenant, Request: request, Requests: 10_000, Duration: options.length,
		Arrivals: loadgen.OpenLoop{Rate: rate, Poisson: true, Seed: options.seed},
	}
}

// floodLoad returns a tenant's load that keeps workers requests in flight from floodBegin on.
func floodLoad(options demoOptions, tenant string, workers int, request loadgen.Template) loadgen.Workload {
	begin := floodBegin(options.length)
	return loadgen.Workload{
		Tenant: tenant, Request: request, Requests: 100_000, Begin: begin, Duration: options.length - begin,
		Arrivals: loadgen.ClosedLoop{Workers: workers, Stagger: floodSettle(options.length) / time.Duration(workers)},
	}
}

// floodBegin is the begin of the flood in a scene of the given length; floodSettle is the time in which its first
// requests fill the slots and the queue.
func floodBegin(length time.Duration) time.Duration { return length / 5 }

func floodSettle(length time.Duration) time.Duration {
	return min((length-floodBegin(length))/10, time.Second)
}

// play sends a scene's requests. The results cover the flood, without its first floodSettle.
func (s *demoScene) play(ctx context.Context, length time.Duration, progress loadgen.Progress) error {
	client, err := loadgen.NewClient(loadgen.ClientConfig{BaseURL: s.url})
	if err != nil {
		return err
	}
	defer client.Close()
	s.report, err = loadgen.Run(ctx, client, loadgen.Plan{
		Workloads: s.workloads,
		Warmup:    floodBegin(length) + floodSettle(length),
		Drain:     10 * time.Second,
	}, progress)
	return err
}

// demoRequest returns a tenant's request, with a class unless that is empty.
func demoRequest(tenant, class string, bodies [][]byte) loadgen.Template {
	header := http.Header{fairnessHeader: {tenant}, "Content-Type": {"application/json"}}
	if class != "" {
		header[classHeader] = []string{class}
	}
	return loadgen.Template{
		Path:   "/v1/chat/completions",
		Header: header,
		Body:   func(i int) []byte { return bodies[i%len(bodies)] },
		Stream: true,
	}
}

// The tenants of the scenes about priority are named for their classes. Bulk keeps four times as many requests in
// flight as there are slots.
const (
	interactiveTenant = "interactive"
	bulkTenant        = "bulk"
	bulkWorkers       = 4 * demoServers * demoSlots
	interactiveRate   = 5.0 // per second
)

// classHeader names a request's class, in Go's canonical form.
const classHeader = "X-Smg-Priority"

// priorityConfig is the profile smg-priority for a few slots: it keeps one slot free for interactive requests; further
// ones get slots by preemption. A tenant without a policy gets at most the default class.
var priorityConfig = fmt.Sprintf(`
profile: smg-priority
scheduling: { fallbacks: 2 }
flows: { key: ["header:%s"] }
tenantPolicies: { %s: { maxClass: interactive } }
requestQueueController: { slotsPerBackend: %d }
tiers:
- { name: system, reservedFloor: 0 }
- { name: interactive, reservedFloor: 1, reservedPerSlot: 0 }
- { name: default, reservedPerSlot: 0 }
- { name: bulk }
`, fairnessHeader, interactiveTenant, demoSlots)

// bulkBodies have long prompts, like a job that reads documents, so that the first token takes some work.
var bulkBodies = newBodies("Sum up: " + strings.Repeat("A weir is a low dam: it keeps the level of a river steady. ", 95))

// priorityWorkloads returns interactive requests and a flood of bulk requests, in these classes. Clients retry like
// real ones.
func priorityWorkloads(options demoOptions, interactiveClass, bulkClass string) []loadgen.Workload {
	workloads := []loadgen.Workload{
		steadyLoad(options, interactiveTenant, interactiveRate, demoRequest(interactiveTenant, interactiveClass, demoBodies)),
		floodLoad(options, bulkTenant, bulkWorkers, demoRequest(bulkTenant, bulkClass, bulkBodies)),
	}
	for i := range workloads {
		workloads[i].Retry = loadgen.Retry{Max: 2, Seed: options.seed}
	}
	return workloads
}

var preemptedLine = regexp.MustCompile(`(?m)^weir_preempted_total\{.*\} (\d+)$`)

// preempted returns the number of requests that Weir has preempted, from its own metrics.
func (d *demoSetting) preempted(ctx context.Context) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.priorityEPP.MetricsURL+"/metrics", http.NoBody)
	if err != nil {
		return 0, fmt.Errorf("metrics: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, fmt.Errorf("metrics: %w", err)
	}
	defer response.Body.Close() //nolint:errcheck // it was read, or is given up
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, fmt.Errorf("metrics: %w", err)
	}
	sum := 0
	for _, line := range preemptedLine.FindAllSubmatch(text, -1) {
		n, err := strconv.Atoi(string(line[1]))
		if err != nil {
			return 0, fmt.Errorf("metrics: %w", err)
		}
		sum += n
	}
	return sum, nil
}
