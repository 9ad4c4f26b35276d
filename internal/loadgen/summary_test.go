package loadgen

import (
	"math/rand/v2"
	"testing"
	"time"
)

// Percentiles are exact: the smallest value that is at least as large as that percentage of the values.
func TestPercentilesAreExact(t *testing.T) {
	for _, n := range []int{1, 2, 3, 19, 20, 21, 99, 100, 101, 1000} {
		values := make([]time.Duration, n)
		for i, at := range rand.New(rand.NewPCG(1, uint64(n))).Perm(n) {
			values[i] = time.Duration(at + 1)
		}
		d := Distribute(values)
		for _, p := range []struct {
			percent int
			got     time.Duration
		}{{50, d.P50}, {95, d.P95}, {99, d.P99}, {100, d.Max}} {
			// The k-th of the values 1 to n is k: this is the definition, taken literally.
			want := time.Duration(1)
			for int(want)*100 < p.percent*n {
				want++
			}
			if p.got != want {
				t.Errorf("%d values: percentile %d is %d, want %d", n, p.percent, p.got, want)
			}
		}
		if d.Count != n || d.Mean != time.Duration((n+1)/2) {
			t.Errorf("%d values: count %d, mean %d", n, d.Count, d.Mean)
		}
	}
	if d := Distribute(nil); d != (Distribution{}) {
		t.Errorf("of nothing: %+v", d)
	}
}

// Counts and times exclude requests that started in the warm-up. Throughput counts the answers that ended in the
// window, whenever they started.
func TestWarmupIsLeftOut(t *testing.T) {
	answer := func(start, total time.Duration) Result {
		return Result{Tenant: "t", Start: start, Total: total, FirstData: total / 2, Attempts: 1, Status: 200}
	}
	const s = time.Second
	report := &Report{Warmup: 10 * s, Length: 20 * s, Tracks: []Track{{Tenant: "t", Results: []Result{
		answer(1*s, 2*s),    // before the window
		answer(9*s, 4*s),    // ends in it
		answer(10*s-1, 1),   // ends at its begin
		answer(10*s, 3*s),   // starts at its begin
		answer(15*s, 1*s),   // within
		answer(19*s, 1*s),   // ends at its end
		answer(19*s+1, 5*s), // starts in it, ends after it
		answer(9*s, 100*s),  // spans it all
		{Tenant: "t", Start: 5 * s, Status: 503, Reason: "shed", Attempts: 1},
	}}}}
	summary := Summarise("scene", report)
	all, ok := summary.Tenant("t")
	if !ok || summary.Window != 10*s || all.Requests != 4 || all.OK != 4 || all.Rejected != 0 {
		t.Errorf("%+v", summary)
	}
	if all.Throughput != 0.5 { // five answers ended within 10 s
		t.Errorf("throughput %v, want 0.5", all.Throughput)
	}
	if all.Total.Max != 5*s || all.Total.P50 != 1*s || all.TTFT.Max != 5*s/2 {
		t.Errorf("total %+v, TTFT %+v", all.Total, all.TTFT)
	}
}

// A run's warm-up is excluded from its summary.
func TestRunWithWarmup(t *testing.T) {
	inBubble(t, takes(100*time.Millisecond), func(b *bubble) {
		w := load(ClosedLoop{Workers: 2})
		w.Duration = time.Second
		report, err := Run(b.Context(), b.client, Plan{Workloads: []Workload{w}, Warmup: 300 * time.Millisecond, Drain: time.Minute}, nil)
		if err != nil {
			b.Fatal(err)
		}
		summary := Summarise("scene", report)
		if summary.All.Requests != 14 || summary.All.Total.Count != 14 || summary.Window != 700*time.Millisecond {
			b.Errorf("%+v", summary.All)
		}
	})
}

// Every result counts once, as OK, rejected or failed. Outcomes are sorted by frequency, and the total is the sum over
// tenants.
func TestSummaryByTenantAndOutcome(t *testing.T) {
	result := func(tenant string, status int, reason string, err error, attempts int) Result {
		return Result{Tenant: tenant, Status: status, Reason: reason, Err: err, Attempts: attempts, Total: 1}
	}
	report := &Report{Length: time.Second, Tracks: []Track{
		{Tenant: "b", Results: []Result{
			result("b", 200, "", nil, 1), result("b", 503, "displaced", nil, 3), result("b", 429, "queue-full", nil, 1),
			result("b", 503, "displaced", nil, 1), result("b", 0, "", ErrUnsent, 0), result("b", 200, "", ErrCutOff, 2),
		}},
		{Tenant: "a", Results: []Result{result("a", 200, "", nil, 1)}},
		{Tenant: "b", Results: []Result{result("b", 204, "", nil, 1)}},
	}}
	summary := Summarise("scene", report)
	if len(summary.Tenants) != 2 || summary.Tenants[0].Tenant != "b" {
		t.Fatalf("tenants in the plan's order: %+v", summary.Tenants)
	}
	b := summary.Tenants[0]
	if b.Requests != 7 || b.OK != 2 || b.Rejected != 3 || b.Failed != 2 || b.Retries != 3 {
		t.Errorf("%+v", b)
	}
	var outcomes []string
	for _, o := range b.Outcomes {
		outcomes = append(outcomes, o.String())
	}
	if len(outcomes) != 6 || outcomes[0] != "503 displaced" || b.Outcomes[0].Count != 2 || outcomes[1] != "- unsent" {
		t.Errorf("outcomes %q", outcomes)
	}
	if all := summary.All; all.Requests != 8 || all.OK != 3 || all.Failed != 2 || all.Tenant != "all" {
		t.Errorf("all: %+v", all)
	}
	if _, ok := summary.Tenant("c"); ok {
		t.Error("a tenant that is not there is found")
	}
}
