package main

import (
	"bytes"
	"fmt"
	"io"
	"slices"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/loadgen"
	"github.com/weir-epp/weir/internal/scene"
)

const affinityAbout = `Measures the cost of the profile recommended as shipped, which reads each body to find the engine that has cached the beginning
of its prompt: processor time of epp per request, through Envoy with one worker thread. Requests of 1 KB are compared with a
no-op that gets the same messages in the same modes, and requests of 220 KB with a Weir with scheduling.affinity: off that
reads bodies too; requests of 400 KB run alone. The prompts are of 16 groups, with three quarters of the text in common. The
model servers answer at once. The ratios are medians of each round's ratio.
`

// The scenarios' names.
const (
	affinityNoop    = "no-op, 1 KB"
	affinitySmall   = "recommended, 1 KB"
	affinityWithout = "affinity: off, 220 KB"
	affinityWith    = "recommended, 220 KB"
	affinityLarge   = "recommended, 400 KB"
)

const (
	affinityInFlight = 32 // of 1 KB
	affinityFew      = 8  // of the larger ones
	affinityGroups   = 16
	// affinityRate is the number of requests of 400 KB per second that may take affinityCore of a CPU.
	affinityRate, affinityCore = 10, 0.05
)

// shippedConfig is the profile recommended, with the tenants of the benchmarks.
var shippedConfig = fmt.Sprintf("profile: recommended\nflows: { key: [%q, model] }\n", "header:"+fairnessHeader)

// withoutAffinity reads bodies but does not compare prompts.
var withoutAffinity = shippedConfig + "scheduling: { affinity: off }\nrequestBody: always\n"

// runBenchAffinity is `weir bench affinity`.
func runBenchAffinity(args []string, stdout, stderr io.Writer) int {
	options := benchOptions{concurrency: []int{affinityInFlight}}
	set := flagSet("weir bench affinity")
	options.flags(set, "with 220 KB")
	if code, ok := readFlags(set, affinityAbout, args, options.validate, stdout, stderr); !ok {
		return code
	}
	return benchmark("affinity", options.assert, stderr, func(s *scene.Scene) (met bool, err error) {
		scenarios, profile, err := affinityScenarios(s, options)
		if err != nil {
			return false, err
		}
		all, err := comparePlain(s, "affinity", options, stderr, scenarios, profile)
		if err != nil {
			return false, err
		}
		return writeAffinity(stdout, options, all), nil
	})
}

// affinityScenarios starts all processes. The returned function records a CPU profile of epp.
func affinityScenarios(s *scene.Scene, options benchOptions) ([]loadgen.Scenario, func(string) error, error) {
	binary, err := scene.FindEPP(options.epp)
	if err != nil {
		return nil, nil, err
	}
	models, servers, err := startModels(s, "model-servers", proxyServers, modelServers{})
	if err != nil {
		return nil, nil, err
	}
	// before starts a Weir with its Envoy.
	before := func(name, config string) (*load, *envoyrun.Envoy, envoyrun.Options, error) {
		epp, err := s.EPP(scene.EPPOptions{Name: name, Binary: binary, Config: config, Endpoints: servers, Flags: []string{"--enable-pprof"}})
		if err != nil {
			return nil, nil, envoyrun.Options{}, err
		}
		with := tenantsNamed(envoyrun.Options{Config: "recommended", Weir: epp.Address, ModelServers: servers})
		envoy, err := s.Envoy("envoy-"+name, with)
		return &load{models: models, epp: epp}, envoy, with, err
	}
	shipped, own, with, err := before("recommended", shippedConfig)
	if err != nil {
		return nil, nil, err
	}
	without, plain, _, err := before("affinity-off", withoutAffinity)
	if err != nil {
		return nil, nil, err
	}
	idle, err := startNoop(s, "noop", with, askedBody)
	if err != nil {
		return nil, nil, err
	}
	small, medium, large := promptsOf(smallBody), promptsOf(220<<10), promptsOf(400<<10)
	length := options.length
	return []loadgen.Scenario{
		shipped.scenario(affinityNoop, idle.envoy, idle.process, small, affinityInFlight, length),
		shipped.scenario(affinitySmall, own, shipped.epp.Process, small, affinityInFlight, length),
		without.scenario(affinityWithout, plain, without.epp.Process, medium, affinityFew, length),
		shipped.scenario(affinityWith, own, shipped.epp.Process, medium, affinityFew, length),
		shipped.scenario(affinityLarge, own, shipped.epp.Process, large, affinityFew, length),
	}, func(file string) error { return shipped.profile(s.Context(), own, medium, affinityFew, file) }, nil
}

// promptsOf returns chat completions with bodies of the given size. Prompts of a group share the first three quarters.
func promptsOf(size int) loadgen.Template {
	var groups [affinityGroups][]byte
	for i := range groups {
		groups[i] = []byte(proxyBody(size))
		copy(groups[i][bytes.Index(groups[i], []byte("weir ")):], fmt.Sprintf("%05d", i))
	}
	body := func(i int) []byte {
		own := slices.Clone(groups[i%affinityGroups])
		copy(own[size*3/4:], fmt.Sprintf("%09d", i))
		return own
	}
	return loadgen.Template{Path: proxyPath, Header: proxyHeader(false), Body: body}
}

// writeAffinity writes the Markdown table and the targets, and reports whether they are met.
func writeAffinity(w io.Writer, options benchOptions, all *loadgen.Comparison) bool {
	writeMedians(w, options, all, figureRate, figureP50, figureEnvoy, figureProcessor)
	_, _ = fmt.Fprint(w, "\nProcessor time of epp, in pairs (lowest to highest):\n\n")
	core := all.Of(affinityLarge, figureProcessor).Median * affinityRate / 1e6
	return writeTargets(w, []target{
		ratioTarget(all, "1 KB, over the no-op", affinitySmall, affinityNoop, figureProcessor, 1.05),
		ratioTarget(all, "220 KB, over affinity: off", affinityWith, affinityWithout, figureProcessor, 1.25),
		{
			fmt.Sprintf("%d/s of 400 KB", affinityRate), fmt.Sprintf("at most %.2f cores", affinityCore),
			fmt.Sprintf("%.3f cores", core), core <= affinityCore,
		},
	})
}
