package extproc

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// longPrompt has an estimate of 100 tokens, and its answer of 500.
var longPrompt = `{"model":"m","prompt":"` + strings.Repeat("abcd", 100) + `","max_tokens":500}`

// With quotas, the controller gets each request's tenant and its estimate in plain tokens. Requests without a tenant
// are anonymous's.
func TestQuotasNeedTheTenantsName(t *testing.T) {
	metered := func(c *Config) { inTokens(c); c.Quotas = true }
	for name, test := range map[string]struct {
		configure func(*Config)
		headers   []string
		tenant    string
		uses      int64
	}{
		"a tenant":       {metered, []string{"x-tenant", "ada"}, "ada", 100 + 500},
		"nobody":         {metered, nil, "anonymous", 100 + 500},
		"a stated cost":  {metered, []string{"x-tenant", "ada", "x-cost", "70"}, "ada", 0},
		"without quotas": {inTokens, []string{"x-tenant", "ada"}, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, "BUFFERED/NONE", func(c *Config) {
				test.configure(c)
				c.FlowKey, c.TrustedHeaders.Cost = []string{"header:x-tenant", "model"}, "x-cost"
			}, func(c *conversation) {
				c.say(chat(test.headers...))
				c.heard()
				c.say(requestBodyOf(longPrompt, true))
				c.heard()
				r := c.controller.requests[0]
				if r.Tenant != test.tenant || r.Uses != test.uses {
					t.Errorf("%q uses %d tokens", r.Tenant, r.Uses)
				}
			})
		})
	}
}

// A tenant with a quota gets its standing with the answer and with a rejection, in OpenAI's headers and formats.
func TestQuotaHeaders(t *testing.T) {
	standing := &flowcontrol.QuotaStanding{Limit: 1000, Remaining: 250, Reset: 6*time.Minute + 1500*time.Microsecond}
	inBubble(t, "NONE/NONE", nil, func(c *conversation) {
		c.controller.quota = standing
		c.say(chat("x-gateway-model-name", "m"))
		c.heard()
		c.say(responseHeaders("200", false))
		const want = "response-headers +x-ratelimit-limit-tokens=1000 +x-ratelimit-remaining-tokens=250 +x-ratelimit-reset-tokens=6m0.002s"
		if got := c.heard(); got != want {
			t.Errorf("got %s", got)
		}
	})
	inBubble(t, "NONE/NONE", nil, func(c *conversation) {
		c.controller.quota, c.controller.reject = standing, flowcontrol.ErrQuotaExceeded
		c.say(chat("x-gateway-model-name", "m"))
		got := c.rejection()
		want := map[string]string{
			"content-type": "application/json", "x-weir-reason": "quota-exceeded", "x-llm-d-request-dropped-reason": "quota-exceeded",
			"retry-after": "2", "retry-after-ms": "1500",
			"x-ratelimit-limit-tokens": "1000", "x-ratelimit-remaining-tokens": "250", "x-ratelimit-reset-tokens": "6m0.002s",
		}
		if !maps.Equal(got, want) {
			t.Errorf("got %v", got)
		}
	})
}

// A response without room goes without these headers. The queue's state goes before them.
func TestQuotaHeadersNeedRoom(t *testing.T) {
	for _, test := range []struct {
		headers int
		want    string
	}{
		{95, " +x-weir-queued-ms=0 +x-weir-queue-length=0 +x-ratelimit-limit-tokens=9 +x-ratelimit-remaining-tokens=8 +x-ratelimit-reset-tokens=0s"},
		{96, " +x-ratelimit-limit-tokens=9 +x-ratelimit-remaining-tokens=8 +x-ratelimit-reset-tokens=0s"},
		{97, " +x-ratelimit-limit-tokens=9 +x-ratelimit-remaining-tokens=8 +x-ratelimit-reset-tokens=0s"},
		{98, ""},
	} {
		inBubble(t, "NONE/NONE", tellingState, func(c *conversation) {
			c.controller.quota = &flowcontrol.QuotaStanding{Limit: 9, Remaining: 8}
			c.say(chat("x-weir-queue-state", "1"))
			c.heard()
			c.say(responseOf(test.headers, 10_000))
			if got := c.heard(); got != "response-headers"+test.want {
				t.Errorf("beside %d headers: %s", test.headers, got)
			}
		})
	}
}

// At the end the quota gets the tokens of prompt and answer. A request that its engine refused, or that never reached
// one, counts nothing. A request whose client left before the usage counts its estimate.
func TestUsedOfTheQuota(t *testing.T) {
	for name, test := range map[string]struct {
		run      func(c *conversation)
		used     int64
		unserved bool
	}{
		"usage": {func(c *conversation) {
			c.say(responseHeaders("200", false, "content-type", "application/json"))
			c.say(responseBodyOf(`{"usage":{"prompt_tokens":120,"completion_tokens":30,"prompt_tokens_details":{"cached_tokens":100}}}`, true))
		}, 150, false},
		"no usage": {func(c *conversation) {
			c.say(responseHeaders("200", false, "content-type", "text/event-stream"))
			c.say(responseBodyOf(streamOf(1), false))
		}, 600, false},
		"an error of the engine": {func(c *conversation) {
			c.say(responseHeaders("500", false, "content-type", "application/json"))
			c.say(responseBodyOf(`{}`, true))
		}, 0, true},
		"a refusal of the engine": {func(c *conversation) {
			c.say(responseHeaders("400", false, "content-type", "application/json"))
			c.say(responseBodyOf(`{}`, true))
		}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, "FULL_DUPLEX/FULL_DUPLEX", inTokens, func(c *conversation) {
				c.say(chat("x-gateway-model-name", "m"))
				c.say(requestBodyOf(longPrompt, true))
				c.heard()
				test.run(c)
				c.settled(1)
				done := c.controller.leases[0].completed[0]
				if done.Used != test.used || done.Unserved != test.unserved {
					t.Errorf("%+v", done)
				}
			})
		})
	}
}
