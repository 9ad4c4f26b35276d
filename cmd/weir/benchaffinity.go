package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/loadgen"
	"github.com/weir-epp/weir/internal/scene"
)

const affinityAbout = `The price of the profile recommended as it is shipped, which reads each body to find the engine that has the beginning of its
prompt: processor time of epp per request, through Envoy with one worker thread. Requests of 1 KB beside a no-op, which
gets the same messages in the same modes; of 220 KB beside a Weir with scheduling.affinity: off that reads bodies too; and of 400 KB. The
prompts are of 16 groups, with three quarters of the text in common. The model servers answer at once. The ratios are medians
of each round's ratio.
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
	// affinityRate is the number of requests of 400 KB in a second that may take affinityCore of a processor.
	affinityRate, affinityCore = 10, 0.05
)

// shippedConfig is the profile recommended, with the tenants of the benchmarks.
var shippedConfig = fmt.Sprintf("profile: recommended\nflows: { key: [%q, model] }\n", "header:"+fairnessHeader)

// withoutAffinity reads bodies and does not compare prompts.
var withoutAffinity = shippedConfig + "scheduling: { affinity: off }\nrequestBody: always\n"

// runBenchAffinity is `weir bench affinity`.
func runBenchAffinity(args []string, stdout, stderr io.Writer) int {
	var options proxyOptions
	set := flagSet("weir bench affinity")
	set.IntVar(&options.rounds, "rounds", 9, "rounds, 1 to 1000; fewer than 5 say little")
	set.DurationVar(&options.length, "length", 1500*time.Millisecond, "time of one scenario in one round, 100ms to 1m")
	set.StringVar(&options.profile, "cpu-profile", "", "`file` for a CPU profile of epp, from a further run with 220 KB")
	set.BoolVar(&options.assert, "assert", false, "exit with 1 if a target is missed")
	set.StringVar(&options.epp, "epp", "", eppFlag)
	options.concurrency = []int{affinityInFlight}
	if code, ok := readFlags(set, affinityAbout, args, options.validate, stdout, stderr); !ok {
		return code
	}
	met := false
	code := onStage("bench affinity", stderr, func(s *scene.Scene) (err error) {
		met, err = benchAffinity(s, options, stdout, stderr)
		return err
	})
	if code == 0 && options.assert && !met {
		return 1
	}
	return code
}

// benchAffinity measures, writes the tables, and reports whether the targets are met.
func benchAffinity(s *scene.Scene, options proxyOptions, stdout, stderr io.Writer) (met bool, err error) {
	scenarios, profiled, err := affinityScenarios(s, options)
	if err != nil {
		return false, err
	}
	bar := newProgress(stderr, 1)
	defer bar.end()
	for _, scenario := range scenarios { // fills connection pools, caches and the index; not counted
		if _, err := scenario.Run(s.Context(), 0); err != nil {
			return false, err
		}
	}
	all, err := loadgen.Interleave(s.Context(), options.rounds, scenarios, bar.begin("affinity"))
	if err != nil {
		return false, err
	}
	bar.end()
	if options.profile != "" {
		if err := profiled(options.profile); err != nil {
			return false, err
		}
	}
	return writeAffinity(stdout, options, all), nil
}

// affinityScenarios starts everything. The function that it returns records a CPU profile of epp.
func affinityScenarios(s *scene.Scene, options proxyOptions) ([]loadgen.Scenario, func(string) error, error) {
	binary, err := scene.FindEPP(options.epp)
	if err != nil {
		return nil, nil, err
	}
	models, servers, err := startModels(s, "model-servers", proxyServers, modelServers{})
	if err != nil {
		return nil, nil, err
	}
	// before starts a Weir with an Envoy before it.
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
	one := func(name string, l *load, envoy *envoyrun.Envoy, processor *scene.Process, request loadgen.Template, inFlight int) loadgen.Scenario {
		return loadgen.Scenario{Name: name, Run: func(ctx context.Context, _ int) (loadgen.Figures, error) {
			return l.measure(ctx, envoy, processor, request, inFlight, options.length)
		}}
	}
	return []loadgen.Scenario{
		one(affinityNoop, shipped, idle.envoy, idle.process, small, affinityInFlight),
		one(affinitySmall, shipped, own, shipped.epp.Process, small, affinityInFlight),
		one(affinityWithout, without, plain, without.epp.Process, medium, affinityFew),
		one(affinityWith, shipped, own, shipped.epp.Process, medium, affinityFew),
		one(affinityLarge, shipped, own, shipped.epp.Process, large, affinityFew),
	}, func(file string) error { return shipped.profile(s.Context(), own, medium, affinityFew, file) }, nil
}

// promptsOf returns chat completions with bodies of the given size. Prompts of a group have the first three quarters in
// common.
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
func writeAffinity(w io.Writer, options proxyOptions, all *loadgen.Comparison) bool {
	writeSetting(w, options.rounds, options.length)
	columns := []string{figureRate, figureP50, figureEnvoy, figureProcessor}
	figures := newFigures([]string{"scenario"}, columns)
	for _, scenario := range all.Scenarios {
		cells := table.Row{scenario}
		for _, figure := range columns {
			cells = append(cells, cell(all.Of(scenario, figure).Median, figure))
		}
		figures.AppendRow(cells)
	}
	_, _ = fmt.Fprintf(w, "%s\n\nProcessor time of epp, in pairs (lowest to highest):\n\n", figures.RenderMarkdown())
	ratio := func(what, one, other string, most float64) target {
		r := all.Ratio(one, other, figureProcessor)
		return target{what, fmt.Sprintf("at most %.2f", most), ratioCell(r), r.Median <= most+0.005}
	}
	core := all.Of(affinityLarge, figureProcessor).Median * affinityRate / 1e6
	return writeTargets(w, []target{
		ratio("1 KB, over the no-op", affinitySmall, affinityNoop, 1.05),
		ratio("220 KB, over affinity: off", affinityWith, affinityWithout, 1.25),
		{
			fmt.Sprintf("%d/s of 400 KB", affinityRate), fmt.Sprintf("at most %.2f cores", affinityCore),
			fmt.Sprintf("%.3f cores", core), core <= affinityCore,
		},
	})
}
