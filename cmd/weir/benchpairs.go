package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/pflag"

	"github.com/weir-epp/weir/internal/arguments"
	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/loadgen"
	"github.com/weir-epp/weir/internal/scene"
)

// benchOptions are the flags of the benchmarks that compare scenarios in rounds.
type benchOptions struct {
	epp         string
	rounds      int
	length      time.Duration
	concurrency []int
	quick       bool
	profile     string
	assert      bool
}

// flags adds the common flags of these benchmarks. scenario is the one to profile.
func (o *benchOptions) flags(set *pflag.FlagSet, scenario string) {
	set.IntVar(&o.rounds, "rounds", 9, "rounds, 1 to 1000; fewer than 5 say little")
	set.DurationVar(&o.length, "length", 1500*time.Millisecond, "time of one scenario in one round, 100ms to 1m")
	set.StringVar(&o.profile, "cpu-profile", "", "`file` for a CPU profile of epp, from a further run "+scenario)
	set.BoolVar(&o.assert, "assert", false, "exit with 1 if a target is missed")
	set.StringVar(&o.epp, "epp", "", eppFlag)
}

func (o *benchOptions) validate() error {
	var ps arguments.Problems
	arguments.Within(&ps, "rounds", o.rounds, 1, 1000)
	arguments.Within(&ps, "length", o.length, 100*time.Millisecond, time.Minute)
	if len(o.concurrency) == 0 {
		ps.Add("concurrency", "needs a number")
	}
	for i, c := range o.concurrency {
		if c < 1 || c > maxConcurrency || slices.Contains(o.concurrency[:i], c) {
			ps.Add("concurrency", "%d: must be from 1 to %d, and each once", c, maxConcurrency)
		}
	}
	return ps.Err()
}

// benchmark runs a benchmark on a stage. It returns the command's exit code; with assert it is 1 if a target was
// missed.
func benchmark(name string, assert bool, stderr io.Writer, measure func(*scene.Scene) (met bool, err error)) int {
	met := false
	code := onStage("bench "+name, stderr, func(s *scene.Scene) (err error) {
		met, err = measure(s)
		return err
	})
	if assert && !met {
		return cmp.Or(code, 1)
	}
	return code
}

// compare runs each scenario once without counting it, to fill connection pools, caches and indexes, and then all in
// turn.
func compare(ctx context.Context, rounds int, scenarios []loadgen.Scenario, progress loadgen.Progress) (*loadgen.Comparison, error) {
	for _, scenario := range scenarios {
		if _, err := scenario.Run(ctx, 0); err != nil {
			return nil, err
		}
	}
	return loadgen.Interleave(ctx, rounds, scenarios, progress)
}

// comparePlain compares one list of scenarios, and then records a requested profile.
func comparePlain(
	s *scene.Scene, name string, options benchOptions, stderr io.Writer, scenarios []loadgen.Scenario, profile func(file string) error,
) (*loadgen.Comparison, error) {
	bar := newProgress(stderr, 1)
	defer bar.end()
	all, err := compare(s.Context(), options.rounds, scenarios, bar.begin(name))
	if err == nil && options.profile != "" {
		err = profile(options.profile)
	}
	return all, err
}

// scenario measures requests through an Envoy with this processor, with a number of requests in flight.
func (l *load) scenario(
	name string, envoy *envoyrun.Envoy, processor *scene.Process, request loadgen.Template, inFlight int, length time.Duration,
) loadgen.Scenario {
	return loadgen.Scenario{Name: name, Run: func(ctx context.Context, _ int) (loadgen.Figures, error) {
		return l.measure(ctx, envoy, processor, request, inFlight, length)
	}}
}

// addMedians adds a row for each scenario: the label's cells, the scenario's name, and the medians of its figures.
func addMedians(figures table.Writer, comparison *loadgen.Comparison, columns []string, label ...any) {
	for _, scenario := range comparison.Scenarios {
		cells := append(slices.Clone(table.Row(label)), scenario)
		for _, figure := range columns {
			cells = append(cells, cell(comparison.Of(scenario, figure).Median, figure))
		}
		figures.AppendRow(cells)
	}
}

// writeMedians writes the conditions and a Markdown table of the medians.
func writeMedians(w io.Writer, options benchOptions, all *loadgen.Comparison, columns ...string) {
	writeSetting(w, options.rounds, options.length)
	figures := newFigures([]string{"scenario"}, columns)
	addMedians(figures, all, columns)
	_, _ = fmt.Fprintln(w, figures.RenderMarkdown())
}

// atMost reports whether a ratio, rounded to its two shown decimals, is within its target.
func atMost(ratio loadgen.Spread, most float64) bool { return math.Round(ratio.Median*100)/100 <= most }

// ratioTarget is the target of one scenario's figure over another's.
func ratioTarget(all *loadgen.Comparison, what, one, other, figure string, most float64) target {
	ratio := all.Ratio(one, other, figure)
	return target{what, fmt.Sprintf("at most %.2f", most), ratioCell(ratio), atMost(ratio, most)}
}
