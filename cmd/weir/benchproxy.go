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

const proxyAbout = `Measures requests per second, latency and processor time per request through a real Envoy with one worker thread, in
rounds that take turns: Envoy alone; with a no-op, a grpc-go server that answers with constants; and with Weir. Weir and the
no-op get the same messages in the same modes, usage in trailers included: when the headers suffice, when a body of 1 KB or of
64 KB is read, and for streams of 200 chunks in FULL_DUPLEX_STREAMED, which run for both at the same time. One more row is a
no-op without usage, and one is Weir with --record=0. Weir has the profile wfq; weir bench affinity measures recommended. All
have Envoy's buffer filter, which passes only complete requests; two more rows, headers only and a body of 64 KB, run without
this filter to show its cost. The model servers answer at once and run in a separate process. The figures are medians over the
rounds, the ratios medians of each round's ratio.
`

// runBenchProxy is `weir bench proxy`.
func runBenchProxy(args []string, stdout, stderr io.Writer) int {
	var options benchOptions
	set := flagSet("weir bench proxy")
	options.flags(set, "of the headers-only scenario")
	set.IntSliceVar(&options.concurrency, "concurrency", []int{1, 32, 256}, "requests in flight, 1 to 1000 each")
	set.BoolVar(&options.quick, "quick", false, "2 rounds of 300ms: does it work, not how fast")
	check := func() error {
		if options.quick {
			options.rounds, options.length = 2, 300*time.Millisecond
		}
		return options.validate()
	}
	if code, ok := readFlags(set, proxyAbout, args, check, stdout, stderr); !ok {
		return code
	}
	return benchmark("proxy", options.assert, stderr, func(s *scene.Scene) (bool, error) {
		return benchProxy(s, options, stdout, stderr)
	})
}

// proxyServers is the number of endpoints to pick from.
const proxyServers = 4

// maxConcurrency is the largest number of requests in flight; Weir has room for that many without queueing.
const maxConcurrency = 1000

// proxyConfig has room for all requests, so that the benchmark measures the path of a request that does not wait. It
// lists the model, so Weir needs each request's model: from a header or else from the body.
var proxyConfig = fmt.Sprintf(`
profile: wfq
flows: { key: ["header:%s", "model"] }
models: [ { name: %q } ]
requestQueueController: { watermarkPerBackend: %d, lowerBoundPerBackend: %[3]d, upperBoundPerBackend: %[3]d }
`, fairnessHeader, modelsim.Instant().Model, maxConcurrency)

// proxySetting is the set of processes during the benchmark.
type proxySetting struct {
	load
	alone, own, bare        *envoyrun.Envoy // without a processor, with Weir, with Weir and without the buffer filter
	unseen, headers, bodies *noop           // besides own: no usage, enough headers, too few

	forgetful *scene.EPP      // Weir without a recording
	off       *envoyrun.Envoy // with it

	slow     load // of the streams
	duplex   *envoyrun.Envoy
	streamed *noop
}

// noop is a no-op processor with an Envoy of its own.
type noop struct {
	process *scene.Process
	envoy   *envoyrun.Envoy
}

func newProxySetting(s *scene.Scene, options benchOptions) (*proxySetting, error) {
	p := &proxySetting{}
	return p, errors.Join(p.startWhole(s, options), p.startStreams(s, options))
}

