package extproc

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	modev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/request"
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

// quickController grants at once and records nothing.
type quickController struct{}

func (quickController) TryEnqueue(context.Context, *flowcontrol.Request) (Lease, error) {
	return quickLease{}, nil
}

func (quickController) PassOn(*flowcontrol.Request) (Lease, error) { return quickLease{}, nil }

func (quickController) Waiting() int { return 0 }
func (quickController) Ready() int   { return 1 }

func (quickController) Refuse(_, _, _, _ string, err error) *flowcontrol.Rejection {
	return rejectionOf(err)
}

type quickLease struct{}

func (quickLease) Preempted() <-chan struct{}                { return nil }
func (quickLease) Queued() (time.Duration, bool)             { return 0, false }
func (quickLease) Quota() *flowcontrol.QuotaStanding         { return nil }
func (quickLease) OnFirstByte() error                        { return nil }
func (quickLease) OnPrefilled()                              {}
func (quickLease) OnFirstToken()                             {}
func (quickLease) AwaitsFirstToken() bool                    { return false }
func (quickLease) OnServed(flowcontrol.Endpoint, int)        {}
func (quickLease) OnCost(fairqueue.Cost, flowcontrol.Tokens) {}
func (quickLease) OnExpected(fairqueue.Cost)                 {}
func (quickLease) Facts() *flowcontrol.Facts                 { return nil }
func (quickLease) OnRequestComplete(flowcontrol.Completion)  {}

func benchmark(b *testing.B, messages ...*extprocv3.ProcessingRequest) {
	benchmarkWith(b, nil, messages...)
}

func benchmarkWith(b *testing.B, change func(*Config), messages ...*extprocv3.ProcessingRequest) {
	bench := newBench(b, change)
	bench.server.controller = quickController{}
	messages[0].ProtocolConfig = &extprocv3.ProtocolConfiguration{RequestBodyMode: requestModes[request.Buffered]}
	stream := &replay{messages: messages}
	b.ReportAllocs()
	for b.Loop() {
		stream.next, stream.sent = 0, 0
		if err := bench.server.Process(stream); err != nil || stream.sent == 0 {
			b.Fatal(err)
		}
	}
}

// envoyHeaders are the headers of an Envoy and the openai client.
var envoyHeaders = []string{
	":scheme", "http", ":authority", "gateway.example", "accept", "application/json", "accept-encoding", "gzip, deflate",
	"authorization", "Bearer 0123456789abcdef", "user-agent", "OpenAI/Python 2.54.0", "x-stainless-lang", "python",
	"x-stainless-os", "Linux", "x-stainless-runtime", "CPython", "x-stainless-retry-count", "0",
	"x-forwarded-for", "10.1.2.3", "x-forwarded-proto", "http", "x-request-id", "2f0a8a3e-2b8e-4f64-9d0d-1f2b3c4d5e6f",
	"content-length", "1024",
}

// BenchmarkHeadersOnly measures this package's cost for a request without a body to read.
func BenchmarkHeadersOnly(b *testing.B) {
	benchmark(b, chat(append(envoyHeaders, "x-gateway-model-name", "m")...), responseHeaders("200", false))
}

// BenchmarkGated measures both streams of such a request with a first-token gate; the main filter skips response
// headers.
func BenchmarkGated(b *testing.B) {
	bench := newBench(b, nil)
	bench.server.controller = quickController{}
	bench.server.links.presence.appeared()
	for range gateRun {
		bench.server.links.presence.passed()
	}
	message := chat(append(envoyHeaders, "x-gateway-model-name", "m")...)
	message.ProtocolConfig = &extprocv3.ProtocolConfiguration{RequestBodyMode: requestModes[request.Buffered]}
	answer := responseHeaders("200", false, sseHeaders...)
	answer.ProtocolConfig = &extprocv3.ProtocolConfiguration{
		ResponseBodyMode: modev3.ProcessingMode_STREAMED, SendBodyWithoutWaitingForHeaderResponse: true,
	}
	gate := &replay{messages: []*extprocv3.ProcessingRequest{answer, responseBodyOf("data: x\n\n", false)}}
	id := structpb.NewStringValue("")
	answer.MetadataContext = metadataOf(weirNamespace, linkKey, id)
	named := &structpb.Value_StringValue{}
	id.Kind = named
	main := &gatedReplay{replay: replay{messages: []*extprocv3.ProcessingRequest{message}}, after: func() {
		for id := range bench.server.links.byID { // the one in flight; reading it in the reply would be measured
			named.StringValue = id
		}
		gate.next = 0
		if err := bench.server.Process(gate); err != nil {
			b.Fatal(err)
		}
	}}
	b.ReportAllocs()
	for b.Loop() {
		main.next, gate.sent = 0, 0
		if err := bench.server.Process(main); err != nil || gate.sent != 2 {
			b.Fatal(gate.sent, err)
		}
	}
}

