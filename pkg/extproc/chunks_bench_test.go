package extproc

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"syscall"
	"testing"
	"time"

	modev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/weir-epp/weir/pkg/extproc/codec"
	"github.com/weir-epp/weir/pkg/request"
)

// chunk is an event of a streamed chat completion in vLLM's form.
const chunk = `data: {"id":"chatcmpl-7b0d3e0d2d4f4b0e9a4a3d2c1b0a9f8e","object":"chat.completion.chunk","created":1764000000,` +
	`"model":"meta-llama/Llama-3.1-8B-Instruct","choices":[{"index":0,"delta":{"content":" the"},"logprobs":null,` +
	`"finish_reason":null,"token_ids":null}]}` + "\n\n"

// noopChunks answers every message of a response with an empty reply, or returns its parts.
type noopChunks struct {
	extprocv3.UnimplementedExternalProcessorServer
	placed *extprocv3.ProcessingResponse
	echo   bool
}

func (n *noopChunks) Process(s extprocv3.ExternalProcessor_ProcessServer) error {
	for {
		m, err := s.Recv()
		if err != nil {
			return nil
		}
		answer := n.placed
		switch kindOf(m) {
		case responseHeadersKind:
			answer = emptyResponseHeaders
		case responseBodyKind:
			answer = emptyResponseBody
			if n.echo {
				answer = codec.ResponseChunk(m.GetResponseBody().GetBody(), ends(m.GetResponseBody()))
			}
		default:
		}
		if err := s.Send(answer); err != nil {
			return nil
		}
	}
}

// BenchmarkChunks measures the cost of a chunk of a streamed response in both modes that show chunks: with a no-op
// processor, with Weir without usage, and with usage, in turn. An operation is one such turn. The figures are the
// processor time of client and server together for a chunk, and the differences between neighbours; medians of all
// turns.
func BenchmarkChunks(b *testing.B) {
	for _, mode := range []struct {
		name string
		mode modev3.ProcessingMode_BodySendMode
	}{{"STREAMED", modev3.ProcessingMode_STREAMED}, {"FULL_DUPLEX_STREAMED", modev3.ProcessingMode_FULL_DUPLEX_STREAMED}} {
		b.Run(mode.name, func(b *testing.B) { benchmarkChunks(b, mode.mode) })
	}
}

func benchmarkChunks(b *testing.B, mode modev3.ProcessingMode_BodySendMode) {
	weir := func(way UsageWay) *Server {
		bench := newBench(b, func(c *Config) { inTokens(c); c.Usage = way })
		bench.server.controller = quickController{}
		return bench.server
	}
	with, without := weir(UsageAuto), weir(UsageNone)
	c := with.config.Load()
	placed := c.replies.shared(replyKey{destination: "10.0.0.1:8000", remove: request.ContentLengthSlot})
	noop := &noopChunks{placed: placed, echo: mode == modev3.ProcessingMode_FULL_DUPLEX_STREAMED}
	var clients []extprocv3.ExternalProcessorClient
	for _, server := range []extprocv3.ExternalProcessorServer{noop, without, with} {
		clients = append(clients, serve(b, server))
	}
	request := chat(append(envoyHeaders, "x-gateway-model-name", "m")...)
	request.ProtocolConfig = &extprocv3.ProtocolConfiguration{ResponseBodyMode: mode}
	const chunks = 200
	measure := func(client extprocv3.ExternalProcessorClient) float64 {
		s, err := client.Process(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		say := func(m *extprocv3.ProcessingRequest) {
			if err := s.Send(m); err != nil {
				b.Fatal(err)
			}
		}
		hear := func() {
			if _, err := s.Recv(); err != nil {
				b.Fatal(err)
			}
		}
		say(request)
		hear()
		say(responseHeaders("200", false, sseHeaders...))
		if !noop.echo || client == clients[0] { // otherwise they wait for the first token
			hear()
		}
		part := responseBodyOf(chunk, false)
		say(part)
		if noop.echo && client != clients[0] {
			hear()
		}
		hear()
		before := processorTime(b)
		for range chunks {
			say(part)
			hear()
		}
		used := processorTime(b) - before
		_ = s.CloseSend()
		if _, err := s.Recv(); !errors.Is(err, io.EOF) {
			b.Fatal(err)
		}
		return float64(used) / chunks
	}
	var used [3][]float64
	for b.Loop() {
		for i := range clients {
			used[i] = append(used[i], measure(clients[i]))
		}
	}
	// The machine is never idle for long, so neighbours are compared.
	median := func(of func(turn int) float64) float64 {
		var all []float64
		for turn := range used[0] {
			all = append(all, of(turn))
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	b.ReportMetric(median(func(t int) float64 { return used[0][t] }), "noop-ns/chunk")
	b.ReportMetric(median(func(t int) float64 { return used[1][t] - used[0][t] }), "none-over-noop-ns/chunk")
	b.ReportMetric(median(func(t int) float64 { return used[2][t] - used[0][t] }), "usage-over-noop-ns/chunk")
	b.ReportMetric(median(func(t int) float64 { return used[2][t] - used[1][t] }), "usage-over-none-ns/chunk")
}

// serve serves on loopback and returns a client.
func serve(b *testing.B, server extprocv3.ExternalProcessorServer) extprocv3.ExternalProcessorClient {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	g := grpc.NewServer(grpc.ForceServerCodecV2(codec.New()))
	extprocv3.RegisterExternalProcessorServer(g, server)
	go func() { _ = g.Serve(listener) }()
	b.Cleanup(g.Stop)
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	return extprocv3.NewExternalProcessorClient(conn)
}

// processorTime returns the processor time that this process has used.
func processorTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
