package main

import (
	"fmt"
	"io"
	"time"

	"github.com/weir-epp/weir/internal/loadgen"
)

// The scenes' names in table and picture.
const (
	sceneWithout = "Envoy alone"
	sceneWith    = "Envoy with Weir"
)

// demoReport is what both scenes measured.
type demoReport struct {
	without, with *loadgen.Report
	noisyFrom     time.Duration
}

// write writes the table, and what it says in a sentence.
func (r demoReport) write(w io.Writer) error {
	without, with := loadgen.Summarise(sceneWithout, r.without), loadgen.Summarise(sceneWith, r.with)
	_, _ = fmt.Fprintln(w)
	if err := loadgen.WriteTable(w, without, with); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(w, "\n%s\n", verdict(without, with))
	return nil
}

// verdict compares the two scenes in a sentence.
func verdict(without, with loadgen.Summary) string {
	before, _ := without.Tenant(quietTenant)
	after, _ := with.Tenant(quietTenant)
	if before.OK == 0 || after.OK == 0 || without.All.Throughput == 0 {
		return "Too short a run to compare."
	}
	text := fmt.Sprintf(
		"While the noisy tenant floods, the quiet one's median time to first token is %s without Weir and %s with it (%.0f times less),",
		latency(before.TTFT.P50), latency(after.TTFT.P50), float64(before.TTFT.P50)/float64(after.TTFT.P50))
	return text + fmt.Sprintf("\nat %.0f %% of the throughput.", 100*with.All.Throughput/without.All.Throughput)
}

// latency is a time as a reader wants it: 41 ms, 1.91 s.
func latency(d time.Duration) string {
	if d >= time.Second {
		return fmt.Sprintf("%.2f s", d.Seconds())
	}
	return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
}

// figure is the picture.
func (r demoReport) figure() *loadgen.Figure {
	title := "A noisy tenant, contained"
	without, with := loadgen.Summarise(sceneWithout, r.without), loadgen.Summarise(sceneWith, r.with)
	before, _ := without.Tenant(quietTenant)
	after, _ := with.Tenant(quietTenant)
	if before.OK > 0 && after.OK > 0 {
		title += fmt.Sprintf(": the quiet one waits %s instead of %s", latency(after.TTFT.P50), latency(before.TTFT.P50))
	}
	return &loadgen.Figure{
		Title: title,
		Subtitle: fmt.Sprintf("%d model servers with %d batch slots each · noisy keeps %d requests in flight · quiet sends %g per second",
			demoServers, demoSlots, noisyWorkers, quietRate),
		Panels: []loadgen.Panel{
			{Title: sceneWithout, Report: r.without},
			{Title: sceneWith, Report: r.with},
		},
		Spans: []loadgen.Span{{Label: "noisy floods", From: r.noisyFrom, To: max(r.without.Length, r.with.Length)}},
	}
}
