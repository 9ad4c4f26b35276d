package extproc

import (
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weir-epp/weir/pkg/request"
)

// A request that has its destination already was placed by an earlier filter. In every mode it goes on unchanged, without a
// lease or an outcome. It is counted, and Weir warns once.
func TestPlacedBefore(t *testing.T) {
	for mode, want := range map[string]string{
		"NONE/NONE":               "headers override=NONE/NONE no-headers WITHOUT COMPLETION",
		"BUFFERED/NONE":           "headers override=NONE/NONE no-headers WITHOUT COMPLETION; body; response-headers",
		"STREAMED/STREAMED":       "headers override=NONE/NONE no-headers WITHOUT COMPLETION; body; response-headers",
		"FULL_DUPLEX/FULL_DUPLEX": "headers; body chunk=x end; response-headers",
	} {
		inBubble(t, mode, nil, func(c *conversation) {
			m := chat("x-gateway-destination-endpoint", "10.0.0.1:8000")
			m.MetadataContext = metadataOf("envoy.lb", request.DestinationHeader, structpb.NewStringValue("10.0.0.1:8000"))
			c.say(m)
			if mode != "NONE/NONE" {
				c.say(requestBodyOf("x", true))
				c.say(responseHeaders("200", true))
			}
			if got := c.heard(); got != want {
				t.Errorf("%s: got %s, want %s", mode, got, want)
			}
			c.settled(0)
			if len(c.controller.requests) > 0 || c.counted("weir_extproc_placed_before_total") != 1 ||
				c.counted("weir_extproc_unexpected_messages_total") != 0 {
				t.Errorf("%s: %d offered, %v counted", mode, len(c.controller.requests), c.counted("weir_extproc_placed_before_total"))
			}
			again := c.open(mode)
			m = chat()
			m.MetadataContext = metadataOf("envoy.lb", request.DestinationHeader, structpb.NewStringValue("10.0.0.1:8000"))
			again.say(m)
			again.settled(0)
			if n := c.logged.has("has its destination already"); n != 1 {
				t.Errorf("%d warnings", n)
			}
		})
	}
	// A client's header is not metadata, and the endpoint that served is not a destination.
	inBubble(t, "NONE/NONE", nil, func(c *conversation) {
		m := chat("x-gateway-destination-endpoint", "10.0.0.1:8000")
		m.MetadataContext = metadataOf("envoy.lb", "x-gateway-destination-endpoint-served", structpb.NewStringValue("10.0.0.1:8000"))
		c.say(m)
		c.heard()
		c.settled(1)
	})
}
