package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"strings"

	"github.com/weir-epp/weir/internal/loadgen"
)

// tolerance is how much more than the no-op Weir may take, headers only.
const tolerance = 1.10

// writeProxy writes the Markdown tables, one comparison for each concurrency, and says whether the target is met.
func writeProxy(w io.Writer, options proxyOptions, all []*loadgen.Comparison) bool {
	_, _ = fmt.Fprintf(w, "Through Envoy with 1 worker thread; %d CPUs, load average %s at the end; medians of %d rounds of %v.\n\n",
		runtime.NumCPU(), loadAverage(), options.rounds, options.length)
	columns := []string{figureRate, figureP50, figureP99, figureEnvoy, figureProcessor, figureModels, figureClient}
	markdownRow(w, append([]string{"in flight", "scenario"}, columns...)...)
	markdownRule(w, 2, len(columns))
	for i, c := range options.concurrency {
		for _, scenario := range all[i].Scenarios {
			cells := []string{fmt.Sprint(c), scenario}
			for _, figure := range columns {
				cells = append(cells, cell(all[i].Of(scenario, figure).Median, figure))
			}
			markdownRow(w, cells...)
		}
	}

	met := true
	for i, c := range options.concurrency {
		for _, figure := range []string{figureProcessor, figureP50} {
			if c > 1 && all[i].Ratio(proxyHeaders, proxyNoop, figure).Median > tolerance {
				met = false
			}
		}
	}
	for _, pair := range [][2]string{{proxyHeaders, proxyNoop}, {proxyHeaders, proxyHeadersBare}, {proxyLarge, proxyLargeBare}} {
		writeRatios(w, options, all, pair[0], pair[1])
	}
	verdict := "met"
	if !met {
		verdict = "MISSED"
	}
	_, _ = fmt.Fprintf(w, "\nTarget: processor time and median latency at most %.2f times the no-op's where more than 1 is in flight: %s.\n",
		tolerance, verdict)
	return met
}

// writeRatios writes a table of one scenario's figures over another's, in the same round.
func writeRatios(w io.Writer, options proxyOptions, all []*loadgen.Comparison, one, other string) {
	_, _ = fmt.Fprintf(w, "\n%s over %s, in pairs (lowest to highest):\n\n", one, other)
	compared := []string{figureProcessor, figureEnvoy, figureBoth, figureP50, figureP99, figureRate}
	markdownRow(w, append([]string{"in flight"}, compared...)...)
	markdownRule(w, 1, len(compared))
	for i, c := range options.concurrency {
		cells := []string{fmt.Sprint(c)}
		for _, figure := range compared {
			ratio := all[i].Ratio(one, other, figure)
			cells = append(cells, fmt.Sprintf("%.2f (%.2f to %.2f)", ratio.Median, ratio.Min, ratio.Max))
		}
		markdownRow(w, cells...)
	}
}

// cell is a figure with three significant digits, and a dash where nothing was measured.
func cell(value float64, figure string) string {
	switch {
	case math.IsNaN(value):
		return "–"
	case figure == figureRate || value >= 100:
		return fmt.Sprintf("%.0f", value)
	default:
		return fmt.Sprintf("%.3g", value)
	}
}

func markdownRow(w io.Writer, cells ...string) {
	_, _ = fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | "))
}

// markdownRule has so many columns to the left, and so many, numbers, to the right.
func markdownRule(w io.Writer, left, right int) {
	_, _ = fmt.Fprintln(w, "|"+strings.Repeat("---|", left)+strings.Repeat("---:|", right))
}

// loadAverage is how busy the machine was in the last minute, or "unknown".
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
