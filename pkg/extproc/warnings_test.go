package extproc

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	aiv3 "github.com/envoyproxy/go-control-plane/envoy/data/ai/v3"
	"github.com/go-logr/logr/funcr"
)

// If none of many answers reports its usage, there is one warning, which names the cause to check.
func TestSilenceAboutUsageIsReported(t *testing.T) {
	run := func(t *testing.T, way UsageWay, status string, tells func(i int) bool) int {
		n := 0
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, func(c *Config) {
				inTokens(c)
				c.Usage = way
			})
			for i := range 3 * silentRun {
				c := b.open("FULL_DUPLEX/NONE")
				c.say(chat("x-gateway-model-name", "m"))
				c.say(requestBodyOf(`{"prompt":"x"}`, true))
				c.heard()
				c.say(responseHeaders(status, false))
				if tells(i) {
					c.say(told(aiv3.TokenUsage_COMPLETE, 10, 0, 5))
				}
				c.heard()
				c.end()
			}
			n = b.logged.has("include_usage")
		})
		return n
	}
	never := func(int) bool { return false }
	if n := run(t, UsageAuto, "200", never); n != 1 {
		t.Errorf("%d warnings if no answer reports its usage", n)
	}
	if n := run(t, UsageAuto, "200", func(i int) bool { return i%silentRun == 0 }); n != 0 {
		t.Errorf("%d warnings if one of %d does", n, silentRun)
	}
	if n := run(t, UsageNone, "200", never); n != 0 {
		t.Errorf("%d warnings if none is to be learned", n)
	}
	if n := run(t, UsageAuto, "500", never); n != 0 {
		t.Errorf("%d warnings for errors", n)
	}
}

// Response headers are not the first token; each has its own histogram.
func TestMomentsHaveTheirOwnNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(c *Config) { c.Usage = UsageBody })
		c := b.open("FULL_DUPLEX/FULL_DUPLEX")
		c.say(chat())
		c.say(requestBodyOf(`{"model":"m"}`, true))
		c.heard()
		time.Sleep(10 * time.Millisecond)
		c.say(responseHeaders("200", false, "content-type", "text/event-stream"))
		if got := c.heard(); got != "" {
			t.Errorf("headers let through before the first token: %s", got)
		}
		time.Sleep(690 * time.Millisecond)
		c.say(responseBodyOf("data: {\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4}}\n\n", true))
		c.heard()
		c.settled(1)
		for name, want := range map[string]float64{
			"weir_extproc_response_headers_seconds":            0.01,
			"weir_extproc_time_to_first_token_seconds":         0.7,
			"weir_extproc_usage_tokens_total/input":            3,
			"weir_extproc_usage_tokens_total/output":           4,
			"weir_extproc_upstream_responses_total/2xx":        1,
			"weir_extproc_streams_total/FULL_DUPLEX_STREAMED":  1,
			"weir_extproc_streams":                             0,
			"weir_extproc_body_bytes":                          0,
			"weir_extproc_unexpected_messages_total/not there": 0,
		} {
			if got := b.metric(name); got != want {
				t.Errorf("%s: %v, want %v", name, got, want)
			}
		}
	})
}

// metric returns the value of a metric, or the sum of a histogram, by its name and, after a slash, its label's value.
func (b *testbench) metric(name string) float64 {
	b.t.Helper()
	name, label, _ := strings.Cut(name, "/")
	families, err := b.registry.Gather()
	if err != nil {
		b.t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() != name || label != "" && m.GetLabel()[0].GetValue() != label {
				continue
			}
			return m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetHistogram().GetSampleSum()
		}
	}
	return 0
}

