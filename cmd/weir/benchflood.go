package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/weir-epp/weir/internal/arguments"
	"github.com/weir-epp/weir/internal/config"
	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/loadgen"
	"github.com/weir-epp/weir/internal/modelsim"
	"github.com/weir-epp/weir/internal/scene"
)

// The flood: 16 slots of 200 ms serve at most 80 requests per second.
const (
	floodServers = 4
	floodSlots   = 4
	floodService = 200 * time.Millisecond
	floodWorkers = 64
	// The first workers, one per slot, start this far apart. Workers that start together would stay in phase, and all
	// slots would become free at once.
	floodStagger = floodService / (floodServers * floodSlots)
)

// floodConfig keeps the slots full and the backlog in Weir. The queue has room for both flows, so nothing is rejected.
func floodConfig(spacing time.Duration, tieBreak string) string {
	return fmt.Sprintf(`
profile: recommended
flows: { tieBreak: %s }
requestQueueController: { watermarkPerBackend: %d, lowerBoundPerBackend: %[2]d, upperBoundPerBackend: %[2]d, releaseSpacing: %[3]v }
`, tieBreak, floodSlots, spacing)
}

const floodAbout = `Four simulated model servers have 4 slots of 200 ms each: at best 80 requests per second. A flood of 64 closed-loop
workers competes with a quiet tenant that sends 5 requests per second (Poisson): with Weir, then through Envoy alone.
`

// floodOptions are the flags of `weir bench flood`.
type floodOptions struct {
	epp      string
	samples  int
	warmup   time.Duration
	jitter   float64
	spacing  time.Duration
	tieBreak string
	seed     uint64
	assert   bool
}

// runBenchFlood is `weir bench flood`.
func runBenchFlood(args []string, stdout, stderr io.Writer) int {
	var options floodOptions
	set := flagSet("weir bench flood")
	set.IntVar(&options.samples, "samples", 400, "measured requests of the quiet tenant, 1 to 100000")
	set.DurationVar(&options.warmup, "warmup", 5*time.Second, "time before the measurement begins, 100ms to 1m")
	set.DurationVar(&options.spacing, "spacing", 8*time.Millisecond, "Weir's releaseSpacing, 0 to 1s: without it slots of "+
		"equal times come free together after a while")
	set.StringVar(&options.tieBreak, "tie-break", config.FlowTieNewcomer, "Weir's flows.tieBreak, newcomer or arrival")
	set.Float64Var(&options.jitter, "jitter", 0, "spread of the service times to either side, 0 to 0.5")
	set.Uint64Var(&options.seed, "seed", 1, "seed of the quiet tenant's arrivals")
	set.BoolVar(&options.assert, "assert", false, "exit with 1 if a target is missed")
	set.StringVar(&options.epp, "epp", "", eppFlag)
	check := func() error {
		var ps arguments.Problems
		arguments.Within(&ps, "samples", options.samples, 1, 100_000)
		arguments.Within(&ps, "warmup", options.warmup, 100*time.Millisecond, time.Minute)
		arguments.Within(&ps, "spacing", options.spacing, 0, time.Second)
		if options.tieBreak != config.FlowTieNewcomer && options.tieBreak != config.FlowTieArrival {
			ps.Add("tie-break", "%q: must be newcomer or arrival", options.tieBreak)
		}
		arguments.Within(&ps, "jitter", options.jitter, 0, 0.5)
		return ps.Err()
	}
	if code, ok := readFlags(set, floodAbout, args, check, stdout, stderr); !ok {
		return code
	}
	return benchmark("flood", options.assert, stderr, func(s *scene.Scene) (bool, error) {
		return benchFlood(s, options, stdout, stderr)
	})
}

// benchFlood measures with and without Weir, writes the results, and reports whether Weir met every target.
func benchFlood(s *scene.Scene, options floodOptions, stdout, stderr io.Writer) (met bool, err error) {
	binary, err := scene.FindEPP(options.epp)
	if err != nil {
		return false, err
	}
	_, servers, err := startModels(s, "model-servers", floodServers, modelServers{Slots: floodSlots, Service: floodService, Jitter: options.jitter})
	if err != nil {
		return false, err
	}
	epp, err := s.EPP(scene.EPPOptions{Binary: binary, Config: floodConfig(options.spacing, options.tieBreak), Endpoints: servers})
	if err != nil {
		return false, err
	}
	stalls := newStallMeter(s.Context())
	bar := newProgress(stderr, 2)
	defer bar.end()
	measure := func(name string, of envoyrun.Options) (loadgen.Summary, error) {
		of.ModelServers = servers
		envoy, err := s.Envoy(of.Config, of)
		if err != nil {
			return loadgen.Summary{}, err
		}
		report, err := flood(s.Context(), envoy.URL(), options, bar.begin(name))
		if err != nil {
			return loadgen.Summary{}, err
		}
		return loadgen.Summarise(name, report), nil
	}
	with, err := measure(sceneWith, tenantsNamed(envoyrun.Options{Config: "recommended", Weir: epp.Address}))
	if err != nil {
		return false, err
	}
	without, err := measure(sceneWithout, envoyrun.Options{Config: "direct"})
	if err != nil {
		return false, err
	}
	bar.end()
	_, _ = fmt.Fprintf(stdout, "Weir with profile recommended, tieBreak %s, and releaseSpacing %v (--spacing=0s: none).\n\n",
		options.tieBreak, options.spacing)
	if err := loadgen.WriteTable(stdout, with, without); err != nil {
		return false, err
	}
	_, _ = fmt.Fprintf(stdout, "\nThe machine: %v.\n\n", stalls)
	return writeTargets(stdout, floodTargets(with)), nil
}

