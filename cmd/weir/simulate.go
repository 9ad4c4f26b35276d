package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/weir-epp/weir/internal/arguments"
	"github.com/weir-epp/weir/internal/config"
	"github.com/weir-epp/weir/internal/printable"
	"github.com/weir-epp/weir/internal/simulate"
	"github.com/weir-epp/weir/pkg/extproc"
)

const simulateAbout = `weir simulate runs a workload with several configurations of epp and simulated engines, in virtual time, and compares the
results. The workload is a file of clients (--workload) or a trace of requests (--trace): JSON lines in Mooncake's format, with
timestamp (ms), input_length, output_length and hash_ids, or with arrival (s), flow, tier, input, output and max_output; or CSV
with the latter as its header. The same seed gives the same result.

With --recording, the requests come from a recording of epp. The result has the waits and shares by flow, as recorded and as
predicted for each --config, after the error of the prediction; without --config, as recorded only. A decision that the recorded
configuration does not reproduce is an error.
`

// simulateOptions are the flags of `weir simulate`.
type simulateOptions struct {
	workload, trace string
	configs         []string
	profiles        []string
	engines         int
	slots           int
	kvTokens        int
	block           int
	seed            uint64
	seeds           int
	firstTokens     bool
	peers           bool
	speed           float64
	repeat          int
	requests        int
	flow            string
	estimates       []string
	service         bool
	json            bool
	plots           string
	recording       string
	clients         string
	flows           int
	output          string
	record          string

	set *pflag.FlagSet
}

// runSimulate is `weir simulate`.
func runSimulate(args []string, stdout, stderr io.Writer) int {
	var o simulateOptions
	set := flagSet("weir simulate")
	o.set = set
	set.StringVar(&o.workload, "workload", "", "`file` of clients, a YAML (docs/simulate.md)")
	set.StringVar(&o.trace, "trace", "", "`file` of requests, instead of --workload")
	set.StringVar(&o.recording, "recording", "", "`file` of an epp's recording, or http://HOST:PORT of its debug port, or - for standard input; instead of --workload")
	set.StringArrayVar(&o.configs, "config", nil, "`file` with a configuration of epp; may be repeated, for a result of each")
	set.StringArrayVar(&o.profiles, "profile", nil, "name of a `profile` to simulate unchanged; may be repeated (default recommended, without --config)")
	set.IntVar(&o.engines, "engines", 8, "number of engines; a workload file may describe its own")
	set.IntVar(&o.slots, "slots", 64, "sequences that an engine runs at once (vLLM's --max-num-seqs)")
	set.IntVar(&o.kvTokens, "kv-tokens", 600_000, "tokens that fit the KV cache of an engine")
	set.IntVar(&o.block, "block-tokens", simulate.DefaultBlock, "tokens in a block of the KV cache, and of a trace's hash_ids")
	set.Uint64Var(&o.seed, "seed", 1, "seed of arrivals, lengths and ties")
	set.IntVar(&o.seeds, "seeds", 1, "number of runs of each configuration, with consecutive seeds from --seed on; the result has medians")
	set.BoolVar(&o.firstTokens, "first-tokens", false, "Weir sees first tokens, as with the first-token gate")
	set.BoolVar(&o.peers, "peers", false, "also simulate other routers, by their published formulas, without a queue")
	set.Float64Var(&o.speed, "speed", 1, "factor by which the requests of a trace arrive faster, 0.001 to 1000")
	set.IntVar(&o.repeat, "repeat", 1, "number of times to play a trace, each time with other prefixes")
	set.IntVar(&o.requests, "requests", 0, "number of requests after which a trace ends; 0: all")
	set.StringVar(&o.flow, "flow", "trace", "flow of the requests in a trace without a flow")
	set.StringSliceVar(&o.estimates, "estimates", []string{"learned"}, "charges of requests before their end, in tokens: learned as by epp, "+
		"exact, within-50%, streamed or late; with several values, a result for each (docs/fairness.md)")
	set.BoolVar(&o.service, "service", false, "print how evenly flows were served, instead of waits and hits; with --workload")
	set.BoolVar(&o.json, "json", false, "print the whole result as JSON, instead of a table")
	set.StringVar(&o.plots, "plots", "", "`file` for a picture of the run over time, an .svg: service by flow, waits, TTFT, hits, engines")
	set.StringVar(&o.clients, "clients", string(simulate.ClientsAuto), "with --recording: closed, if each client sends a request when the one before has ended; "+
		"open, if all arrive when they did; auto, by the look of each flow")
	set.IntVar(&o.flows, "flows", 20, "with --recording: number of flows to show, those with the largest changes; the rest are summed as other")
	set.StringVarP(&o.output, "output", "o", "text", "with --recording: `format`, text or json")
	set.StringVar(&o.record, "record", "", "`file` for a recording of the run, with one configuration, for weir explain and --recording")
	if code, ok := readFlags(set, simulateAbout, args, o.check, stdout, stderr); !ok {
		return code
	}
	run := o.run
	if o.recording != "" {
		run = o.runRecording
	}
	if err := run(stdout, stderr); err != nil {
		_, _ = fmt.Fprintf(stderr, "weir simulate: %v\n", err)
		return 1
	}
	return 0
}

