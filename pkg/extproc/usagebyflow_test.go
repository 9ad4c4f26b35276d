package extproc

import (
	"testing"

	aiv3 "github.com/envoyproxy/go-control-plane/envoy/data/ai/v3"

	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// If no body is read, the tokens of an answer count for the request's flow and the model in a trusted header.
func TestUsageByFlowAndModel(t *testing.T) {
	inBubble(t, "NONE/NONE", func(cfg *Config) { inTokens(cfg); tenants(cfg) }, func(c *conversation) {
		c.say(chat(ofAlice()...))
		c.heard()
		c.say(responseHeaders("200", false, "content-type", "text/event-stream"))
		c.say(told(aiv3.TokenUsage_COMPLETE, 100, 64, 7))
		c.heard()
		c.settled(1)
		if r := c.controller.requests[0]; r.Flow != "alice" || r.Model != "m" {
			t.Errorf("flow %q, model %q", r.Flow, r.Model)
		}
		if got := c.controller.leases[0].completed[0].Usage; got != (flowcontrol.Usage{Input: 100, Output: 7, Cached: 64}) {
			t.Errorf("usage %+v", got)
		}
	})
	// A truncated answer reports only a part: its usage is unknown.
	inBubble(t, "NONE/NONE", inTokens, func(c *conversation) {
		c.say(chat(ofAlice()...))
		c.heard()
		c.say(responseHeaders("200", false, "content-type", "text/event-stream"))
		c.say(told(aiv3.TokenUsage_PARTIAL, 100, 64, 7))
		c.heard()
		c.settled(1)
		if got := c.controller.leases[0].completed[0].Usage; got != (flowcontrol.Usage{}) {
			t.Errorf("of a part: usage %+v", got)
		}
	})
}
