package main

import (
	"fmt"
	"io"
	"time"

	"github.com/weir-epp/weir/internal/loadgen"
)

// target is a measured figure and its target.
type target struct {
	what, want, got string
	met             bool
}

// floodTargets returns the targets of the flood with Weir.
func floodTargets(with loadgen.Summary) []target {
	quiet, _ := with.Tenant(quietTenant)
	unserved := with.All.Rejected + with.All.Failed
	const throughput, median, p99 = 77, 220 * time.Millisecond, 300 * time.Millisecond
	ms := func(d time.Duration) string { return d.Round(100 * time.Microsecond).String() }
	return []target{
		{
			"throughput in all", fmt.Sprintf("at least %d/s", throughput), fmt.Sprintf("%.1f/s", with.All.Throughput),
			with.All.Throughput >= throughput,
		},
		{"quiet, median", fmt.Sprintf("at most %v", median), ms(quiet.Total.P50), quiet.OK > 0 && quiet.Total.P50 <= median},
		{"quiet, p99", fmt.Sprintf("at most %v", p99), ms(quiet.Total.P99), quiet.OK > 0 && quiet.Total.P99 <= p99},
		{"rejected or failed", "none", fmt.Sprint(unserved), unserved == 0},
	}
}

// writeTargets writes a line for each target and reports whether all are met.
func writeTargets(w io.Writer, targets []target) bool {
	all, width := true, 34
	for _, t := range targets {
		width = max(width, len(t.what))
	}
	for _, t := range targets {
		verdict := "met"
		if !t.met {
			verdict, all = "MISSED", false
		}
		_, _ = fmt.Fprintf(w, "%-*s %20s   target: %-20s %s\n", width, t.what, t.got, t.want, verdict)
	}
	return all
}
