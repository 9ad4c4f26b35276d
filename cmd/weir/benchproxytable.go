package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/weir-epp/weir/internal/loadgen"
)

// tolerance is how much more than the no-op Weir may take, headers only.
const tolerance = 1.10

// writeProxy writes the Markdown tables, one comparison for each concurrency, and reports whether the target is met.
func writeProxy(w io.Writer, options proxyOptions, all []*loadgen.Comparison) bool {
	writeSetting(w, options.rounds, options.length)
	columns := []string{figureRate, figureP50, figureP99, figureEnvoy, figureProcessor, figureModels, figureClient}
	figures := newFigures([]string{"in flight", "scenario"}, columns)
	for i, c := range options.concurrency {
		for _, scenario := range all[i].Scenarios {
			cells := table.Row{c, scenario}
			for _, figure := range columns {
				cells = append(cells, cell(all[i].Of(scenario, figure).Median, figure))
			}
			figures.AppendRow(cells)
		}
	}
	_, _ = fmt.Fprintln(w, figures.RenderMarkdown())

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

// writeSetting writes what the figures depend on.
func writeSetting(w io.Writer, rounds int, length time.Duration) {
	_, _ = fmt.Fprintf(w, "Through Envoy with 1 worker thread; %d CPUs, load average %s at the end; medians of %d rounds of %v.\n\n",
		runtime.NumCPU(), loadAverage(), rounds, length)
}

// writeRatios writes a table of one scenario's figures over another's, in the same round.
func writeRatios(w io.Writer, options proxyOptions, all []*loadgen.Comparison, one, other string) {
	_, _ = fmt.Fprintf(w, "\n%s over %s, in pairs (lowest to highest):\n\n", one, other)
	compared := []string{figureProcessor, figureEnvoy, figureBoth, figureP50, figureP99, figureRate}
	ratios := newFigures([]string{"in flight"}, compared)
	for i, c := range options.concurrency {
		cells := table.Row{c}
		for _, figure := range compared {
			ratio := all[i].Ratio(one, other, figure)
			cells = append(cells, fmt.Sprintf("%.2f (%.2f to %.2f)", ratio.Median, ratio.Min, ratio.Max))
		}
		ratios.AppendRow(cells)
	}
	_, _ = fmt.Fprintln(w, ratios.RenderMarkdown())
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

// newFigures returns a table with columns of words, to the left, and then of figures, to the right.
func newFigures(words, figures []string) table.Writer {
	t := table.NewWriter()
	var header table.Row
	var right []table.ColumnConfig
	for i, name := range slices.Concat(words, figures) {
		header = append(header, name)
		if i >= len(words) {
			right = append(right, table.ColumnConfig{Number: i + 1, Align: text.AlignRight})
		}
	}
	t.AppendHeader(header)
	t.SetColumnConfigs(right)
	return t
}

// loadAverage is how busy the machine was in the last minute, or "unknown".
func loadAverage() string {
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(load), " ")
	return first
}