// check reports every flag out of its range or without effect.
func (o *simulateOptions) check() error {
	var ps arguments.Problems
	sources := 0
	for _, name := range []string{o.workload, o.trace, o.recording} {
		if name != "" {
			sources++
		}
	}
	switch {
	case sources == 0:
		ps.Add("workload", "missing: name a file of clients here, or a --trace, or a --recording")
	case sources > 1:
		ps.Add("workload", "there is more than one of --workload, --trace and --recording; use one")
	}
	without := func(source string, flags ...string) {
		for _, name := range flags {
			if o.set.Changed(name) {
				ps.Add(name, "has no use without %s", source)
			}
		}
	}
	arguments.Within(&ps, "engines", o.engines, 1, 4096)
	arguments.Within(&ps, "slots", o.slots, 1, 1<<20)
	arguments.Within(&ps, "kv-tokens", o.kvTokens, 1, 1<<40)
	arguments.Within(&ps, "block-tokens", o.block, 1, 1<<16)
	arguments.Within(&ps, "seeds", o.seeds, 1, 1000)
	arguments.Within(&ps, "repeat", o.repeat, 1, 1_000_000)
	arguments.Within(&ps, "requests", o.requests, 0, 1<<40)
	arguments.Within(&ps, "speed", o.speed, 0.001, 1000)
	if o.trace == "" {
		without("--trace", "speed", "repeat", "requests", "flow")
	}
	if o.recording == "" {
		without("--recording", "clients", "flows", "output")
	} else {
		without("--workload or --trace", "engines", "slots", "kv-tokens", "block-tokens", "first-tokens", "peers", "record", "seeds", "estimates")
	}
	o.checkComparison(&ps)
	for _, text := range o.estimates {
		if _, err := simulate.ParseEstimates(text); err != nil {
			ps.Add("estimates", "%s: %v", text, err)
		}
	}
	if o.workload == "" && o.service {
		ps.Add("service", "has no use without --workload")
	}
	configs := (len(o.configs) + len(o.profiles)) * len(o.estimates)
	if o.peers {
		configs += len(simulate.Peers)
	}
	if o.record != "" && configs > 1 {
		ps.Add("record", "%d configurations: only one can be recorded", configs)
	}
	if o.record != "" && o.seeds > 1 {
		ps.Add("record", "has no use with several --seeds")
	}
	if o.recording != "" {
		configs++ // that of the recording
	}
	if o.plots != "" {
		if configs > simulate.MostPictured {
			ps.Add("plots", "%d configurations: a picture has room for %d", configs, simulate.MostPictured)
		}
		if name, ok := strings.CutSuffix(o.plots, ".svg"); !ok {
			ps.Add("plots", "%s: must end in .svg", o.plots)
		} else if err := checkWritable([]string{name}, false); err != nil {
			ps = append(ps, fmt.Errorf("--plots: %w", err))
		}
	}
	if o.workload != "" && o.set.Changed("block-tokens") {
		ps.Add("block-tokens", "has no use with --workload, which has the key blockTokens")
	}
	return ps.Err()
}

