package main

import (
	"context"
	"net/http"
	"time"

	"github.com/weir-epp/weir/internal/loadgen"
)

// The scenes' names in table and picture.
const (
	sceneWithout    = "Envoy alone"
	sceneWith       = "Envoy with Weir"
	sceneNoPriority = "Weir, no priority"
	scenePriority   = "Weir with priority"
)

// demoScene is one of the demo's scenes: who sends what to which Envoy, and then what was measured.
type demoScene struct {
	name      string
	url       string
	workloads []loadgen.Workload
	report    *loadgen.Report
}

// scenes are the demo's, two about fairness and two about priority. The scenes of a pair differ in one thing: whether
// there is a Weir, and whether requests name their class.
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

// steadyLoad is a tenant's requests throughout a scene.
func steadyLoad(options demoOptions, tenant string, rate float64, request loadgen.Template) loadgen.Workload {
	return loadgen.Workload{
		Tenant: tenant, Request: request, Requests: 10_000, Duration: options.length,
		Arrivals: loadgen.OpenLoop{Rate: rate, Poisson: true, Seed: options.seed},
	}
}

// floodLoad is a tenant that keeps so many requests in flight from floodBegin on.
func floodLoad(options demoOptions, tenant string, workers int, request loadgen.Template) loadgen.Workload {
	begin := floodBegin(options.length)
	return loadgen.Workload{
		Tenant: tenant, Request: request, Requests: 100_000, Begin: begin, Duration: options.length - begin,
		Arrivals: loadgen.ClosedLoop{Workers: workers, Stagger: floodSettle(options.length) / time.Duration(workers)},
	}
}

// floodBegin is when a flood begins, from the start of a scene of that length; floodSettle is how long its first requests
// take to fill the slots and the queue.
func floodBegin(length time.Duration) time.Duration { return length / 5 }

func floodSettle(length time.Duration) time.Duration {
	return min((length-floodBegin(length))/10, time.Second)
}

// play sends a scene's requests. The figures are of the time of the flood, from when it has settled.
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

// demoRequest is a tenant's request, of a class if one is named.
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
