//go:build e2evllm

package e2evllm

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/loadgen"
)

// The flood: a tenant with eight times as many requests in flight as the engine has slots, and another one with a few.
// The flood's answers are longer, like those of a batch job beside a chat. Each tenant's answers differ in length:
// equal ones that begin together would end together, in whole batches, unlike real users' requests.
const (
	floodWorkers = 64
	quietRate    = 2.0 // per second
	floodTokens  = 256 // of an answer, a quarter less to a quarter more
	quietTokens  = 128
	floodWarmup  = 6 * time.Second
	floodLength  = 30 * time.Second // of a run, with the warm-up
)

// The targets: the other tenant's median is at most this fraction of the one without Weir, with this fraction of the
// throughput.
const (
	mostWait        = 0.20
	leastThroughput = 0.95
)

const floodBulk, floodOther = "flood", "other"

const fairnessHeader = "X-Llm-D-Inference-Fairness-Id"

var floodConfig = fmt.Sprintf(`
profile: wfq
flows: { key: ["header:%s", "model"] }
fairRequestQueue: { totalCapacity: 1000, flowCapacity: 200 }
requestQueueController: { %s }
`, fairnessHeader, bounds)

// The names of the compared cases, and of the figures.
const (
	alone, withWeir = "Envoy alone", "Envoy with Weir"
	waitP50         = "the other's wait, median, s"
	waitP99         = "the other's wait, p99, s"
	throughput      = "answers of both per second"
	busy            = "requests running in the engine, mean"
)

// floodRounds plays the rounds, each through both Envoys. A round in which other processes used the processors is
// repeated, up to three times as many rounds in total. If too few are good, all are used. foreign is the others'
// largest share in a used round, spoilt the number of unused rounds.
func floodRounds(t *testing.T, e *engine, set *setting) (compared *loadgen.Comparison, foreign float64, spoilt int) {
	t.Helper()
	var quiet, all loadgen.Comparison
	var most, mostOfAll float64
	tries := 3 * *rounds
	if *out == "" {
		tries = *rounds // nothing is kept
	}
	for try := 0; len(quiet.Rounds) < *rounds && try < tries; try++ {
		once := func(name, url string) loadgen.Scenario {
			return loadgen.Scenario{Name: name, Run: func(ctx context.Context, _ int) (loadgen.Figures, error) {
				return floodOnce(ctx, t, e, name, url, uint64(try)+1)
			}}
		}
		start := usedNow(t)
		round, err := loadgen.Interleave(context.Background(), 1,
			[]loadgen.Scenario{once(alone, set.direct.URL()), once(withWeir, set.weir.URL())}, nil)
		if err != nil {
			t.Fatal(err)
		}
		share := foreignSince(t, start)
		t.Logf("round %d: others used %.1f %% of the processor time that was used", try+1, 100*share)
		all.Scenarios, quiet.Scenarios = round.Scenarios, round.Scenarios
		all.Rounds, mostOfAll = append(all.Rounds, round.Rounds...), max(mostOfAll, share)
		if share <= mostForeign {
			quiet.Rounds, most = append(quiet.Rounds, round.Rounds...), max(most, share)
		}
	}
	if len(quiet.Rounds) < *rounds {
		wantQuiet(t, mostOfAll, mostForeign)
		return &all, mostOfAll, 0
	}
	return &quiet, most, len(all.Rounds) - len(quiet.Rounds)
}