// run simulates each configuration, and prints the result.
func (o *simulateOptions) run(stdout, stderr io.Writer) error {
	runs, workload, err := o.inputs()
	if err != nil {
		return err
	}
	bar := newProgress(stderr, 1)
	var show func(int, int)
	if bar.bar != nil {
		show = bar.begin("simulating")
	}
	reports, err := o.simulateAll(runs, workload, show)
	bar.end()
	if err != nil {
		return err
	}
	if o.record != "" {
		if err := os.WriteFile(o.record, reports[0].Recording, 0o644); err != nil {
			return err
		}
	}
	if err := o.draw(reports); err != nil {
		return err
	}
	if o.service {
		return o.print(stdout, reports, simulate.WriteServiceTable)
	}
	return o.print(stdout, reports, simulate.WriteTable)
}

// print prints the result: everything as JSON, or a table.
func (o *simulateOptions) print(
	stdout io.Writer, reports []*simulate.Report, table func(io.Writer, []*simulate.Report) error,
) error {
	if !o.json {
		return table(stdout, reports)
	}
	return printable.WriteJSON(stdout, reports)
}

// draw draws the picture of --plots.
func (o *simulateOptions) draw(reports []*simulate.Report) error {
	if o.plots == "" {
		return nil
	}
	var drawn bytes.Buffer
	if err := simulate.WriteSVG(&drawn, filepath.Base(o.workload+o.trace+o.recording), reports); err != nil {
		return err
	}
	return os.WriteFile(o.plots, drawn.Bytes(), 0o644)
}

// configurations reads the configurations and lists their problems.
func (o *simulateOptions) configurations() (runs []simulate.Options, problems []error) {
	add := func(name string, source config.Source) {
		d, err := config.Load(source)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", name, err))
		}
		runs = append(runs, simulate.Options{
			Name: name, Config: d, Seed: o.seed, FirstTokens: o.firstTokens, Record: o.record != "",
		})
	}
	for _, file := range o.configs {
		text, err := readInput(file)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		add(strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)), config.Source{Text: text})
	}
	for _, profile := range o.profiles {
		add(profile, config.Source{Profile: profile})
	}
	return runs, problems
}

// inputs reads the configurations and the workload. Its error lists all their problems.
func (o *simulateOptions) inputs() (runs []simulate.Options, workload *simulate.Workload, err error) {
	if len(o.configs)+len(o.profiles) == 0 {
		o.profiles = []string{config.DefaultProfile}
	}
	runs, problems := o.configurations()
	if runs, err = o.withPeers(runs); err != nil {
		problems = append(problems, err)
	}
	engines := o.pool()
	if o.workload != "" {
		text, err := readInput(o.workload)
		if err != nil {
			return nil, nil, errors.Join(append(problems, err)...)
		}
		w, err := simulate.DecodeWorkload(text)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", o.workload, err))
		}
		workload = &w
		o.block = w.Block()
		if engines = o.pool(); len(w.Engines) > 0 {
			engines = w.Pool()
			for _, flag := range []string{"engines", "slots", "kv-tokens"} {
				if o.set.Changed(flag) {
					problems = append(problems, fmt.Errorf("--%s: %s has engines of its own", flag, o.workload))
				}
			}
		}
	} else if _, err := os.Stat(o.trace); err != nil {
		problems = append(problems, err)
	}
	if o.service && workload != nil {
		if err := workload.CheckService(); err != nil {
			problems = append(problems, fmt.Errorf("%s: --service: %w", o.workload, err))
		}
	}
	for i := range runs {
		runs[i].Engines = engines
		if o.service && workload != nil {
			runs[i].Service = workload.Duration.Std()
		}
		if workload != nil {
			runs[i].Weights = workload.Weights()
			if err := workload.CheckTiers(&runs[i].Config); err != nil && len(problems) == 0 {
				problems = append(problems, fmt.Errorf("%s: with %s: %w", o.workload, runs[i].Name, err))
			}
		}
	}
	return o.withEstimates(runs), workload, errors.Join(problems...)
}

