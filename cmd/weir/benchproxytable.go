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

// inStreams stands for the number of requests in flight in the comparison of streams.
const inStreams = 0

// proxyTargets are the largest ratios of Weir's figure to that of a no-op or of a Weir without recording, by the number of requests in flight.
var proxyTargets = []struct {
	one, other string
	inFlight   int
	figure     string
	most       float64
}{
	{proxyHeaders, proxyNoop, 1, figureProcessor, 1.20},
	{proxyHeaders, proxyNoop, 32, figureProcessor, 1.05},
	{proxyHeaders, proxyNoop, 32, figureP50, 1.10},
	{proxyHeaders, proxyOff, 32, figureProcessor, 1.03},
	{proxySmall, proxyNoopSmall, 32, figureProcessor, 1.05},
	{proxyLarge, proxyNoopLarge, 32, figureProcessor, 1.10},
	{proxyStream, proxyNoopStream, inStreams, figureChunk, 1.00},
}

// proxyPairs are the scenarios whose ratios are reported.
var proxyPairs = [][2]string{
	{proxyHeaders, proxyNoop},
	{proxyHeaders, proxyOff},
	{proxySmall, proxyNoopSmall},
	{proxyLarge, proxyNoopLarge},
	{proxyNoop, proxyUnseen},
	{proxyHeaders, proxyHeadersBare},
	{proxyLarge, proxyLargeBare},
}

// writeProxy writes the Markdown tables, one comparison for each number of requests in flight and one of the streams, and
// reports whether the targets are met.
func writeProxy(w io.Writer, options benchOptions, all map[int]*loadgen.Comparison) bool {
	writeSetting(w, options.rounds, options.length)
	columns := []string{
		figureRate, figureP50, figureP99, figureEnvoy, figureProcessor, figureBoth, figureModels, figureClient, figureChunk,
	}
	figures := newFigures([]string{"in flight", "scenario"}, columns)
	for _, c := range options.concurrency {
		addMedians(figures, all[c], columns, c)
	}
	addMedians(figures, all[inStreams], columns, fmt.Sprintf("%d streams", usageStreams))
	_, _ = fmt.Fprintln(w, figures.RenderMarkdown())
	for _, pair := range proxyPairs {
		writeRatios(w, options, all, pair[0], pair[1])
	}
	return writeProxyTargets(w, all)
}

// writeProxyTargets writes a table of the targets of the figures, and reports whether they are met.
func writeProxyTargets(w io.Writer, all map[int]*loadgen.Comparison) bool {
	met := true
	targets := newFigures([]string{"target", "figure", "in flight"}, []string{"ratio", "at most", "verdict"})
	for _, t := range proxyTargets {
		comparison := all[t.inFlight]
		if comparison == nil {
			continue
		}
		ratio := comparison.Ratio(t.one, t.other, t.figure)
		verdict := "met"
		if !atMost(ratio, t.most) {
			verdict, met = "MISSED", false
		}
		label := fmt.Sprint(t.inFlight)
		if t.inFlight == inStreams {
			label = fmt.Sprintf("%d streams", usageStreams)
		}
		targets.AppendRow(table.Row{t.one + " over " + t.other, t.figure, label, ratioCell(ratio), fmt.Sprintf("%.2f", t.most), verdict})
	}
	_, _ = fmt.Fprintf(w, "\nTargets, in pairs (lowest to highest):\n\n%s\n", targets.RenderMarkdown())
	return met
}

// ratioCell is a median with its range.
func ratioCell(ratio loadgen.Spread) string {
	return fmt.Sprintf("%.2f (%.2f to %.2f)", ratio.Median, ratio.Min, ratio.Max)
}

// writeSetting writes the conditions of the figures.
func writeSetting(w io.Writer, rounds int, length time.Duration) {
	_, _ = fmt.Fprintf(w, "Through Envoy with 1 worker thread; %d CPUs, load average %s at the end; medians of %d rounds of %v.\n\n",
		runtime.NumCPU(), loadAverage(), rounds, length)
}

// writeRatios writes a table of one scenario's figures over another's, in the same round.
func writeRatios(w io.Writer, options benchOptions, all map[int]*loadgen.Comparison, one, other string) {
	_, _ = fmt.Fprintf(w, "\n%s over %s, in pairs (lowest to highest):\n\n", one, other)
	compared := []string{figureProcessor, figureEnvoy, figureBoth, figureP50, figureP99, figureRate}
	ratios := newFigures([]string{"in flight"}, compared)
	for _, c := range options.concurrency {
		cells := table.Row{c}
		for _, figure := range compared {
			cells = append(cells, ratioCell(all[c].Ratio(one, other, figure)))
		}
		ratios.AppendRow(cells)
	}
	_, _ = fmt.Fprintln(w, ratios.RenderMarkdown())
}

// cell is a figure with three significant digits, or a dash if nothing was measured.
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

// newFigures returns a table with columns of words, aligned left, and then of figures, aligned right.
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

// loadAverage is the machine's load in the last minute, or "unknown".
func loadAverage() string {
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(load), " ")
	return first
}
