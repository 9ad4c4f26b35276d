package integration

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/modelsim"
)

// A tenant uses up its quota of tokens. The real usage of each answer counts, as the engine reports it. The rejection
// of the next request has the time at which it has room, in OpenAI's headers too, while another tenant is served. A
// reload of the quota keeps the usage.
func TestQuotaOnTheWire(t *testing.T) {
	t.Parallel()
	config := func(tokens int) string {
		return inTokens + `tokens: { output: { coldStart: 100 } }
flows: { key: ["header:x-llm-d-inference-fairness-id", model] }
tenantPolicies: { ada: { quota: { tokens: ` + strconv.Itoa(tokens) + `, window: 1h } } }
`
	}
	file := newConfigFile(t, config(1000))
	server := modelsim.Fixed(4, time.Millisecond)
	s := start(t, setup{models: []modelsim.Config{server}, flags: []string{"--config-file=" + file.path}})
	uses := func(tenant string, in, out int) answer {
		return s.send(ask{tenant: tenant, path: "/v1/completions", body: completion(in, out)})
	}
	limits := func(a answer) string {
		var all []string
		for _, name := range []string{"limit", "remaining", "reset"} {
			all = append(all, a.header.Get("x-ratelimit-"+name+"-tokens"))
		}
		return strings.Join(all, " ")
	}
	first := uses("ada", 300, 100)
	wantServed(t, "the first", first)
	estimated, err := strconv.Atoi(first.header.Get("x-ratelimit-remaining-tokens"))
	if got := limits(first); err != nil || estimated < 500 || estimated > 700 || !strings.HasPrefix(got, "1000 ") || !strings.HasSuffix(got, " 1h0m0s") {
		t.Errorf("got %s after a request of about 400 tokens", got)
	}
	s.epp.settled() // by then its usage counts
	second := uses("ada", 300, 100)
	wantServed(t, "the second", second)
	s.epp.settled()
	left, err := strconv.Atoi(second.header.Get("x-ratelimit-remaining-tokens"))
	if err != nil || left > 250 || left < 150 {
		t.Errorf("after 800 of 1000 tokens %d are left: %v", left, err)
	}
	third := uses("ada", 300, 100)
	if third.status != 429 || third.reason() != "quota-exceeded" || third.failure(t).Error.Type != "rate_limit_error" {
		t.Fatalf("the third: %d %s %s", third.status, third.reason(), third.body)
	}
	if seconds, err := strconv.Atoi(third.header.Get("retry-after")); err != nil || seconds < 3000 || seconds > 3600 {
		t.Errorf("come back after %q", third.header.Get("retry-after"))
	}
	if got := third.header.Get("x-ratelimit-limit-tokens"); got != "1000" {
		t.Errorf("its limit is %s", got)
	}
	other := uses("bob", 300, 100)
	wantServed(t, "another tenant", other)
	if limits(other) != "  " {
		t.Errorf("another tenant gets %s", limits(other))
	}
	wantServed(t, "what is left", uses("ada", 50, 50))
	file.write(config(1300))
	s.epp.reloaded(1, 0, 1)
	wantServed(t, "after a reload", uses("ada", 200, 100))
	if got := uses("ada", 300, 100); got.reason() != "quota-exceeded" {
		t.Errorf("after 1200 of 1300 tokens: %d %s", got.status, got.reason())
	}
	s.epp.waitFor(2, "weir_requests_total", "outcome", "quota-exceeded")
	s.epp.waitFor(1, "weir_quota_tenants")
	s.epp.settled()
}
