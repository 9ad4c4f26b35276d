package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/weir-epp/weir/internal/loadgen"
	"github.com/weir-epp/weir/internal/shown"
	"github.com/weir-epp/weir/internal/simulate"
)

// loadReport is the result of a load.
type loadReport struct {
	// Seconds is the time from the first request to the end of the last answer.
	Seconds float64    `json:"seconds"`
	All     loadOf     `json:"all"`
	Flows   []loadFlow `json:"flows"`
	// Left is the number of requests not sent because the run was interrupted.
	Left int `json:"left"`
}

type loadFlow struct {
	Flow string `json:"flow"`
	loadOf
}

// loadOf is the result of some requests. Times are in seconds.
type loadOf struct {
	Requests int `json:"requests"`
	Answered int `json:"answered"`
	// Errors counts the failed requests by status, reason and fault.
	Errors map[string]int `json:"errors,omitempty"`
	// Wait is the time to the headers of the answer, which a queue holds back, and TTFT the time to its first token.
	Wait  simulate.Times `json:"wait"`
	TTFT  simulate.Times `json:"ttft"`
	Total simulate.Times `json:"total"`
	// PromptTokens, CachedTokens and OutputTokens are sums of the answers' usage.
	PromptTokens int64 `json:"promptTokens"`
	CachedTokens int64 `json:"cachedTokens"`
	OutputTokens int64 `json:"outputTokens"`
	// WithoutUsage is the number of answers without usage.
	WithoutUsage int `json:"withoutUsage"`

	wait, ttft, total []time.Duration
}

// mostLoadFlows is the number of flows shown one by one in a report.
const mostLoadFlows = 1000

// loadFigures returns the results of the sent requests.
func loadFigures(requests []simulate.Request, report *loadgen.Report) *loadReport {
	var all loadReport
	flows := map[string]*loadOf{}
	var order []string
	var last time.Duration
	results := report.Tracks[0].Results
	for i := range results {
		r := &results[i]
		name := requests[i].Flow
		if flows[name] == nil {
			if len(order) >= mostLoadFlows {
				name = "other flows"
			}
			if flows[name] == nil {
				flows[name] = &loadOf{}
				order = append(order, name)
			}
		}
		flows[name].add(r)
		all.All.add(r)
		last = max(last, r.Start+r.Total)
	}
	all.Seconds = last.Seconds()
	all.All.end()
	for _, name := range order {
		flows[name].end()
		all.Flows = append(all.Flows, loadFlow{name, *flows[name]})
	}
	return &all
}

func (l *loadOf) add(r *loadgen.Result) {
	l.Requests++
	if !r.OK() {
		if l.Errors == nil {
			l.Errors = map[string]int{}
		}
		l.Errors[loadgen.Outcome{Status: r.Status, Reason: r.Reason, Fault: r.Fault()}.String()]++
		return
	}
	l.Answered++
	l.wait, l.ttft, l.total = append(l.wait, r.Headers), append(l.ttft, r.TTFT()), append(l.total, r.Total)
	if !r.UsageKnown {
		l.WithoutUsage++
		return
	}
	l.PromptTokens += r.Usage.Input
	l.CachedTokens += r.Usage.Cached
	l.OutputTokens += r.Usage.Output
}

// end reduces the times to figures.
func (l *loadOf) end() {
	for _, t := range []struct {
		values []time.Duration
		to     *simulate.Times
	}{{l.wait, &l.Wait}, {l.ttft, &l.TTFT}, {l.total, &l.Total}} {
		d := loadgen.Distribute(t.values)
		*t.to = simulate.Times{
			Mean: d.Mean.Seconds(), P50: d.P50.Seconds(), P95: d.P95.Seconds(), P99: d.P99.Seconds(), Max: d.Max.Seconds(),
		}
	}
}

// mostLoadRows is the number of flows shown in a table.
const mostLoadRows = 12

// writeTable writes a line for all, one for each flow if there are several, and one for each kind of error.
func (r *loadReport) writeTable(w io.Writer) error {
	t := shown.Table(table.Row{
		"flow", "requests", "answered", "errors", "wait", "TTFT", "TTFT p50", "TTFT p99", "hit %", "output tokens/s",
	}, 2)
	row := func(flow string, l *loadOf) {
		hits := "-"
		if l.PromptTokens > 0 {
			hits = strconv.FormatFloat(100*float64(l.CachedTokens)/float64(l.PromptTokens), 'f', 1, 64)
		}
		t.AppendRow(table.Row{
			flow, l.Requests, l.Answered, l.Requests - l.Answered, seconds(l.Wait.Mean), seconds(l.TTFT.Mean), seconds(l.TTFT.P50),
			seconds(l.TTFT.P99), hits, strconv.FormatFloat(float64(l.OutputTokens)/max(r.Seconds, 1e-9), 'f', 0, 64),
		})
	}
	row("all", &r.All)
	if len(r.Flows) > 1 {
		for i := range r.Flows[:min(mostLoadRows, len(r.Flows))] {
			row(r.Flows[i].Flow, &r.Flows[i].loadOf)
		}
		if more := len(r.Flows) - mostLoadRows; more > 0 {
			t.AppendRow(table.Row{fmt.Sprintf("and %d more", more)})
		}
	}
	var text strings.Builder
	text.WriteString(t.Render() + "\n")
	for _, kind := range slices.Sorted(maps.Keys(r.All.Errors)) {
		_, _ = fmt.Fprintf(&text, "%s: %d\n", kind, r.All.Errors[kind])
	}
	if r.All.WithoutUsage > 0 {
		_, _ = fmt.Fprintf(&text, "%d answers without usage\n", r.All.WithoutUsage)
	}
	if r.Left > 0 {
		_, _ = fmt.Fprintf(&text, "interrupted: %d requests were not sent\n", r.Left)
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// seconds returns a time as text.
func seconds(s float64) string { return shown.Duration(time.Duration(s * float64(time.Second))) }
