//go:build e2evllm

package e2evllm

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/loadgen"
)

// More clients with constant requests than the first bound, and the run of each configuration. Answers are long, so
// that a reading of the engine's metrics, once a second, covers some seconds.
const (
	slotsClients = 72
	slotsTokens  = 192 // of an answer, a half less to a half more
	slotsFound   = 30 * time.Second
	slotsRun     = 24 * time.Second
)

// The targets of a bound from metrics, relative to the bound of the other scenes: requests that wait inside the engine
// at the end, and tokens of an engine's step.
const (
	mostInside = 2.0
	leastStep  = 0.98
)

const (
	inside       = "requests waiting inside the engine, mean"
	insideMedian = "requests waiting inside the engine, median of the looks"
	step         = "tokens of a step of the engine"
	leastBound   = "bound, the least"
)

// slotsConfig is recommended with room for all clients, and with the slots stated or found.
func slotsConfig(slots string) string {
	return "profile: recommended\nfairRequestQueue: { queueTTL: 10m }\nrequestQueueController: { slotsPerBackend: " + slots + " }\n"
}

// slotsScene checks that Weir finds the engine's slots by its metrics.
func slotsScene(t *testing.T, e *engine) section {
	auto := through(t, e, "recommended", slotsConfig("auto"))
	stated := through(t, e, "recommended", slotsConfig(fmt.Sprint(bound)))
	if b := boundAt(t, auto); b != 64 {
		t.Errorf("the bound begins with %d, want 64", b)
	}
	stop := keepBusy(t, auto)
	begun := time.Now()
	found := time.Duration(0)
	for found == 0 {
		time.Sleep(100 * time.Millisecond)
		switch b := boundAt(t, auto); {
		case b >= slots && b <= slots+int(mostInside):
			found = time.Since(begun)
		case time.Since(begun) > slotsFound:
			t.Fatalf("the bound is %d after %v", b, slotsFound)
		}
	}
	stop()

	const withAuto, withStated = "auto", "stated"
	once := func(name string, set *setting) loadgen.Scenario {
		return loadgen.Scenario{Name: name, Run: func(_ context.Context, round int) (loadgen.Figures, error) {
			return slotsOnce(t, e, set, fmt.Sprintf("%s %d", name, round)), nil
		}}
	}
	compared, err := loadgen.Interleave(context.Background(), *rounds, []loadgen.Scenario{once(withAuto, auto), once(withStated, stated)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	full, waits, least := compared.Ratio(withAuto, withStated, step), compared.Of(withAuto, insideMedian), compared.Of(withAuto, leastBound)
	if full.Median < leastStep {
		complain := t.Logf // requests delayed for want of a processor leave slots empty, whatever the bound
		if *out != "" {
			complain = t.Errorf
		}
		complain("a step has %.3f of the tokens that it has with %d stated, want at least %.2f", full.Median, bound, leastStep)
	}
	if waits.Median > mostInside {
		t.Errorf("%.0f requests wait inside the engine, want at most %g", waits.Median, mostInside)
	}
	if least.Min < slots {
		t.Errorf("the bound was %.0f for a time", least.Min)
	}
	var text strings.Builder
	fmt.Fprintf(&text, `%d clients always have a request, of about %d tokens, before an engine of %d slots, with the profile recommended. No
setting states the slots: the bound begins with 64, and was that of the engine after **%.0f s** of load (wanted: %.0f s).
Then %d rounds of %v each, beside a Weir to which a bound of %d was stated, by the engine's gauges and counters:

| | auto | stated |
|---|---|---|
`, slotsClients, slotsTokens, slots, found.Seconds(), slotsFound.Seconds(), *rounds, slotsRun, bound)
	for _, figure := range []string{insideMedian, inside, leastBound, busy, step, throughput} {
		fmt.Fprintf(&text, "| %s | %s | %s |\n", figure, spread(compared.Of(withAuto, figure)), spread(compared.Of(withStated, figure)))
	}
	fmt.Fprintf(&text, "\nA step has **%.3f** of the tokens with the stated bound (%.3f to %.3f), wanted at least %.2f; at most %g may\nwait inside, and no bound be less than the slots.\n",
		full.Median, full.Min, full.Max, leastStep, mostInside)
	return section{"Slots without a setting", text.String()}
}

// slotsOnce is one round. Its figures are of its last two thirds.
func slotsOnce(t *testing.T, e *engine, set *setting, name string) loadgen.Figures {
	start := usedNow(t)
	stop := keepBusy(t, set)
	time.Sleep(slotsRun / 3)
	samples := e.watch(t, 100*time.Millisecond)
	before := countAt(t, e)
	begun := time.Now()
	least := boundAt(t, set)
	for time.Since(begun) < slotsRun*2/3 {
		time.Sleep(500 * time.Millisecond)
		least = min(least, boundAt(t, set))
	}
	after := countAt(t, e)
	took := time.Since(begun).Seconds()
	running, waiting := 0.0, []int{}
	for _, s := range samples() {
		running += float64(s.running)
		waiting = append(waiting, s.waiting)
	}
	stop()
	t.Logf("%s: waiting inside: %v; others used %.0f %% of the processor time that was used", name, waiting, 100*foreignSince(t, start))
	n, sum := float64(len(waiting)), 0
	for _, w := range waiting {
		sum += w
	}
	slices.Sort(waiting)
	return loadgen.Figures{
		inside: float64(sum) / n, insideMedian: float64(waiting[len(waiting)/2]), busy: running / n, leastBound: float64(least),
		step: (after.tokens - before.tokens) / (after.steps - before.steps), throughput: (after.ended - before.ended) / took,
	}
}

// counted is the state of an engine's counters.
type counted struct{ ended, tokens, steps float64 }

// countAt reads the engine's counters.
func countAt(t *testing.T, e *engine) counted {
	t.Helper()
	url := "http://" + e.address
	return counted{
		ended:  metric(t, url, "vllm:request_success_total"),
		tokens: metric(t, url, "vllm:iteration_tokens_total_sum"), steps: metric(t, url, "vllm:iteration_tokens_total_count"),
	}
}

// keepBusy sends requests until stop is called, which ends them.
func keepBusy(t *testing.T, set *setting) (stop func()) {
	var clients sync.WaitGroup
	var sent atomic.Int64
	ctx, cancel := context.WithCancel(context.Background())
	for range slotsClients {
		clients.Go(func() {
			for ctx.Err() == nil {
				tokens := slotsTokens/2 + int(sent.Add(1)*37%(slotsTokens+1))
				got := post(ctx, set.weir.URL(), ask{
					path: "/v1/completions",
					body: fmt.Sprintf(`{"model":%q,"prompt":"Count.","max_tokens":%d,"ignore_eos":true}`, model, tokens),
				})
				if ctx.Err() == nil && (got.err != nil || got.status != http.StatusOK) {
					t.Errorf("status %d, error %v: %.500s", got.status, got.err, got.body)
					return
				}
			}
		})
	}
	stop = sync.OnceFunc(func() { cancel(); clients.Wait() })
	t.Cleanup(stop)
	return stop
}

// boundAt returns the bound of the only endpoint.
func boundAt(t *testing.T, set *setting) int {
	t.Helper()
	return int(metric(t, set.epp.MetricsURL, "weir_endpoint_bound"))
}

// metric returns the sum over the series of a metric, or the value of one series.
func metric(t *testing.T, url, name string) (sum float64) {
	t.Helper()
	response, err := http.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for line := range bytes.Lines(text) {
		var value float64
		rest, ok := bytes.CutPrefix(line, []byte(name))
		if ok && (rest[0] == '{' || rest[0] == ' ') {
			if _, err := fmt.Sscan(string(rest[bytes.LastIndexByte(rest, '}')+1:]), &value); err != nil {
				t.Fatal(err)
			}
			sum, found = sum+value, true
		}
	}
	if !found {
		t.Fatalf("%s has no metric %s", url, name)
	}
	return sum
}