// floodScene checks that one tenant's flood does not make another wait, and costs no throughput.
func floodScene(t *testing.T, e *engine) section {
	set := before(t, e, floodConfig)
	compared, foreign, spoilt := floodRounds(t, e, set)

	wait, rate := compared.Ratio(withWeir, alone, waitP50), compared.Ratio(withWeir, alone, throughput)
	if wait.Median > mostWait {
		t.Errorf("with Weir the other tenant's median wait is %.2f of that without, want at most %.2f", wait.Median, mostWait)
	}
	if rate.Median < leastThroughput {
		t.Errorf("with Weir the throughput is %.3f of that without, want at least %.2f", rate.Median, leastThroughput)
	}

	var text strings.Builder
	fmt.Fprintf(&text, `One tenant keeps %d requests in flight (closed loop), another sends %g per second (Poisson), for %v
beside each other, of which the first %v do not count. Answers have about %d tokens for the one and %d for the
other, a quarter less to a quarter more, not streamed. Straight through Envoy and through Envoy with Weir, in turn, %d
rounds.

`, floodWorkers, quietRate, floodLength, floodWarmup, floodTokens, quietTokens, *rounds)
	text.WriteString("| | " + alone + " | " + withWeir + " | with to without, by round |\n|---|---|---|---|\n")
	for _, figure := range []string{waitP50, waitP99, throughput, busy} {
		ratio := compared.Ratio(withWeir, alone, figure)
		fmt.Fprintf(&text, "| %s | %s | %s | **%.3f** (%.3f to %.3f) |\n", figure,
			spread(compared.Of(alone, figure)), spread(compared.Of(withWeir, figure)), ratio.Median, ratio.Min, ratio.Max)
	}
	fmt.Fprintf(&text, `
Wanted: the median wait at most %.2f of what it was, the throughput at least %.2f. Medians of the rounds, with the smallest
and the largest. No request failed or was rejected. In a round others used at most %.1f %% of the processor time that was
used; %d rounds in which they used more than %.0f %% are not counted.
`, mostWait, leastThroughput, 100*foreign, spoilt, 100*mostForeign)
	return section{"A flood beside another tenant", text.String()}
}

func spread(s loadgen.Spread) string {
	return fmt.Sprintf("%.3g (%.3g to %.3g)", s.Median, s.Min, s.Max)
}

// floodOnce is one run through one Envoy.
func floodOnce(ctx context.Context, t *testing.T, e *engine, name, url string, seed uint64) (loadgen.Figures, error) {
	c, err := loadgen.NewClient(loadgen.ClientConfig{BaseURL: url})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	begun, stop := time.Now(), e.watch(t, 250*time.Millisecond)
	report, err := loadgen.Run(ctx, c, loadgen.Plan{
		Workloads: []loadgen.Workload{
			{
				Tenant: floodBulk, Arrivals: loadgen.ClosedLoop{Workers: floodWorkers, Stagger: 20 * time.Millisecond},
				Request: floodRequest(floodBulk, floodTokens), Requests: 20_000, Duration: floodLength,
			},
			{
				Tenant: floodOther, Arrivals: loadgen.OpenLoop{Rate: quietRate, Poisson: true, Seed: seed},
				Request: floodRequest(floodOther, quietTokens), Requests: 1000, Duration: floodLength,
			},
		},
		Warmup: floodWarmup, Drain: patience,
	}, nil)
	if err != nil {
		return nil, err
	}
	running, looks := 0, 0
	for _, sample := range stop() {
		if since := sample.at.Sub(begun); since > floodWarmup && since < floodLength {
			running += sample.running
			looks++
		}
	}
	summary := loadgen.Summarise(name, report)
	var table strings.Builder
	if err := loadgen.WriteTable(&table, summary); err != nil {
		return nil, err
	}
	t.Logf("round %d\n%s", seed, &table)
	if unserved := summary.All.Rejected + summary.All.Failed; unserved > 0 {
		return nil, fmt.Errorf("%d requests were rejected or failed: %v", unserved, summary.All.Outcomes)
	}
	other, _ := summary.Tenant(floodOther)
	return loadgen.Figures{
		waitP50: other.Total.P50.Seconds(), waitP99: other.Total.P99.Seconds(), throughput: summary.All.Throughput,
		busy: float64(running) / float64(looks),
	}, nil
}

func floodRequest(tenant string, mean int) loadgen.Template {
	return loadgen.Template{
		Path:   "/v1/chat/completions",
		Header: http.Header{fairnessHeader: {tenant}, "Content-Type": {"application/json"}},
		Body: func(i int) []byte {
			const prime = 37 // lengths that follow each other are far apart
			tokens := mean - mean/4 + i*prime%(mean/2+1)
			return fmt.Appendf(nil, `{"model":%q,"max_tokens":%d,"messages":[{"role":"user","content":"What is a weir?"}]}`,
				model, tokens)
		},
	}
}
