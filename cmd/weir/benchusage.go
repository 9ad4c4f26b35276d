package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/loadgen"
	"github.com/weir-epp/weir/internal/modelsim"
	"github.com/weir-epp/weir/internal/scene"
)

const usageAbout = `Measures the cost of usage, which Envoy reads from answers and sends to Weir, as processor time of Envoy and epp together: the
recommended configuration with usage and without. Each Envoy has its own Weir. The JSON answers, to requests of 1 KB, come from
model servers that answer at once, in rounds that take turns. The streams have 200 chunks, one in 10 ms, and run for both at the
same time, so a busy machine affects them alike: chat completions, whose events have no names, so Envoy parses each; and
messages, whose names show Envoy which events can have usage. The ratios are medians of each round's ratio.
`

// The scenarios' names.
const (
	usageWithout       = "1 KB, without usage"
	usageWith          = "1 KB, with usage"
	usageSkip          = "1 KB, with usage, response headers skipped"
	usageChunksWithout = "200 chunks, without usage"
	usageChunksWith    = "200 chunks, with usage"
	usageNamedWithout  = "200 named chunks, without usage"
	usageNamedWith     = "200 named chunks, with usage"
)

// usageTargets are the largest ratios of the first scenario's CPU time of Envoy and epp to the second's.
var usageTargets = []struct {
	one, other string
	most       float64
}{
	{usageWith, usageWithout, 1.40},
	{usageSkip, usageWithout, 1.20},
	{usageChunksWith, usageChunksWithout, 1.10},
	{usageNamedWith, usageNamedWithout, 1.10},
}

const (
	usageInFlight  = 32              // requests of 1 KB to each Envoy
	usageStreams   = 16              // streams of each Envoy
	usageChunks    = 200             // of a stream, a token each
	usageStreaming = 2 * time.Second // the time of a stream
)

// usageConfig has room for all requests.
var usageConfig = fmt.Sprintf(`
profile: recommended
cost: tokens
flows: { key: ["header:%s", "model"] }
requestQueueController: { watermarkPerBackend: %d, lowerBoundPerBackend: %[2]d, upperBoundPerBackend: %[2]d }
`, fairnessHeader, maxConcurrency)

// runBenchUsage is `weir bench usage`.
func runBenchUsage(args []string, stdout, stderr io.Writer) int {
	options := benchOptions{concurrency: []int{usageInFlight}}
	set := flagSet("weir bench usage")
	options.flags(set, "with usage")
	if code, ok := readFlags(set, usageAbout, args, options.validate, stdout, stderr); !ok {
		return code
	}
	return benchmark("usage", options.assert, stderr, func(s *scene.Scene) (met bool, err error) {
		scenarios, profile, err := usageScenarios(s, options)
		if err != nil {
			return false, err
		}
		all, err := comparePlain(s, "usage", options, stderr, scenarios, profile)
		if err != nil {
			return false, err
		}
		return writeUsage(stdout, options, all), nil
	})
}

// usageSide is an Envoy with a Weir of its own, and its requests.
type usageSide struct {
	scenario, file string
	edit           func(envoyrun.Bootstrap) error
	request        loadgen.Template
}

// usageScenarios starts all processes. The returned function records a CPU profile of epp.
func usageScenarios(s *scene.Scene, options benchOptions) ([]loadgen.Scenario, func(string) error, error) {
	small, chunks, named := proxyRequest(true, smallBody), usageStream(), usageNamedStream()
	whole, profiled, err := usageSides(s, options, "whole", modelServers{}, usageInFlight, []usageSide{
		{usageWithout, "recommended", envoyrun.WithoutUsage, small},
		{usageWith, "recommended", nil, small},
		{usageSkip, "recommended", skipResponseHeaders, small},
	})
	if err != nil {
		return nil, nil, err
	}
	slow := modelServers{Slots: maxConcurrency, Service: usageStreaming, Jitter: 0.2, Loose: true}
	streamed, _, err := usageSides(s, options, "streamed", slow, usageStreams, []usageSide{
		{usageChunksWithout, "recommended", envoyrun.WithoutUsage, chunks},
		{usageChunksWith, "recommended", nil, chunks},
		{usageNamedWithout, "recommended", envoyrun.WithoutUsage, named},
		{usageNamedWith, "recommended", nil, named},
	})
	return append(whole, loadgen.Together(streamed...)...), profiled, err
}

