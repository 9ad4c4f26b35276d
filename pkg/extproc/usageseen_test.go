package extproc

import (
	"maps"
	"testing"
	"time"

	aiv3 "github.com/envoyproxy/go-control-plane/envoy/data/ai/v3"

	"github.com/weir-epp/weir/pkg/metering"
)

// The metrics of usage tell how and when it came, and how many answers had none. Refused requests have nothing to report.
func TestUsageSeen(t *testing.T) {
	exchange := func(b *testbench, mode, status string, rest ...func(c *conversation)) {
		c := b.open(mode)
		c.say(chat("x-gateway-model-name", "m"))
		c.say(requestBodyOf(`{"prompt":"x"}`, true))
		c.heard()
		c.say(responseHeaders(status, false, "content-type", "application/json"))
		for _, more := range rest {
			more(c)
		}
		c.heard()
		c.end()
	}
	inBubble(t, "FULL_DUPLEX/NONE", inTokens, func(c *conversation) {
		var toldAt, readAt time.Time
		exchange(c.testbench, "FULL_DUPLEX/NONE", "200", func(c *conversation) {
			c.say(told(aiv3.TokenUsage_COMPLETE, 120, 20, 30))
			toldAt = time.Now()
		})
		time.Sleep(time.Minute)
		exchange(c.testbench, "FULL_DUPLEX/FULL_DUPLEX", "200", func(c *conversation) {
			c.say(responseBodyOf(`{"choices":[],"usage":{"prompt_tokens":120,"completion_tokens":30}}`, true))
			readAt = time.Now()
		})
		time.Sleep(time.Minute)
		exchange(c.testbench, "FULL_DUPLEX/NONE", "200")
		exchange(c.testbench, "FULL_DUPLEX/NONE", "400")
		seen := c.server.UsageSeen()
		if want := map[metering.Way]time.Time{metering.Trailers: toldAt, metering.Body: readAt}; !maps.Equal(seen.Last, want) {
			t.Errorf("%v, want %v", seen.Last, want)
		}
		if seen.Answers != 3 || seen.Unknown != 1 {
			t.Errorf("%d of %d without usage, want 1 of 3", seen.Unknown, seen.Answers)
		}
	})
}
