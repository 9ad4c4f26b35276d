package extproc

import (
	"context"
	"io"
	"testing"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"

	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// replay is a stream that plays the same messages to every handler.
type replay struct {
	grpc.ServerStream
	messages []*extprocv3.ProcessingRequest
	next     int
	sent     int
}

func (r *replay) Context() context.Context { return context.Background() }

func (r *replay) Recv() (*extprocv3.ProcessingRequest, error) {
	if r.next == len(r.messages) {
		return nil, io.EOF
	}
	r.next++
	return r.messages[r.next-1], nil
}

func (r *replay) Send(*extprocv3.ProcessingResponse) error { r.sent++; return nil }

// quickController grants at once and keeps nothing.
type quickController struct{}

func (quickController) TryEnqueue(context.Context, *flowcontrol.Request) (Lease, error) {
	return quickLease{}, nil
}

func (quickController) PassOn(*flowcontrol.Request) (Lease, error) { return quickLease{}, nil }

func (quickController) Refuse(_, _ string, err error) *flowcontrol.Rejection { return rejectionOf(err) }

type quickLease struct{}

func (quickLease) Preempted() <-chan struct{}               { return nil }
func (quickLease) OnFirstByte() error                       { return nil }
func (quickLease) OnRequestComplete(flowcontrol.Completion) {}

func benchmark(b *testing.B, messages ...*extprocv3.ProcessingRequest) {
	bench := newBench(b, nil)
	bench.server.controller = quickController{}
	messages[0].ProtocolConfig = &extprocv3.ProtocolConfiguration{RequestBodyMode: requestModes[modeBuffered]}
	stream := &replay{messages: messages}
	b.ReportAllocs()
	for b.Loop() {
		stream.next, stream.sent = 0, 0
		if err := bench.server.Process(stream); err != nil || stream.sent == 0 {
			b.Fatal(err)
		}
	}
}

// envoyHeaders are what an Envoy adds and what the openai client sends.
var envoyHeaders = []string{
	":scheme", "http", ":authority", "gateway.example", "accept", "application/json", "accept-encoding", "gzip, deflate",
	"authorization", "Bearer 0123456789abcdef", "user-agent", "OpenAI/Python 2.54.0", "x-stainless-lang", "python",
	"x-stainless-os", "Linux", "x-stainless-runtime", "CPython", "x-stainless-retry-count", "0",
	"x-forwarded-for", "10.1.2.3", "x-forwarded-proto", "http", "x-request-id", "2f0a8a3e-2b8e-4f64-9d0d-1f2b3c4d5e6f",
	"content-length", "1024",
}

// BenchmarkHeadersOnly is everything that this package adds to a request whose headers say enough.
func BenchmarkHeadersOnly(b *testing.B) {
	benchmark(b, chat(append(envoyHeaders, "x-gateway-model-name", "m")...), responseHeaders("200", false))
}

// BenchmarkBody1KB is the same with a body of 1 KB to read.
func BenchmarkBody1KB(b *testing.B) {
	text := make([]byte, 1000)
	for i := range text {
		text[i] = 'x'
	}
	benchmark(b, chat(envoyHeaders...), requestBodyOf(`{"model":"m","prompt":"`+string(text)+`"}`, true), responseHeaders("200", false))
}