// Weir warns once of requests that show a configuration that it cannot follow.
func TestWarningsOfRequests(t *testing.T) {
	usage := func(c *Config) { c.Cost, c.IncludeUsage = CostTokens, true }
	tenants := func(c *Config) { c.FlowKey = []string{"header:x-tenant"} }
	const hidden, part, ask = "does not let the body be read", "is not replaced by its target", "cannot ask for the usage"
	for _, test := range []struct {
		name, mode string
		change     func(*Config)
		headers    []string
		body       string
		warned     string // "" is nothing
	}{
		{"no body is shown", "NONE/NONE", nil, nil, "", hidden},
		{"not before the destination", "STREAMED/NONE", nil, nil, "", hidden},
		{"no body is needed", "NONE/NONE", nil, []string{"x-gateway-model-name", "m"}, "", ""},
		{"a part", "BUFFERED_PARTIAL/NONE", rewriteM, []string{"x-gateway-model-name", "m"}, `{"mod`, part},
		{"a part that is not to be rewritten", "BUFFERED_PARTIAL/NONE", rewriteM, []string{"x-gateway-model-name", "other"}, "", ""},
		{"no answer is shown", "BUFFERED/NONE", usage, []string{"x-gateway-model-name", "m"}, "", ask},
		{"no request is shown", "STREAMED/STREAMED", usage, []string{"x-gateway-model-name", "m"}, "", ask},
		{"both are shown", "BUFFERED/STREAMED", usage, []string{"x-gateway-model-name", "m"}, "", ""},
		{"nothing is asked for", "BUFFERED/NONE", inTokens, []string{"x-gateway-model-name", "m"}, "", ""},
		{
			"a tenant that is not read", "NONE/NONE", tenants,
			[]string{"x-llm-d-inference-fairness-id", "a"},
			"",
			`name it in flows.key" "header"="x-llm-d-inference-fairness-id" "key"="flows.key" "entry"="header:x-llm-d-inference-fairness-id"`,
		},
		{
			"an objective that is not read", "NONE/NONE", tenants,
			[]string{"x-gateway-inference-objective", "a"},
			"",
			`name it in criticality.objectiveHeaders" "header"="x-gateway-inference-objective" "key"="criticality.objectiveHeaders" ` +
				`"entry"="x-gateway-inference-objective"`,
		},
	} {
		inBubble(t, test.mode, test.change, func(c *conversation) {
			for range 2 {
				one := c.open(test.mode)
				one.say(chat(test.headers...))
				if test.body != "" {
					one.say(requestBodyOf(test.body, false))
				}
				one.heard()
				one.end()
			}
			warnings := c.logged.has("WARNING")
			if test.warned == "" && warnings != 0 || test.warned != "" && c.logged.has(test.warned) != 1 {
				t.Errorf("%s: %q", test.name, c.logged.lines)
			}
		})
	}
}

// Envoy's default circuit breaker shows in a number of streams that reaches, or stays at, exactly 1,024.
func TestPlateauIsReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fill := func(n int) (p *plateau, reports *int) {
			reports = new(int)
			p = &plateau{log: funcr.New(func(string, string) { *reports++ }, funcr.Options{})}
			for range n {
				p.enter()
			}
			return p, reports
		}
		churn := func(p *plateau) {
			for range 100 {
				p.leave()
				p.enter()
			}
		}
		churned, reports := fill(envoyDefaultRequests)
		churn(churned)
		time.Sleep(time.Minute)
		synctest.Wait()
		if *reports != 1 {
			t.Errorf("%d reports of streams that come and go at the limit", *reports)
		}
		_, reports = fill(envoyDefaultRequests)
		time.Sleep(time.Minute)
		synctest.Wait()
		if *reports != 1 {
			t.Errorf("%d reports of streams that stand at the limit", *reports)
		}
		above, reports := fill(envoyDefaultRequests + 1)
		above.leave()
		churn(above)
		below, none := fill(envoyDefaultRequests - 1)
		churn(below)
		time.Sleep(time.Minute)
		synctest.Wait()
		if *reports+*none != 0 {
			t.Errorf("%d reports where the limit is another", *reports+*none)
		}
	})
}