// gatedReplay plays a gate's stream once the main stream has answered its request.
type gatedReplay struct {
	replay
	after func()
}

func (r *gatedReplay) Recv() (*extprocv3.ProcessingRequest, error) {
	if r.next == len(r.messages) {
		r.after()
	}
	return r.replay.Recv()
}

// BenchmarkBody1KB measures a request with a body of 1 KB to read.
func BenchmarkBody1KB(b *testing.B) {
	text := make([]byte, 1000)
	for i := range text {
		text[i] = 'x'
	}
	benchmark(b, chat(envoyHeaders...), requestBodyOf(`{"model":"m","prompt":"`+string(text)+`"}`, true), responseHeaders("200", false))
}

// noop does the least work of an ext_proc server: it gives every request the same destination, in header and metadata.
type noop struct {
	extprocv3.UnimplementedExternalProcessorServer
	placed *extprocv3.ProcessingResponse
}

func (n *noop) Process(s extprocv3.ExternalProcessor_ProcessServer) error {
	for {
		m, err := s.Recv()
		if err != nil {
			return nil
		}
		answer := n.placed
		if m.GetResponseHeaders() != nil {
			answer = emptyResponseHeaders
		}
		if err := s.Send(answer); err != nil {
			return nil
		}
	}
}

// BenchmarkWire compares whole requests over loopback, with client and server in one process, to show Weir's cost
// beyond gRPC's.
func BenchmarkWire(b *testing.B) {
	bench := newBench(b, nil)
	bench.server.controller = quickController{}
	c := bench.server.config.Load()
	k := replyKey{destination: "10.0.0.1:8000", remove: request.ContentLengthSlot, override: true}
	servers := []struct {
		name   string
		server extprocv3.ExternalProcessorServer
	}{{"noop", &noop{placed: c.replies.shared(k)}}, {"weir", bench.server}}
	message := chat(append(envoyHeaders, "x-gateway-model-name", "m")...)
	message.ProtocolConfig = &extprocv3.ProtocolConfiguration{RequestBodyMode: requestModes[request.Buffered]}
	for _, s := range servers {
		b.Run(s.name, func(b *testing.B) {
			benchmarkWire(b, s.server, message, responseHeaders("200", false))
		})
	}
}

// benchmarkWire measures exchanges of these messages with a server, over loopback.
func benchmarkWire(b *testing.B, server extprocv3.ExternalProcessorServer, messages ...*extprocv3.ProcessingRequest) {
	client := serve(b, server)
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			exchange(b, client, messages...)
		}
	})
}

// exchange sends each message and waits for its answer, and then for the end.
func exchange(b *testing.B, client extprocv3.ExternalProcessorClient, messages ...*extprocv3.ProcessingRequest) {
	s, err := client.Process(context.Background())
	if err != nil {
		b.Error(err)
		return
	}
	for _, m := range messages {
		if err := s.Send(m); err != nil {
			b.Error(err)
		}
		if _, err := s.Recv(); err != nil {
			b.Error(err)
		}
	}
	_ = s.CloseSend()
	if _, err := s.Recv(); !errors.Is(err, io.EOF) {
		b.Error(err)
	}
}

// BenchmarkMetadata is BenchmarkHeadersOnly with the decision in dynamic metadata (responses.metadata).
func BenchmarkMetadata(b *testing.B) {
	benchmarkWith(b, func(cfg *Config) { cfg.Responses.Metadata = true },
		chat(append(envoyHeaders, "x-gateway-model-name", "m")...), responseHeaders("200", false))
}
