//go:build e2evllm

package e2evllm

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	names "github.com/prometheus/common/model"

	"github.com/weir-epp/weir/pkg/usage"
)

// Two tenants of equal weight have constant backlogs. Prompts are counted in tokens: this model's are bytes.
var fairTenants = []*fairTenant{
	{name: "long", workers: 24, in: 1900, out: 100},
	{name: "short", workers: 96, in: 50, out: 50},
}

type fairTenant struct {
	name    string
	workers int
	in, out int // tokens of a request, about

	requests, ended, attained atomic.Int64 // attained is the weighted cost by the engine's own usage
}

// The service of each tenant before the measurement, and the expected ratio then. The largest difference is (D+1)(l_f +
// l_g), which is 24,750 with ten requests in flight: a twentieth.
const (
	fairLeast           = 20 * (bound + 1) * (2100 + 150)
	fairLow, fairHigh   = 0.95, 1.05
	fairWarmup, fairEnd = 20, 10 * time.Minute
)

var fairConfig = fmt.Sprintf(`
profile: wfq
cost: tokens
flows: { key: ["header:%s"], discipline: vtc }
requestBody: always
fairRequestQueue: { totalCapacity: 1000, flowCapacity: 200, queueTTL: 10m }
requestQueueController: { %s }
`, fairnessHeader, bounds)

// fairnessScene checks that two tenants, one of long and one of short requests, attain the same in tokens, by the
// engine's own usage in its answers, which Envoy reads for Weir.
func fairnessScene(t *testing.T, e *engine) section {
	set := through(t, e, "usage", fairConfig)
	ctx, stop := context.WithCancel(context.Background())
	var workers sync.WaitGroup
	for _, tenant := range fairTenants {
		for range tenant.workers {
			workers.Go(func() {
				for ctx.Err() == nil {
					tenant.ask(ctx, t, set.weir.URL())
				}
			})
		}
	}
	defer workers.Wait()
	defer stop()

	until := func(what string, enough func(i int) bool) {
		t.Helper()
		for deadline := time.Now().Add(fairEnd); ; time.Sleep(100 * time.Millisecond) {
			left := ""
			for i, tenant := range fairTenants {
				if !enough(i) {
					left = tenant.name
				}
			}
			switch {
			case left == "":
				return
			case time.Now().After(deadline) || t.Failed():
				t.Fatalf("%s: %s has not attained it", what, left)
			}
		}
	}
	until("costs are learned", func(i int) bool { return fairTenants[i].ended.Load() >= fairWarmup })
	var before [2]int64
	for i, tenant := range fairTenants {
		before[i] = tenant.attained.Load()
	}
	begun := time.Now()
	looked := time.Time{}
	until("it is measured", func(i int) bool {
		if time.Since(looked) > time.Second {
			looked = time.Now()
			wantBacklogged(t, set.epp.MetricsURL)
		}
		return fairTenants[i].attained.Load() >= before[i]+fairLeast
	})
	var got [2]int64
	for i, tenant := range fairTenants {
		got[i] = tenant.attained.Load() - before[i]
	}
	took := time.Since(begun)
	ratio := float64(got[0]) / float64(got[1])
	if ratio < fairLow || ratio > fairHigh {
		t.Errorf("the long one has attained %d, the short one %d: ratio %.3f, want %.2f to %.2f", got[0], got[1], ratio, fairLow, fairHigh)
	}
	var text strings.Builder
	fmt.Fprintf(&text, `Two tenants of equal weight always have requests waiting, with `+"`cost: tokens`"+`, `+"`flows.discipline: vtc`"+` and
[usage.yaml](../config/envoy/usage.yaml). Their weighted cost attained, input + 2 · output, by the usage in the engine's answers,
in %.0f s:

| tenant | tokens of a request | answers | cost attained |
|---|---|---|---|
`, took.Seconds())
	for i, tenant := range fairTenants {
		fmt.Fprintf(&text, "| %s | %d + %d | %d | %d |\n", tenant.name, tenant.in, tenant.out, tenant.ended.Load(), got[i])
	}
	fmt.Fprintf(&text, "\nThe ratio is **%.3f**. Wanted: %.2f to %.2f.\n", ratio, fairLow, fairHigh)
	return section{"Fair in tokens", text.String()}
}

// ask sends one request and adds the usage that the engine reports. Each prompt has another beginning, so that none is
// in the engine's cache.
func (f *fairTenant) ask(ctx context.Context, t *testing.T, url string) {
	prompt := fmt.Sprintf("%s %d ", f.name, f.requests.Add(1))
	prompt += strings.Repeat("x", f.in-len(prompt))
	got := post(ctx, url, ask{
		path:   "/v1/completions",
		body:   fmt.Sprintf(`{"model":%q,"prompt":%q,"max_tokens":%d}`, model, prompt, f.out),
		header: []string{fairnessHeader, f.name},
	})
	if ctx.Err() != nil {
		return
	}
	if got.err != nil || got.status != http.StatusOK {
		t.Errorf("%s: status %d, error %v: %.500s", f.name, got.status, got.err, got.body)
		time.Sleep(time.Second)
		return
	}
	reader := usage.NewReader(false)
	reader.Write(got.body)
	counts := reader.Counts()
	tokens, known := counts.Tokens(false)
	if !known || tokens.Output != int64(f.out) || tokens.Input < int64(f.in) || tokens.Input > int64(f.in)+10 {
		t.Errorf("%s: the usage is %+v, want about %d + %d", f.name, tokens, f.in, f.out)
	}
	f.attained.Add(tokens.Input + 2*tokens.Output)
	f.ended.Add(1)
}

// wantBacklogged checks that all tenants have requests waiting.
func wantBacklogged(t *testing.T, metrics string) {
	t.Helper()
	response, err := http.Get(metrics + "/metrics")
	if err != nil {
		t.Error(err)
		return
	}
	defer response.Body.Close()
	parser := expfmt.NewTextParser(names.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		t.Error(err)
		return
	}
	waiting := 0
	for _, m := range families["weir_flow_entitled_share"].GetMetric() {
		if m.GetGauge().GetValue() > 0 {
			waiting++
		}
	}
	if waiting != len(fairTenants) {
		t.Errorf("%d tenants have requests waiting, want %d", waiting, len(fairTenants))
	}
}