// startWhole starts the servers of answers in one piece.
func (p *proxySetting) startWhole(s *scene.Scene, options benchOptions) error {
	var flags []string
	if options.profile != "" {
		flags = []string{"--enable-pprof"}
	}
	servers, err := p.load.start(s, options, "", modelServers{}, flags)
	if err != nil {
		return err
	}
	if p.alone, err = s.Envoy("envoy-alone", envoyrun.Options{Config: "direct", ModelServers: servers}); err != nil {
		return err
	}
	with := tenantsNamed(envoyrun.Options{
		Config: "recommended", Weir: p.epp.Address, ModelServers: servers, Edit: envoyrun.KeepHeader(modelHeader),
	})
	if p.own, err = s.Envoy("envoy-weir", with); err != nil {
		return err
	}
	if p.forgetful, err = startEPP(s, options, "forgetful-epp", servers, []string{"--record=0"}); err != nil {
		return err
	}
	bare, unseen, off := with, with, with
	off.Weir = p.forgetful.Address
	if p.off, err = s.Envoy("envoy-weir-without-recording", off); err != nil {
		return err
	}
	bare.Edit = envoyrun.Edits(with.Edit, envoyrun.WithoutFilter(envoyrun.BufferFilter))
	if p.bare, err = s.Envoy("envoy-weir-bare", bare); err != nil {
		return err
	}
	unseen.Edit = envoyrun.Edits(with.Edit, envoyrun.WithoutUsage)
	if p.unseen, err = startNoop(s, "noop-without-usage", unseen, askedHeaders); err != nil {
		return err
	}
	if p.headers, err = startNoop(s, "noop-headers", with, askedHeaders); err != nil {
		return err
	}
	p.bodies, err = startNoop(s, "noop-bodies", with, askedBody)
	return err
}

// startStreams starts the servers of streams.
func (p *proxySetting) startStreams(s *scene.Scene, options benchOptions) error {
	slow := modelServers{Slots: maxConcurrency, Service: usageStreaming, Jitter: 0.2, Loose: true}
	servers, err := p.slow.start(s, options, "stream-", slow, nil)
	if err != nil {
		return err
	}
	with := tenantsNamed(envoyrun.Options{
		Config: "full-duplex", Weir: p.slow.epp.Address, ModelServers: servers, Edit: envoyrun.KeepHeader(modelHeader),
	})
	if p.duplex, err = s.Envoy("envoy-weir-streams", with); err != nil {
		return err
	}
	p.streamed, err = startNoop(s, "noop-streams", with, askedStream)
	return err
}

// start starts model servers and Weir, and returns the model servers' addresses.
func (l *load) start(s *scene.Scene, options benchOptions, prefix string, how modelServers, flags []string) ([]string, error) {
	models, servers, err := startModels(s, prefix+"model-servers", proxyServers, how)
	if err != nil {
		return nil, err
	}
	l.models = models
	l.epp, err = startEPP(s, options, prefix+"epp", servers, flags)
	return servers, err
}

// startEPP starts a Weir for the model servers.
func startEPP(s *scene.Scene, options benchOptions, name string, servers, flags []string) (*scene.EPP, error) {
	binary, err := scene.FindEPP(options.epp)
	if err != nil {
		return nil, err
	}
	return s.EPP(scene.EPPOptions{Name: name, Binary: binary, Config: proxyConfig, Endpoints: servers, Flags: flags})
}

// startNoop starts a no-op processor, which replays the answers of the given Envoy's Weir, and an equal Envoy.
func startNoop(s *scene.Scene, name string, with envoyrun.Options, request asked) (*noop, error) {
	answers, err := recordAnswers(s.Context(), with.Weir, proxyServers, request)
	if err != nil {
		return nil, err
	}
	recorded, err := marshalAnswers(answers)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(s.Dir(), name+"-answers")
	if err := os.WriteFile(file, recorded, 0o600); err != nil {
		return nil, err
	}
	process, addresses, err := s.Server(name, "noop-processor", file)
	if err != nil {
		return nil, err
	}
	with.Weir = addresses[0]
	envoy, err := s.Envoy("envoy-"+name, with)
	return &noop{process, envoy}, err
}

// benchProxy measures, writes the tables, and reports whether the target is met.
func benchProxy(s *scene.Scene, options benchOptions, stdout, stderr io.Writer) (met bool, err error) {
	setting, err := newProxySetting(s, options)
	if err != nil {
		return false, err
	}
	bar := newProgress(stderr, len(options.concurrency)+1)
	defer bar.end()
	all := make(map[int]*loadgen.Comparison)
	for _, c := range options.concurrency {
		if all[c], err = compare(s.Context(), options.rounds, setting.scenarios(c, options.length), bar.begin(fmt.Sprintf("%d in flight", c))); err != nil {
			return false, err
		}
	}
	if all[inStreams], err = compare(s.Context(), options.rounds, setting.streams(options.length), bar.begin("streams")); err != nil {
		return false, err
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
