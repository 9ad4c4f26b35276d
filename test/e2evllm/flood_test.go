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

// The flood: a tenant with eight times as many requests in flight as the engine has slots, and another with a few. Both
// ask for answers of as many tokens, which is a third of a second of the engine's work, and differ among themselves: equal
// ones that begin together would end together, and come and go in whole batches, as no users' do.
const (
	floodWorkers = 64
	quietRate    = 2.0 // per second
	leastTokens  = 96
	mostTokens   = 160
	floodWarmup  = 6 * time.Second
	floodLength  = 40 * time.Second // of a run, with the warm-up
)

// What Weir is to do: the other tenant's median at most this part of what it was, at this part of the throughput.
const (
	mostWait        = 0.20
	leastThroughput = 0.95
)

const floodBulk, floodOther = "flood", "other"

const fairnessHeader = "X-Llm-D-Inference-Fairness-Id"

var floodConfig = fmt.Sprintf(`
flows: { key: ["header:%s", "model"] }
fairRequestQueue: { totalCapacity: 1000, flowCapacity: 200 }
requestQueueController: { %s }
`, fairnessHeader, bounds)

// The names of what is compared, and of the figures.
const (
	alone, withWeir = "Envoy alone", "Envoy with Weir"
	waitP50         = "the other's wait, median, s"
	waitP99         = "the other's wait, p99, s"
	throughput      = "answers of both per second"
)

// floodScene: a tenant's flood does not become another's wait, and costs no throughput.
func floodScene(t *testing.T, e *engine) section {
	set := before(t, e, floodConfig)
	flood := func(name, url string) loadgen.Scenario {
		return loadgen.Scenario{Name: name, Run: func(ctx context.Context, round int) (loadgen.Figures, error) {
			return floodOnce(ctx, t, name, url, uint64(round)+1)
		}}
	}
	start := usedNow(t)
	compared, err := loadgen.Interleave(context.Background(), *rounds, []loadgen.Scenario{
		flood(alone, set.direct.URL()), flood(withWeir, set.weir.URL()),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	foreign := foreignSince(t, start)
	wantQuiet(t, foreign)

	wait, rate := compared.Ratio(withWeir, alone, waitP50), compared.Ratio(withWeir, alone, throughput)
	if wait.Median > mostWait {
		t.Errorf("with Weir the other tenant's median wait is %.2f of what it was, want at most %.2f", wait.Median, mostWait)
	}
	if rate.Median < leastThroughput {
		t.Errorf("with Weir the throughput is %.3f of what it was, want at least %.2f", rate.Median, leastThroughput)
	}

	var text strings.Builder
	fmt.Fprintf(&text, `One tenant keeps %d requests in flight (closed loop), another sends %g per second (Poisson), for %v
beside each other, of which the first %v do not count. Answers of %d to %d tokens, not streamed, to both. Straight
through Envoy and through Envoy with Weir, in turn, %d rounds.

`, floodWorkers, quietRate, floodLength, floodWarmup, leastTokens, mostTokens, *rounds)
	text.WriteString("| | " + alone + " | " + withWeir + " | with to without, by round |\n|---|---|---|---|\n")
	for _, figure := range []string{waitP50, waitP99, throughput} {
		ratio := compared.Ratio(withWeir, alone, figure)
		fmt.Fprintf(&text, "| %s | %s | %s | **%.3f** (%.3f to %.3f) |\n", figure,
			spread(compared.Of(alone, figure)), spread(compared.Of(withWeir, figure)), ratio.Median, ratio.Min, ratio.Max)
	}
	fmt.Fprintf(&text, `
Wanted: the median wait at most %.2f of what it was, the throughput at least %.2f. Medians of the rounds, with the smallest
and the largest. No request failed or was rejected. Others used %.0f %% of the processor time that was used meanwhile.
`, mostWait, leastThroughput, 100*foreign)
	return section{"A flood beside another tenant", text.String()}
}

func spread(s loadgen.Spread) string {
	return fmt.Sprintf("%.3g (%.3g to %.3g)", s.Median, s.Min, s.Max)
}

// floodOnce is one run through one Envoy.
func floodOnce(ctx context.Context, t *testing.T, name, url string, seed uint64) (loadgen.Figures, error) {
	c, err := loadgen.NewClient(loadgen.ClientConfig{BaseURL: url})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	report, err := loadgen.Run(ctx, c, loadgen.Plan{
		Workloads: []loadgen.Workload{
			{
				Tenant: floodBulk, Arrivals: loadgen.ClosedLoop{Workers: floodWorkers, Stagger: 20 * time.Millisecond},
				Request: floodRequest(floodBulk), Requests: 20_000, Duration: floodLength,
			},
			{
				Tenant: floodOther, Arrivals: loadgen.OpenLoop{Rate: quietRate, Poisson: true, Seed: seed},
				Request: floodRequest(floodOther), Requests: 1000, Duration: floodLength,
			},
		},
		Warmup: floodWarmup, Drain: patience,
	}, nil)
	if err != nil {
		return nil, err
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
	}, nil
}

func floodRequest(tenant string) loadgen.Template {
	return loadgen.Template{
		Path:   "/v1/chat/completions",
		Header: http.Header{fairnessHeader: {tenant}, "Content-Type": {"application/json"}},
		Body: func(i int) []byte {
			const prime = 37 // lengths that follow each other are far apart
			tokens := leastTokens + i*prime%(mostTokens-leastTokens+1)
			return fmt.Appendf(nil, `{"model":%q,"max_tokens":%d,"messages":[{"role":"user","content":"What is a weir?"}]}`,
				model, tokens)
		},
	}
}
