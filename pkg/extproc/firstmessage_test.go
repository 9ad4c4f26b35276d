package extproc

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"

	modev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weir-epp/weir/pkg/request"
)

// If the first message fits both, the role in the stream's metadata decides between a main filter and a gate. It never
// makes Weir hold a response that Envoy would not release. An unknown role is ignored.
func TestRoleOfAFilter(t *testing.T) {
	gateModes := &extprocv3.ProtocolConfiguration{
		ResponseBodyMode: modev3.ProcessingMode_STREAMED, SendBodyWithoutWaitingForHeaderResponse: true,
	}
	waits := &extprocv3.ProtocolConfiguration{ResponseBodyMode: modev3.ProcessingMode_STREAMED}
	for name, test := range map[string]struct {
		role   string
		modes  *extprocv3.ProtocolConfiguration
		gate   bool
		warned string
	}{
		"none, in a gate's modes":          {"", gateModes, true, ""},
		"none, in others":                  {"", waits, false, ""},
		"gate":                             {"gate", gateModes, true, ""},
		"gate, in modes that cannot hold":  {"gate", waits, false, "cannot hold response headers"},
		"main, in a gate's modes":          {"main", gateModes, false, ""},
		"an unknown one, in a gate's":      {"Gate", gateModes, true, "unknown role"},
		"an unknown one, in other modes":   {"x", waits, false, "unknown role"},
		"gate, of an Envoy without modes":  {"gate", nil, false, "cannot hold response headers"},
		"an empty one, in a gate's modes":  {" ", gateModes, true, "unknown role"},
		"main, as any other stream begins": {"main", waits, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, nil)
				client, stop := b.dial()
				defer stop()
				for range 2 {
					ctx := t.Context()
					if test.role != "" {
						ctx = metadata.AppendToOutgoingContext(ctx, "x-weir-role", test.role)
					}
					answers := firstAnswers(ctx, t, client, test.modes)
					if answers != "response-headers" {
						t.Errorf("answered %q", answers)
					}
				}
				if got := b.server.links.presence.likely(); got != test.gate {
					t.Errorf("taken for a gate: %v", got)
				}
				if test.warned != "" && b.logged.has(test.warned) != 1 || b.logged.has(" role ") > 1 {
					t.Errorf("warnings: %v", b.logged.lines)
				}
			})
		})
	}
}

// firstAnswers opens a stream that begins with the headers of an error response, and returns the replies.
func firstAnswers(ctx context.Context, t *testing.T, client extprocv3.ExternalProcessorClient, p *extprocv3.ProtocolConfiguration) string {
	t.Helper()
	s, err := client.Process(ctx)
	if err != nil {
		t.Fatal(err)
	}
	m := responseHeaders("404", true)
	m.ProtocolConfig = p
	send(t, s, m)
	got := receive(t, s)
	_ = s.CloseSend()
	if _, err := s.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("the stream ended with %v", err)
	}
	return got
}

// A request is never taken for a gate's response, whatever role its filter has: it would bypass the queue.
func TestRequestIsARequestInAnyRole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		client, stop := b.dial()
		defer stop()
		s, err := client.Process(metadata.AppendToOutgoingContext(t.Context(), "x-weir-role", "gate"))
		if err != nil {
			t.Fatal(err)
		}
		m := chat("x-gateway-model-name", "m")
		m.ProtocolConfig = &extprocv3.ProtocolConfiguration{
			ResponseBodyMode: modev3.ProcessingMode_STREAMED, SendBodyWithoutWaitingForHeaderResponse: true,
		}
		send(t, s, m)
		receive(t, s)
		_ = s.CloseSend()
		synctest.Wait()
		if len(b.controller.requests) != 1 {
			t.Errorf("%d requests offered", len(b.controller.requests))
		}
	})
}

// An earlier filter has placed a request that comes with a destination. In every mode it goes on unchanged, without a
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
	// A client's header is not metadata, and the serving endpoint is not a destination.
	inBubble(t, "NONE/NONE", nil, func(c *conversation) {
		m := chat("x-gateway-destination-endpoint", "10.0.0.1:8000")
		m.MetadataContext = metadataOf("envoy.lb", "x-gateway-destination-endpoint-served", structpb.NewStringValue("10.0.0.1:8000"))
		c.say(m)
		c.heard()
		c.settled(1)
	})
}
