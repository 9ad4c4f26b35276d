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
)

// The role in the metadata of a stream decides between a main filter and a gate where the first message could be either.
// It never makes Weir hold what Envoy would not release, and an unknown one is ignored.
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
				if got := b.server.presence.likely(); got != test.gate {
					t.Errorf("taken for a gate: %v", got)
				}
				if test.warned != "" && b.logged.has(test.warned) != 1 || b.logged.has(" role ") > 1 {
					t.Errorf("warnings: %v", b.logged.lines)
				}
			})
		})
	}
}

// firstAnswers opens a stream that begins with the headers of an error response, and returns what is answered.
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

// A request is never taken for a gate's response, whatever role its filter has: it would go unqueued.
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
