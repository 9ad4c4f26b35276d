package extproc

import (
	"strings"
	"testing"

	aiv3 "github.com/envoyproxy/go-control-plane/envoy/data/ai/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

func askingForUsage(c *Config) { inTokens(c); c.IncludeUsage = true }

// Weir asks for the usage on the client's behalf, and removes it from the stream.
func TestAsksForUsage(t *testing.T) {
	const body, asks = `{"model":"m","stream":true}`, `{"stream_options":{"include_usage":true},"model":"m","stream":true}`
	for _, c := range []struct {
		mode, request, response, kept, changed string
	}{
		{
			"FULL_DUPLEX/FULL_DUPLEX", "headers +x-gateway-destination-endpoint=10.0.0.1:8000 +accept-encoding=identity -content-length " +
				"meta=10.0.0.1:8000; body chunk=" + asks + " end",
			"", "response-body chunk=" + streamOf(1), "response-body chunk=" + doneEvent + " end",
		},
		{
			"BUFFERED/STREAMED", "body +x-gateway-destination-endpoint=10.0.0.1:8000 +accept-encoding=identity +content-length=67 body=" +
				asks + " meta=10.0.0.1:8000",
			"response-headers -content-length", "response-body", "response-body body=" + doneEvent,
		},
	} {
		t.Run(c.mode, func(t *testing.T) {
			inBubble(t, c.mode, askingForUsage, func(conv *conversation) {
				conv.say(chat("content-length", "27"))
				conv.heard()
				conv.say(requestBodyOf(body, true))
				if heard := conv.heard(); heard != c.request {
					t.Errorf("got  %s\nwant %s", heard, c.request)
				}
				conv.say(responseHeaders("200", false, sseHeaders...))
				if heard := conv.heard(); heard != c.response {
					t.Errorf("headers: %s", heard)
				}
				conv.say(responseBodyOf(streamOf(1), false))
				if heard := conv.heard(); !strings.HasSuffix(heard, c.kept) {
					t.Errorf("a part that stays: %s", heard)
				}
				conv.say(responseBodyOf(usageEvent[:10], false))
				conv.say(responseBodyOf(usageEvent[10:], false))
				if heard := conv.heard(); strings.Contains(heard, "usage") {
					t.Errorf("the usage: %s", heard)
				}
				conv.say(responseBodyOf(usageEvent+doneEvent, true))
				if heard := conv.heard(); heard != c.changed {
					t.Errorf("the end: %s", heard)
				}
				conv.settled(1)
				if got := conv.controller.leases[0].completed[0].Cost; got != 120+60 {
					t.Errorf("cost %d", got)
				}
			})
		})
	}
}

// Every other answer keeps every byte: for clients that request the usage, without a stream, or unreadable.
func TestStripsNothingElse(t *testing.T) {
	for _, c := range []struct {
		name, path, body string
		headers          []string
	}{
		{"the client asks", "/v1/chat/completions", `{"model":"m","stream":true,"stream_options":{"include_usage":true}}`, sseHeaders},
		{"no stream", "/v1/chat/completions", `{"model":"m"}`, sseHeaders},
		{"another API", "/v1/responses", `{"model":"m","stream":true}`, sseHeaders},
		{"another path", "/v2/chat", `{"model":"m","stream":true}`, sseHeaders},
		{"JSON", "/v1/chat/completions", `{"model":"m","stream":true}`, []string{"content-type", "application/json"}},
		{"compressed", "/v1/chat/completions", `{"model":"m","stream":true}`, append(sseHeaders[:2:2], "content-encoding", "gzip")},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, "FULL_DUPLEX/FULL_DUPLEX", askingForUsage, func(conv *conversation) {
				conv.say(requestHeaders(false, ":method", "POST", ":path", c.path))
				conv.say(requestBodyOf(c.body, true))
				conv.heard()
				conv.say(responseHeaders("200", false, c.headers...))
				conv.say(responseBodyOf(usageEvent, false))
				if heard := conv.heard(); !strings.HasSuffix(heard, "response-body chunk="+usageEvent) {
					t.Errorf("got %s", heard)
				}
				conv.settled(1)
			})
		})
	}
}

// If Envoy has found that a request does not stream, Weir does not read its body: there is no usage to request.
func TestAsksForNoBodyOfWhatDoesNotStream(t *testing.T) {
	for _, streams := range []bool{false, true} {
		inBubble(t, "BUFFERED/STREAMED", askingForUsage, func(c *conversation) {
			c.say(withRequestInfo(chat(), mustPack(&aiv3.RequestInfo{Model: "m", Stream: wrapperspb.Bool(streams)})))
			if heard := c.heard(); strings.Contains(heard, "10.0.0.1:8000") == streams {
				t.Errorf("streams %v: %s", streams, heard)
			}
		})
	}
}

// The received part of an event cut off by trailers goes on.
func TestTrailersReleaseWhatIsHeld(t *testing.T) {
	inBubble(t, "FULL_DUPLEX/FULL_DUPLEX", askingForUsage, func(c *conversation) {
		c.say(chat())
		c.say(requestBodyOf(`{"model":"m","stream":true}`, true))
		c.say(responseHeaders("200", false, sseHeaders...))
		c.say(responseBodyOf(streamOf(1)+"data: {\"choi", false))
		c.heard()
		c.say(responseTrailers())
		if heard, want := c.heard(), "response-body chunk=data: {\"choi; response-trailers"; heard != want {
			t.Errorf("got %s, want %s", heard, want)
		}
		c.settled(1)
	})
}

// A response still ends if its last part is the usage, which Weir removes.
func TestUsageInTheLastPart(t *testing.T) {
	for mode, want := range map[string]string{
		"FULL_DUPLEX/FULL_DUPLEX": "response-body chunk= end", "BUFFERED/STREAMED": "response-body cleared",
	} {
		inBubble(t, mode, askingForUsage, func(c *conversation) {
			c.say(chat())
			c.say(requestBodyOf(`{"model":"m","stream":true}`, true))
			c.say(responseHeaders("200", false, sseHeaders...))
			c.say(responseBodyOf(streamOf(1), false))
			c.heard()
			c.say(responseBodyOf(usageEvent, true))
			if heard := c.heard(); heard != want {
				t.Errorf("%s: got %s, want %s", mode, heard, want)
			}
			c.settled(1)
		})
	}
}