// usageSides starts model servers and all sides. The returned function records a CPU profile of the second side's epp.
func usageSides(
	s *scene.Scene, options benchOptions, name string, how modelServers, inFlight int, sides []usageSide,
) ([]loadgen.Scenario, func(string) error, error) {
	binary, err := scene.FindEPP(options.epp)
	if err != nil {
		return nil, nil, err
	}
	models, servers, err := startModels(s, name+"-models", proxyServers, how)
	if err != nil {
		return nil, nil, err
	}
	var scenarios []loadgen.Scenario
	var profiled func(string) error
	for i, side := range sides {
		epp, err := s.EPP(scene.EPPOptions{
			Name: fmt.Sprintf("%s-epp-%d", name, i), Binary: binary, Config: usageConfig, Endpoints: servers,
			Flags: []string{"--enable-pprof"},
		})
		if err != nil {
			return nil, nil, err
		}
		envoy, err := s.Envoy(fmt.Sprintf("%s-envoy-%d", name, i), tenantsNamed(envoyrun.Options{
			Config: side.file, Weir: epp.Address, ModelServers: servers,
			Edit: envoyrun.Edits(envoyrun.KeepHeader(modelHeader), side.edit),
		}))
		if err != nil {
			return nil, nil, err
		}
		l := &load{models: models, epp: epp}
		scenarios = append(scenarios, l.scenario(side.scenario, envoy, epp.Process, side.request, inFlight, options.length))
		if i == 1 {
			profiled = func(file string) error { return l.profile(s.Context(), envoy, side.request, inFlight, file) }
		}
	}
	return scenarios, profiled, nil
}

// skipResponseHeaders is an Edit with which Weir sees only the trailers of a response.
func skipResponseHeaders(b envoyrun.Bootstrap) error {
	mode := envoyrun.Object(b.Filter(envoyrun.ExtProcFilter), "processing_mode")
	if mode == nil {
		return errors.New("the configuration has no processing mode")
	}
	mode["response_header_mode"] = "SKIP"
	return nil
}

// usageStreamBody returns the body of a chat completion whose answer is a stream.
func usageStreamBody() string {
	return fmt.Sprintf(`{"model":%q,"max_tokens":%d,"ignore_eos":true,"stream":true,"stream_options":{"include_usage":true},`+
		`"messages":[{"role":"user","content":"What is a weir?"}]}`, modelsim.Instant().Model, usageChunks)
}

// usageStream returns that chat completion.
func usageStream() loadgen.Template {
	return loadgen.Template{Path: proxyPath, Header: proxyHeader(true), Body: loadgen.FixedBody(usageStreamBody()), Stream: true}
}

// usageNamedStream returns a request of Anthropic's API, whose answer is a stream of events with names.
func usageNamedStream() loadgen.Template {
	body := fmt.Sprintf(`{"model":%q,"max_tokens":%d,"ignore_eos":true,"stream":true,`+
		`"messages":[{"role":"user","content":"What is a weir?"}]}`, modelsim.Instant().Model, usageChunks)
	return loadgen.Template{Path: "/v1/messages", Header: proxyHeader(true), Body: loadgen.FixedBody(body), Stream: true}
}

// writeUsage writes the Markdown tables, and reports whether the targets are met.
func writeUsage(w io.Writer, options benchOptions, all *loadgen.Comparison) bool {
	writeMedians(w, options, all, figureRate, figureP50, figureEnvoy, figureProcessor, figureBoth)
	_, _ = fmt.Fprint(w, "\nEnvoy and processor together, in pairs (lowest to highest):\n\n")
	var targets []target
	for _, pair := range usageTargets {
		targets = append(targets, ratioTarget(all, pair.one+" over "+pair.other, pair.one, pair.other, figureBoth, pair.most))
	}
	return writeTargets(w, targets)
}