// flood runs the flood until the quiet tenant has sent its samples and got their answers.
func flood(ctx context.Context, url string, options floodOptions, progress loadgen.Progress) (*loadgen.Report, error) {
	client, err := loadgen.NewClient(loadgen.ClientConfig{BaseURL: url})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	if err := prime(ctx, client); err != nil {
		return nil, err
	}
	// An upper bound: twice the time that the samples take on average, and more if they are few.
	bound := options.warmup + time.Duration(2*float64(options.samples)/quietRate*float64(time.Second)) + 10*time.Second
	quiet := loadgen.OpenLoop{Rate: quietRate, Poisson: true, Seed: options.seed}
	early := quiet
	early.Seed++ // so that the warm-up's arrivals differ from the measured ones
	quietPlan := loadgen.Plan{
		Workloads: []loadgen.Workload{
			{Tenant: quietTenant, Arrivals: early, Request: floodRequest(quietTenant), Requests: 1000, Duration: options.warmup},
			{
				Tenant: quietTenant, Arrivals: quiet, Request: floodRequest(quietTenant), Requests: options.samples,
				Begin: options.warmup, Duration: bound - options.warmup,
			},
		},
		Warmup: options.warmup, Drain: 30 * time.Second,
	}
	noisyPlan := loadgen.Plan{
		Workloads: []loadgen.Workload{{
			Tenant:   noisyTenant,
			Arrivals: loadgen.ClosedLoop{Workers: floodWorkers, Stagger: floodStagger, Staggered: floodServers * floodSlots},
			Request:  floodRequest(noisyTenant), Requests: mostRequests(bound), Duration: bound,
		}},
		Warmup: options.warmup, Drain: 30 * time.Second,
	}

	type outcome struct {
		report *loadgen.Report
		err    error
	}
	flooding, stop := context.WithCancelCause(ctx)
	ended := make(chan outcome, 1)
	go func() {
		report, err := loadgen.Run(flooding, client, noisyPlan, nil)
		ended <- outcome{report, err}
	}()
	quietReport, err := loadgen.Run(ctx, client, quietPlan, progress)
	stop(loadgen.ErrCutOff)
	noisy := <-ended
	if err != nil {
		return nil, err
	}
	if noisy.err != nil && !errors.Is(noisy.err, loadgen.ErrCutOff) {
		return nil, noisy.err
	}
	for _, track := range noisy.report.Tracks {
		track.Results = uncut(track.Results)
		quietReport.Tracks = append(quietReport.Tracks, track)
	}
	return quietReport, nil
}

// uncut drops the requests that were in flight when the flood was stopped.
func uncut(results []loadgen.Result) []loadgen.Result {
	kept := results[:0]
	for i := range results {
		if !errors.Is(results[i].Err, loadgen.ErrCutOff) {
			kept = append(kept, results[i])
		}
	}
	return kept
}

func floodRequest(tenant string) loadgen.Template {
	return loadgen.Template{
		Path:   "/v1/chat/completions",
		Header: http.Header{fairnessHeader: {tenant}, "Content-Type": {"application/json"}},
		Body: loadgen.FixedBody(
			`{"model":"` + modelsim.DefaultConfig().Model + `","max_tokens":16,"messages":[{"role":"user","content":"Hello"}]}`),
	}
}

// prime opens every connection of the flood and runs every program's code once. First requests take ten times as long
// as later ones, which would bring the staggered workers into phase.
func prime(ctx context.Context, client *loadgen.Client) error {
	report, err := loadgen.Run(ctx, client, loadgen.Plan{
		Workloads: []loadgen.Workload{{
			Tenant:   noisyTenant,
			Arrivals: loadgen.ClosedLoop{Workers: floodWorkers + 2*floodServers*floodSlots},
			Request:  floodRequest(noisyTenant), Requests: 3 * floodWorkers, Duration: time.Minute,
		}},
		Drain: 30 * time.Second,
	}, nil)
	if err != nil {
		return err
	}
	if s := loadgen.Summarise("", report); s.All.OK != s.All.Requests {
		return fmt.Errorf("%d of %d requests failed before the measurement", s.All.Requests-s.All.OK, s.All.Requests)
	}
	return nil
}

// mostRequests returns more requests than the slots can serve in that time, as the capacity for the results, allocated
// at the start.
func mostRequests(during time.Duration) int {
	return int(2*floodServers*floodSlots*during/floodService) + floodWorkers
}
