package loadgen

import (
	"cmp"
	"slices"
	"strconv"
	"time"
)

// Summary is a report reduced to figures. Its window is the run without the warm-up: [Warmup, Length).
type Summary struct {
	// Scene names the measured scene.
	Scene string
	// Window is the length of the window.
	Window time.Duration
	// Tenants holds the figures of each tenant, in the plan's order.
	Tenants []TenantSummary
	// All holds the figures of all requests together, under the tenant "all".
	All TenantSummary
}

// TenantSummary holds one tenant's figures. Counts and times are of the requests that started in the window, wherever
// they ended; throughput is of the answers that ended in it, wherever they started.
type TenantSummary struct {
	Tenant string
	// Requests is OK plus Rejected plus Failed.
	Requests int
	// OK counts complete 2xx answers, Rejected other complete answers, Failed requests without a complete answer.
	OK, Rejected, Failed int
	// Retries counts the attempts after each request's first.
	Retries int
	// Throughput is the number of complete 2xx answers per second.
	Throughput float64
	// Outcomes counts by status, reason and fault, the most frequent first.
	Outcomes []OutcomeCount
	// TTFT and Total are of the OK requests.
	TTFT, Total Distribution
}

// Outcome is how a request ended: its last status, x-weir-reason and [Result.Fault].
type Outcome struct {
	Status int
	Reason string
	Fault  string
}

// String returns for example "200", "429 queue_full" or "200 broken".
func (o Outcome) String() string {
	text := strconv.Itoa(o.Status)
	if o.Status == 0 {
		text = "-"
	}
	for _, part := range []string{o.Reason, o.Fault} {
		if part != "" {
			text += " " + part
		}
	}
	return text
}

// OutcomeCount is the number of requests with an outcome.
type OutcomeCount struct {
	Outcome
	Count int
}

// Distribution has exact percentiles (nearest rank: the smallest value that is at least as large as that percentage of
// the values). All are 0 if there are no values.
type Distribution struct {
	Count                    int
	Mean, P50, P95, P99, Max time.Duration
}

// Distribute returns the distribution of the values, which it sorts in place.
func Distribute(values []time.Duration) Distribution {
	if len(values) == 0 {
		return Distribution{}
	}
	slices.Sort(values)
	var sum float64
	for _, v := range values {
		sum += float64(v)
	}
	return Distribution{
		Count: len(values),
		Mean:  time.Duration(sum / float64(len(values))),
		P50:   nearestRank(values, 50),
		P95:   nearestRank(values, 95),
		P99:   nearestRank(values, 99),
		Max:   values[len(values)-1],
	}
}

// nearestRank returns the percentile of sorted values, percent from 1 to 100.
func nearestRank(sorted []time.Duration, percent int) time.Duration {
	return sorted[(len(sorted)*percent+99)/100-1]
}

// Summarise reduces a report to its figures.
func Summarise(scene string, report *Report) Summary {
	summary := Summary{Scene: scene, Window: report.Length - report.Warmup}
	all := newTally("all", report)
	tallies := make(map[string]*tally)
	for _, tenant := range report.Tenants() {
		tallies[tenant] = newTally(tenant, report)
	}
	for _, track := range report.Tracks {
		for i := range track.Results {
			tallies[track.Tenant].add(&track.Results[i])
			all.add(&track.Results[i])
		}
	}
	for _, tenant := range report.Tenants() {
		summary.Tenants = append(summary.Tenants, tallies[tenant].summary())
	}
	summary.All = all.summary()
	return summary
}

// Tenant returns the named tenant's figures; ok is false if the report has no such tenant.
func (s *Summary) Tenant(name string) (TenantSummary, bool) {
	for _, tenant := range s.Tenants {
		if tenant.Tenant == name {
			return tenant, true
		}
	}
	return TenantSummary{}, false
}

// tally sums up one tenant's results.
type tally struct {
	from, to  time.Duration // the window
	figures   TenantSummary
	completed int // OK answers that ended in the window
	outcomes  map[Outcome]int

	ttft, total []time.Duration
}

func newTally(tenant string, report *Report) *tally {
	return &tally{
		from: report.Warmup, to: report.Length,
		figures: TenantSummary{Tenant: tenant}, outcomes: make(map[Outcome]int),
	}
}

func (t *tally) add(r *Result) {
	if end := r.Start + r.Total; r.OK() && end >= t.from && end <= t.to {
		t.completed++
	}
	if r.Start < t.from {
		return
	}
	t.figures.Requests++
	t.figures.Retries += max(r.Attempts-1, 0)
	t.outcomes[Outcome{Status: r.Status, Reason: r.Reason, Fault: r.Fault()}]++
	switch {
	case r.OK():
		t.figures.OK++
		t.ttft = append(t.ttft, r.TTFT())
		t.total = append(t.total, r.Total)
	case r.Rejected():
		t.figures.Rejected++
	default:
		t.figures.Failed++
	}
}

func (t *tally) summary() TenantSummary {
	if window := (t.to - t.from).Seconds(); window > 0 {
		t.figures.Throughput = float64(t.completed) / window
	}
	for outcome, count := range t.outcomes {
		t.figures.Outcomes = append(t.figures.Outcomes, OutcomeCount{outcome, count})
	}
	slices.SortFunc(t.figures.Outcomes, func(a, b OutcomeCount) int {
		return cmp.Or(-cmp.Compare(a.Count, b.Count), cmp.Compare(a.String(), b.String()))
	})
	t.figures.TTFT = Distribute(t.ttft)
	t.figures.Total = Distribute(t.total)
	return t.figures
}
