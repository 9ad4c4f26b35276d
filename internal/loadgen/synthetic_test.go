package loadgen

import (
	"math/rand/v2"
	"time"
)

// syntheticReport returns a report of an imaginary run: a quiet tenant with 2 requests per second, and a noisy one with
// 64 workers from 5 s to 25 s of 30 s. held bounds the noisy tenant.
func syntheticReport(held bool) *Report {
	random := rand.New(rand.NewPCG(1, 2))
	report := &Report{Warmup: time.Second, Length: 30 * time.Second}
	around := func(base time.Duration, spread float64) time.Duration {
		return time.Duration(float64(base) * (1 + spread*random.NormFloat64()))
	}
	answer := func(tenant string, start, ttft time.Duration) Result {
		ttft = max(ttft, 100*time.Millisecond)
		return Result{
			Tenant: tenant, Start: start, Attempts: 1, Status: 200,
			Headers: ttft, FirstData: ttft, Total: ttft + 150*time.Millisecond,
		}
	}
	crowded := func(at time.Duration) bool { return at > 5500*time.Millisecond && at < 25500*time.Millisecond }
	quiet, noisy := Track{Tenant: "interactive"}, Track{Tenant: "batch"}
	for i := range 60 {
		start := time.Duration(i) * 500 * time.Millisecond
		ttft := around(160*time.Millisecond, 0.08)
		switch {
		case crowded(start) && held:
			ttft = around(240*time.Millisecond, 0.12)
		case crowded(start):
			ttft = around(2800*time.Millisecond, 0.08)
		}
		quiet.Results = append(quiet.Results, answer("interactive", start, ttft))
	}
	for i := range 560 {
		start := 5*time.Second + time.Duration(i)*20*time.Second/560
		ttft := around(2900*time.Millisecond, 0.07)
		if since := start - 5*time.Second; since < 500*time.Millisecond {
			ttft = 200*time.Millisecond + time.Duration(float64(since)*5)
		}
		noisy.Results = append(noisy.Results, answer("batch", start, ttft))
	}
	report.Tracks = []Track{quiet, noisy}
	return report
}

func syntheticFigure() *Figure {
	return &Figure{
		Title:    "One tenant floods the model; the other keeps its latency",
		Subtitle: "Batch: 64 requests in flight at all times. Interactive: 2 requests per second. Same servers.",
		Panels: []Panel{
			{Title: "Without Weir", Report: syntheticReport(false)},
			{Title: "With Weir", Report: syntheticReport(true)},
		},
		Spans: []Span{{Label: "batch sends", From: 5 * time.Second, To: 25 * time.Second}},
	}
}
