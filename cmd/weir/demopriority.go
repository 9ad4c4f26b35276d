package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/weir-epp/weir/internal/loadgen"
)

// The tenants of the scenes about priority have the names of the classes they ask for. Bulk keeps four times as many
// requests in flight as there are slots.
const (
	interactiveTenant = "interactive"
	bulkTenant        = "bulk"
	bulkWorkers       = 4 * demoServers * demoSlots
	interactiveRate   = 5.0 // per second
)

// classHeader names a request's class, in Go's canonical form.
const classHeader = "X-Smg-Priority"

// priorityConfig is the profile smg-priority for a few slots: it keeps one of them free for interactive requests, and
// further ones get theirs by preemption. A tenant without a policy gets at most the default class.
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

// bulkBodies have long prompts, as from a job that reads documents, so that it takes some work to get to the first
// token.
var bulkBodies = newBodies("Sum up: " + strings.Repeat("A weir is a low dam: it keeps the level of a river steady. ", 95))

// priorityWorkloads returns interactive requests beside a flood of bulk requests, in these classes. Clients retry as
// real ones do.
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
