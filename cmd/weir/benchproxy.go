package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/loadgen"
	"github.com/weir-epp/weir/internal/modelsim"
	"github.com/weir-epp/weir/internal/scene"
)

const proxyAbout = `Requests per second, latency and processor time per request through a real Envoy with one worker thread, in rounds that
take turns: Envoy alone; with a processor that only answers at once; with Weir, when the headers suffice, when it reads a
body of 1 KB, and one of 64 KB. All have Envoy's buffer filter, which lets only complete requests pass; two more rows,
headers only and a body of 64 KB, are without it, to show what it costs. The model servers answer at once and run in a
process of their own. The figures are medians over the rounds, the ratios medians of each round's ratio.
`

// proxyOptions are the flags of `weir bench proxy`.
type proxyOptions struct {
	epp         string
	rounds      int
	length      time.Duration
	concurrency []int
	quick       bool
	profile     string
	assert      bool
}

// runBenchProxy is `weir bench proxy`.
func runBenchProxy(args []string, stdout, stderr io.Writer) int {
	var options proxyOptions
	set := flagSet("weir bench proxy")
	set.IntVar(&options.rounds, "rounds", 7, "rounds, 1 to 1000; fewer than 5 say little")
	set.DurationVar(&options.length, "length", 1500*time.Millisecond, "time of one scenario in one round, 100ms to 1m")
	set.IntSliceVar(&options.concurrency, "concurrency", []int{1, 32, 256}, "requests in flight, 1 to 1000 each")
	set.BoolVar(&options.quick, "quick", false, "2 rounds of 300ms: does it work, not how fast")
	set.StringVar(&options.profile, "cpu-profile", "", "`file` for a CPU profile of epp, from a further run of the headers-only scenario")
	set.BoolVar(&options.assert, "assert", false, "exit with 1 if the target is missed")
	set.StringVar(&options.epp, "epp", "", eppFlag)
	check := func() error {
		if options.quick {
			options.rounds, options.length = 2, 300*time.Millisecond
		}
		return options.validate()
	}
	if code, ok := readFlags(set, proxyAbout, args, check, stdout, stderr); !ok {
		return code
	}
	met := false
	code := onStage("bench proxy", stderr, func(s *scene.Scene) (err error) {
		met, err = benchProxy(s, options, stdout, stderr)
		return err
	})
	if code == 0 && options.assert && !met {
		return 1
	}
	return code
}

func (o *proxyOptions) validate() error {
	var problems []error
	if o.rounds < 1 || o.rounds > 1000 {
		problems = append(problems, fmt.Errorf("--rounds: %d: must be from 1 to 1000", o.rounds))
	}
	if o.length < 100*time.Millisecond || o.length > time.Minute {
		problems = append(problems, fmt.Errorf("--length: %v: must be from 100ms to 1m", o.length))
	}
	if len(o.concurrency) == 0 {
		problems = append(problems, errors.New("--concurrency: needs a number"))
	}
	for i, c := range o.concurrency {
		if c < 1 || c > maxConcurrency || slices.Contains(o.concurrency[:i], c) {
			problems = append(problems, fmt.Errorf("--concurrency: %d: must be from 1 to %d, and each once", c, maxConcurrency))
		}
	}
	return errors.Join(problems...)
}

// proxyServers is the number of endpoints to pick from.
const proxyServers = 4

// maxConcurrency is the largest number of requests in flight; Weir has room for that many without queueing.
const maxConcurrency = 1000

// proxyConfig has room for all requests, so that the benchmark measures the path of a request that need not wait. It
// lists the model, so Weir needs each request's model: from a header or else from the body.
var proxyConfig = fmt.Sprintf(`
profile: wfq
flows: { key: ["header:%s", "model"] }
models: [ { name: %q } ]
requestQueueController: { watermarkPerBackend: %d, lowerBoundPerBackend: %[3]d, upperBoundPerBackend: %[3]d }
`, fairnessHeader, modelsim.Instant().Model, maxConcurrency)

// proxySetting is what runs during the benchmark.
type proxySetting struct {
	load
	noop             *scene.Process
	alone, idle, own *envoyrun.Envoy // without a processor, with the no-op, with Weir
	bare             *envoyrun.Envoy // with Weir, without the buffer filter
}

func newProxySetting(s *scene.Scene, options proxyOptions) (*proxySetting, error) {
	binary, err := scene.FindEPP(options.epp)
	if err != nil {
		return nil, err
	}
	p := &proxySetting{}
	var servers, noop []string
	if p.models, servers, err = startModels(s, "model-servers", proxyServers, modelServers{}); err != nil {
		return nil, err
	}
	epp := scene.EPPOptions{Binary: binary, Config: proxyConfig, Endpoints: servers}
	if options.profile != "" {
		epp.Flags = []string{"--enable-pprof"}
	}
	if p.epp, err = s.EPP(epp); err != nil {
		return nil, err
	}
	answers, err := recordAnswers(s.Context(), p.epp.Address, proxyServers)
	if err != nil {
		return nil, err
	}
	if err := checkBodies(s.Context(), p.epp.Address); err != nil {
		return nil, err
	}
	recorded, err := marshalAnswers(answers)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(s.Dir(), "answers")
	if err := os.WriteFile(file, recorded, 0o600); err != nil {
		return nil, err
	}
	if p.noop, noop, err = s.Server("noop-processor", "noop-processor", file); err != nil {
		return nil, err
	}
	if p.alone, err = s.Envoy("envoy-alone", envoyrun.Options{Config: "direct", ModelServers: servers}); err != nil {
		return nil, err
	}
	with := tenantsNamed(envoyrun.Options{Config: "recommended", ModelServers: servers, Edit: envoyrun.KeepHeader(modelHeader)})
	with.Weir = noop[0]
	if p.idle, err = s.Envoy("envoy-noop", with); err != nil {
		return nil, err
	}
	with.Weir = p.epp.Address
	if p.own, err = s.Envoy("envoy-weir", with); err != nil {
		return nil, err
	}
	with.Edit = envoyrun.Edits(with.Edit, envoyrun.WithoutFilter(envoyrun.BufferFilter))
	p.bare, err = s.Envoy("envoy-weir-bare", with)
	return p, err
}

// benchProxy measures, writes the tables, and reports whether the target is met.
func benchProxy(s *scene.Scene, options proxyOptions, stdout, stderr io.Writer) (met bool, err error) {
	setting, err := newProxySetting(s, options)
	if err != nil {
		return false, err
	}
	bar := newProgress(stderr, len(options.concurrency))
	defer bar.end()
	all := make([]*loadgen.Comparison, len(options.concurrency))
	for i, c := range options.concurrency {
		scenarios := setting.scenarios(c, options.length)
		for _, scenario := range scenarios { // fills connection pools and caches; not counted
			if _, err := scenario.Run(s.Context(), 0); err != nil {
				return false, err
			}
		}
		part := bar.begin(fmt.Sprintf("%d in flight", c))
		if all[i], err = loadgen.Interleave(s.Context(), options.rounds, scenarios, part); err != nil {
			return false, err
		}
	}
	if options.profile != "" {
		small := proxyRequest(true, smallBody)
		if err := setting.profile(s.Context(), setting.own, small, slices.Max(options.concurrency), options.profile); err != nil {
			return false, err
		}
	}
	bar.end()
	return writeProxy(stdout, options, all), nil
}
