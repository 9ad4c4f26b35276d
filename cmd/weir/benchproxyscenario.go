package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/weir-epp/weir/internal/child"
	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/loadgen"
	"github.com/weir-epp/weir/internal/modelsim"
	"github.com/weir-epp/weir/internal/scene"
)

// The scenarios' names.
const (
	proxyAlone   = "Envoy alone"
	proxyNoop    = "no-op processor"
	proxyHeaders = "Weir, headers only"
	proxySmall   = "Weir, 1 KB body"
	proxyLarge   = "Weir, 64 KB body"

	proxyHeadersBare = "Weir, headers only, no buffer filter"
	proxyLargeBare   = "Weir, 64 KB body, no buffer filter"
)

// The figures' names.
const (
	figureRate      = "req/s"
	figureP50       = "p50 ms"
	figureP99       = "p99 ms"
	figureEnvoy     = "Envoy µs/req"
	figureProcessor = "processor µs/req"
	figureBoth      = "Envoy + processor µs/req"
	figureModels    = "models µs/req"
	figureClient    = "client µs/req"
)

const (
	modelHeader = "x-gateway-model-name"
	proxyPath   = "/v1/chat/completions"
	smallBody   = 1 << 10 // bytes
	largeBody   = 64 << 10
)

// proxyHeader returns the headers of the requests, with or without the model in a trusted header.
func proxyHeader(model bool) http.Header {
	header := http.Header{fairnessHeader: {"tenant-a"}, "Content-Type": {"application/json"}}
	if model {
		header[http.CanonicalHeaderKey(modelHeader)] = []string{modelsim.Instant().Model}
	}
	return header
}

// proxyRequest returns a chat completion with a body of the given size.
func proxyRequest(model bool, bytes int) loadgen.Template {
	begin := `{"model":"` + modelsim.Instant().Model + `","max_tokens":16,"messages":[{"role":"user","content":"`
	const end = `"}]}`
	content := strings.Repeat("weir ", bytes/5+1)[:bytes-len(begin)-len(end)]
	return loadgen.Template{
		Path: proxyPath, Header: proxyHeader(model), Body: loadgen.FixedBody(begin + content + end),
	}
}

// scenarios returns the scenarios to compare, each with the given number of requests in flight.
func (p *proxySetting) scenarios(concurrency int, length time.Duration) []loadgen.Scenario {
	one := func(name string, envoy *envoyrun.Envoy, processor *scene.Process, request loadgen.Template) loadgen.Scenario {
		return loadgen.Scenario{Name: name, Run: func(ctx context.Context, _ int) (loadgen.Figures, error) {
			return p.measure(ctx, envoy, processor, request, concurrency, length)
		}}
	}
	return []loadgen.Scenario{
		one(proxyAlone, p.alone, nil, proxyRequest(true, smallBody)),
		one(proxyNoop, p.idle, p.noop, proxyRequest(true, smallBody)),
		one(proxyHeaders, p.own, p.epp.Process, proxyRequest(true, smallBody)),
		one(proxySmall, p.own, p.epp.Process, proxyRequest(false, smallBody)),
		one(proxyLarge, p.own, p.epp.Process, proxyRequest(false, largeBody)),
		one(proxyHeadersBare, p.bare, p.epp.Process, proxyRequest(true, smallBody)),
		one(proxyLargeBare, p.bare, p.epp.Process, proxyRequest(false, largeBody)),
	}
}

// measure runs a closed loop and measures the processor time that each process uses meanwhile.
func (p *proxySetting) measure(
	ctx context.Context, envoy *envoyrun.Envoy, processor *scene.Process, request loadgen.Template,
	concurrency int, length time.Duration,
) (loadgen.Figures, error) {
	client, err := loadgen.NewClient(loadgen.ClientConfig{BaseURL: envoy.URL()})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	processes := map[string]int{figureEnvoy: envoy.Pid(), figureModels: p.models.Pid(), figureClient: os.Getpid()}
	if processor != nil {
		processes[figureProcessor] = processor.Pid()
	}
	before, err := usedBy(processes)
	if err != nil {
		return nil, err
	}
	report, err := loadgen.Run(ctx, client, loadgen.Plan{
		Workloads: []loadgen.Workload{{
			Tenant: "load", Arrivals: loadgen.ClosedLoop{Workers: concurrency}, Request: request,
			Requests: 100_000, Duration: length,
		}},
		Drain: 10 * time.Second,
	}, nil)
	if err != nil {
		return nil, err
	}
	after, err := usedBy(processes)
	if err != nil {
		return nil, err
	}
	all := loadgen.Summarise("", report).All
	if all.OK == 0 || all.OK < all.Requests {
		return nil, fmt.Errorf("%d of %d requests were not served: %v", all.Requests-all.OK, all.Requests, all.Outcomes)
	}
	figures := loadgen.Figures{
		figureRate: all.Throughput,
		figureP50:  float64(all.Total.P50) / float64(time.Millisecond),
		figureP99:  float64(all.Total.P99) / float64(time.Millisecond),
	}
	for name := range processes {
		figures[name] = float64(after[name]-before[name]) / float64(time.Microsecond) / float64(all.Requests)
	}
	figures[figureBoth] = figures[figureEnvoy] + figures[figureProcessor]
	return figures, nil
}

// usedBy returns the processor time that each process has used.
func usedBy(processes map[string]int) (map[string]time.Duration, error) {
	used := make(map[string]time.Duration, len(processes))
	for name, pid := range processes {
		var err error
		if used[name], err = child.CPU(pid); err != nil {
			return nil, err
		}
	}
	return used, nil
}

// profile records a CPU profile of epp while the headers-only scenario runs.
func (p *proxySetting) profile(ctx context.Context, concurrency int, file string) error {
	const length = 5 * time.Second
	loaded := make(chan error, 1)
	go func() {
		_, err := p.measure(ctx, p.own, p.epp.Process, proxyRequest(true, smallBody), concurrency, length+time.Second)
		loaded <- err
	}()
	err := download(ctx, fmt.Sprintf("%s/debug/pprof/profile?seconds=%.0f", p.epp.DebugURL, length.Seconds()), file)
	return errors.Join(err, <-loaded)
}

func download(ctx context.Context, url, file string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, response.Body)
	return errors.Join(err, out.Close())
}