// withEstimates returns each run with each of the estimates. Without costs in tokens there is nothing to estimate.
func (o *simulateOptions) withEstimates(runs []simulate.Options) (all []simulate.Options) {
	for _, run := range runs {
		for i, text := range o.estimates {
			one := run
			one.Estimates, _ = simulate.ParseEstimates(text) // checked
			if run.Config.Cost != string(extproc.CostTokens) {
				if i > 0 {
					break
				}
				one.Estimates = simulate.Estimates{}
			} else if len(o.estimates) > 1 {
				one.Name += ", " + text
			}
			all = append(all, one)
		}
	}
	return all
}

// peersConfig is the configuration for other routers' choices of engines.
const peersConfig = `profile: recommended
requestQueueController: { enabled: false, slotsPerBackend: 64 }
scheduling: { affinity: off }
`

// withPeers adds the other routers to the runs.
func (o *simulateOptions) withPeers(runs []simulate.Options) ([]simulate.Options, error) {
	if !o.peers {
		return runs, nil
	}
	without, err := config.Load(config.Source{Text: []byte(peersConfig)})
	for i := range simulate.Peers {
		peer := &simulate.Peers[i]
		runs = append(runs, simulate.Options{Name: peer.Name, Config: without, Peer: peer, Seed: o.seed, FirstTokens: o.firstTokens})
	}
	return runs, err
}

// pool returns the engines of the flags.
func (o *simulateOptions) pool() []simulate.Engines {
	e := simulate.DefaultEngines(o.engines, o.block)
	e.Engine.Slots, e.Engine.Blocks = o.slots, max(1, o.kvTokens/o.block)
	return []simulate.Engines{e}
}

// simulateAll runs the simulations, one per CPU at a time, each with all seeds.
func (o *simulateOptions) simulateAll(
	runs []simulate.Options, workload *simulate.Workload, show func(done, total int),
) ([]*simulate.Report, error) {
	if o.seeds > 1 {
		return o.simulateSeeds(runs, workload, show)
	}
	reports := make([]*simulate.Report, len(runs))
	var mu sync.Mutex // guards parts
	parts := make([]float64, len(runs))
	var all errgroup.Group
	all.SetLimit(runtime.GOMAXPROCS(0))
	for i := range runs {
		if show != nil {
			runs[i].Progress = func(part float64) {
				mu.Lock()
				defer mu.Unlock()
				parts[i] = part
				sum := 0.0
				for _, p := range parts {
					sum += p
				}
				show(int(sum/float64(len(parts))*partSteps), partSteps)
			}
		}
		all.Go(func() (err error) {
			source, done, err := o.source(workload, runs[i].Seed)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, done()) }()
			reports[i], err = simulate.Run(&runs[i], source)
			return err
		})
	}
	return reports, all.Wait()
}

// simulateSeeds runs each simulation with several seeds, and returns the median of each.
func (o *simulateOptions) simulateSeeds(
	runs []simulate.Options, workload *simulate.Workload, show func(done, total int),
) ([]*simulate.Report, error) {
	var all []simulate.Options
	for i := range runs {
		for n := range o.seeds {
			run := runs[i]
			run.Seed = o.seed + uint64(n)
			all = append(all, run)
		}
	}
	each := *o
	each.seeds = 1
	reports, err := each.simulateAll(all, workload, show)
	if err != nil {
		return nil, err
	}
	medians := make([]*simulate.Report, 0, len(runs))
	for one := range slices.Chunk(reports, o.seeds) {
		medians = append(medians, simulate.Median(one))
	}
	return medians, nil
}

// source returns the requests, from the first on.
func (o *simulateOptions) source(workload *simulate.Workload, seed uint64) (source simulate.Source, done func() error, err error) {
	if workload != nil {
		return workload.Requests(seed), func() error { return nil }, nil
	}
	info, err := os.Stat(o.trace)
	if err != nil {
		return nil, nil, err
	}
	trace := simulate.OpenTrace(o.trace, func() (io.ReadCloser, error) { return os.Open(o.trace) }, simulate.TraceOptions{
		Speed: o.speed, Flow: o.flow, Most: o.requests, Repeat: o.repeat, Block: o.block, Size: info.Size(),
	})
	return trace, trace.Close, nil
}
