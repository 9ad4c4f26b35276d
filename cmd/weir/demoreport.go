package main

import (
	"fmt"
	"io"
	"time"

	"github.com/weir-epp/weir/internal/loadgen"
)

// pair is two scenes with one difference, and the compared tenant.
type pair struct {
	steady        string
	without, with *demoScene
}

// demoReport holds the results of the scenes.
type demoReport struct {
	fairness, priority pair
	preempted          int // bulk requests
	length             time.Duration
}

// write writes the table, and a sentence about each pair.
func (r *demoReport) write(w io.Writer) error {
	var summaries []loadgen.Summary
	for _, p := range []pair{r.fairness, r.priority} {
		without, with := p.summaries()
		summaries = append(summaries, without, with)
	}
	_, _ = fmt.Fprintln(w)
	if err := loadgen.WriteTable(w, summaries...); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(w, "\n%s\n\n%s\n%s\n%s\n\n",
		r.fairness.verdict("While the noisy tenant floods, the quiet one's", "Weir"),
		r.priority.verdict("While bulk work floods, the interactive requests'", "priority"), r.price(), r.preemptions())
	return nil
}

// price states the extra time of bulk requests with priority, at their p95, since the slowest ones gave way.
func (r *demoReport) price() string {
	without, with := r.priority.summaries()
	before, _ := without.Tenant(bulkTenant)
	after, _ := with.Tenant(bulkTenant)
	if before.OK == 0 || after.OK == 0 {
		return "The price for the bulk requests is unknown: the run was too short."
	}
	return fmt.Sprintf("The price: the bulk requests' p95 time to first token is %s without priority and %s with it (%.1f times as long).",
		latency(before.TTFT.P95), latency(after.TTFT.P95), float64(after.TTFT.P95)/float64(before.TTFT.P95))
}

// preemptions states the number of attempts of bulk requests that were preempted.
func (r *demoReport) preemptions() string {
	_, with := r.priority.summaries()
	bulk, _ := with.Tenant(bulkTenant)
	return fmt.Sprintf("%d times a bulk request was preempted before its first token; the clients retried, and %d of %d were served.",
		r.preempted, bulk.OK, bulk.Requests)
}

func (p pair) summaries() (without, with loadgen.Summary) {
	return loadgen.Summarise(p.without.name, p.without.report), loadgen.Summarise(p.with.name, p.with.report)
}

// medians returns the steady tenant's median times to first token; ok is false if it had no answers.
func (p pair) medians() (without, with time.Duration, ok bool) {
	first, second := p.summaries()
	before, _ := first.Tenant(p.steady)
	after, _ := second.Tenant(p.steady)
	return before.TTFT.P50, after.TTFT.P50, before.OK > 0 && after.OK > 0
}

// verdict compares the two scenes in a sentence.
func (p pair) verdict(whose, what string) string {
	before, after, ok := p.medians()
	if !ok {
		return whose + " medians cannot be compared: the run was too short."
	}
	compared := fmt.Sprintf("%.0f times less", float64(before)/float64(after))
	if after >= before {
		compared = "no less; was the machine busy?"
	}
	text := fmt.Sprintf("%s median time to first token is %s without %s and %s with it (%s)",
		whose, latency(before), what, latency(after), compared)
	if without, with := p.summaries(); min(without.All.Throughput, with.All.Throughput) > 0 {
		text += fmt.Sprintf(",\nat %.0f %% of the throughput", 100*with.All.Throughput/without.All.Throughput)
	}
	return text + "."
}

// latency formats a duration for readers: 41 ms, 1.91 s.
func latency(d time.Duration) string {
	if d >= time.Second {
		return fmt.Sprintf("%.2f s", d.Seconds())
	}
	return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
}

// figure returns a pair's picture, without its texts.
func (p pair) figure(floodLabel string, floodFrom time.Duration) *loadgen.Figure {
	return &loadgen.Figure{
		Panels: []loadgen.Panel{
			{Title: p.without.name, Report: p.without.report},
			{Title: p.with.name, Report: p.with.report},
		},
		Spans: []loadgen.Span{{
			Label: floodLabel, From: floodFrom, To: max(p.without.report.Length, p.with.report.Length),
		}},
	}
}

// fairnessFigure returns the picture of the noisy and the quiet tenant.
func (r *demoReport) fairnessFigure() *loadgen.Figure {
	f := r.fairness.figure("noisy floods", floodBegin(r.length))
	f.Title = "A noisy tenant, contained"
	if before, after, ok := r.fairness.medians(); ok {
		f.Title += fmt.Sprintf(": the quiet one waits %s instead of %s", latency(after), latency(before))
	}
	f.Subtitle = fmt.Sprintf("%d model servers with %d batch slots each · noisy keeps %d requests in flight · quiet sends %g per second",
		demoServers, demoSlots, noisyWorkers, quietRate)
	return f
}

// priorityFigure returns the picture of interactive and bulk requests.
func (r *demoReport) priorityFigure() *loadgen.Figure {
	f := r.priority.figure("bulk floods", floodBegin(r.length))
	f.Title = "Bulk work gives way"
	if before, after, ok := r.priority.medians(); ok {
		f.Title += fmt.Sprintf(": interactive requests wait %s instead of %s", latency(after), latency(before))
	}
	f.Subtitle = fmt.Sprintf("%d model servers with %d batch slots each · bulk keeps %d requests in flight · interactive sends %g per second · %d preemptions",
		demoServers, demoSlots, bulkWorkers, interactiveRate, r.preempted)
	return f
}
