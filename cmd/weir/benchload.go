package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/weir-epp/weir/internal/child"
	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/loadgen"
	"github.com/weir-epp/weir/internal/scene"
)

// load measures Envoys with the same Weir and the same model servers.
type load struct {
	models *scene.Process
	epp    *scene.EPP
}

// measure runs a closed loop and measures each process's CPU time.
func (l *load) measure(
	ctx context.Context, envoy *envoyrun.Envoy, processor *scene.Process, request loadgen.Template,
	concurrency int, length time.Duration,
) (loadgen.Figures, error) {
	client, err := loadgen.NewClient(loadgen.ClientConfig{BaseURL: envoy.URL()})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	processes := map[string]int{figureEnvoy: envoy.Pid(), figureModels: l.models.Pid(), figureClient: os.Getpid()}
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

// usedBy returns the CPU time used by each process.
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

// profile records a CPU profile of epp while a closed loop runs.
func (l *load) profile(
	ctx context.Context, envoy *envoyrun.Envoy, request loadgen.Template, concurrency int, file string,
) error {
	const length = 5 * time.Second
	loaded := make(chan error, 1)
	go func() {
		_, err := l.measure(ctx, envoy, l.epp.Process, request, concurrency, length+time.Second)
		loaded <- err
	}()
	err := download(ctx, fmt.Sprintf("%s/debug/pprof/profile?seconds=%.0f", l.epp.DebugURL, length.Seconds()), file)
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
