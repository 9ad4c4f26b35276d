package extproc

import (
	"testing"

	aiv3 "github.com/envoyproxy/go-control-plane/envoy/data/ai/v3"

	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// The tokens of an answer go to the request's flow under the model that a trusted header names, where no body is read.
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
	// An answer that was cut short has told only a part: nothing is known.
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
