package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"runtime/debug"
	"sync/atomic"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/protobuf/proto"

	"github.com/weir-epp/weir/cmd/epp/app"
	"github.com/weir-epp/weir/internal/scene"
)

// runNoopProcessor is `weir noop-processor ANSWERS ADDRESSES`: a minimal ext_proc server in grpc-go. It replies to
// request headers and whole request bodies with the recorded answers of the first file, in turn, sends back the chunks
// of FULL_DUPLEX_STREAMED, and replies to all other messages with an empty answer. It writes its address to the second
// file, and ends at a signal.
func runNoopProcessor(args []string, _, stderr io.Writer) int {
	if len(args) != 2 {
		_, _ = fmt.Fprintln(stderr, "weir noop-processor: want a file with answers, and one for addresses")
		return 2
	}
	if err := serveNoop(args[0], args[1]); err != nil {
		_, _ = fmt.Fprintf(stderr, "weir noop-processor: %v\n", err)
		return 1
	}
	return 0
}

// largestAnswers is the size in bytes of the largest file with recorded answers. A bench has less than 1 MiB of them.
const largestAnswers = 64 << 20

func serveNoop(answers, addresses string) error {
	text, err := readAtMost(answers, largestAnswers)
	if err != nil {
		return err
	}
	recorded, err := unmarshalAnswers(text)
	if err != nil {
		return err
	}
	processor, err := newNoop(recorded)
	if err != nil {
		return err
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(app.CollectPercent) // as epp
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := grpc.NewServer(serverOptions()...)
	extprocv3.RegisterExternalProcessorServer(server, processor)
	if err := scene.WriteAddresses(addresses, []string{listener.Addr().String()}); err != nil {
		return err
	}
	return serveUntilSignal(func() error { return server.Serve(listener) }, server.Stop)
}

// serverOptions returns the same options as epp's, so that the two servers differ only in their work.
func serverOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 10 * time.Second, Timeout: 10 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
		grpc.MaxRecvMsgSize(34 << 20),
		grpc.MaxSendMsgSize(math.MaxInt32),
		grpc.MaxConcurrentStreams(math.MaxUint32),
	}
}

// noopProcessor answers without reading the messages.
type noopProcessor struct {
	extprocv3.UnimplementedExternalProcessorServer
	headers, bodies []*extprocv3.ProcessingResponse // bodies is empty if bodies come in chunks, or not at all
	next            atomic.Uint64
}

// newNoop returns a processor with the recorded answers to request headers and to request bodies.
func newNoop(answers []*extprocv3.ProcessingResponse) (*noopProcessor, error) {
	p := &noopProcessor{}
	for _, answer := range answers {
		switch {
		case answer.GetRequestHeaders() != nil:
			p.headers = append(p.headers, answer)
		case answer.GetRequestBody() != nil:
			p.bodies = append(p.bodies, answer)
		default:
			return nil, fmt.Errorf("answers: %v answers neither request headers nor a request body", answer)
		}
	}
	if len(p.headers) == 0 {
		return nil, errors.New("answers: none to request headers")
	}
	return p, nil
}

// from returns the next of some answers.
func (p *noopProcessor) from(answers []*extprocv3.ProcessingResponse) *extprocv3.ProcessingResponse {
	return answers[p.next.Add(1)%uint64(len(answers))]
}

// sentBack returns the answer that sends a chunk back.
func sentBack(b *extprocv3.HttpBody) *extprocv3.BodyResponse {
	return &extprocv3.BodyResponse{Response: &extprocv3.CommonResponse{BodyMutation: &extprocv3.BodyMutation{
		Mutation: &extprocv3.BodyMutation_StreamedResponse{StreamedResponse: &extprocv3.StreamedBodyResponse{
			Body: b.GetBody(), EndOfStream: b.GetEndOfStream(),
		}},
	}}}
}

var (
	emptyResponseHeaders = &extprocv3.ProcessingResponse{
		Response: &extprocv3.ProcessingResponse_ResponseHeaders{ResponseHeaders: &extprocv3.HeadersResponse{}},
	}
	emptyResponseTrailers = &extprocv3.ProcessingResponse{
		Response: &extprocv3.ProcessingResponse_ResponseTrailers{ResponseTrailers: &extprocv3.TrailersResponse{}},
	}
)

// Process implements the service.
func (p *noopProcessor) Process(stream extprocv3.ExternalProcessor_ProcessServer) error {
	for {
		message, err := stream.Recv()
		if err != nil {
			return nil // the request has ended
		}
		var answer *extprocv3.ProcessingResponse
		switch request := message.GetRequest().(type) {
		case *extprocv3.ProcessingRequest_RequestHeaders:
			answer = p.from(p.headers)
		case *extprocv3.ProcessingRequest_RequestBody:
			if len(p.bodies) > 0 {
				answer = p.from(p.bodies)
			} else {
				answer = &extprocv3.ProcessingResponse{
					Response: &extprocv3.ProcessingResponse_RequestBody{RequestBody: sentBack(request.RequestBody)},
				}
			}
		case *extprocv3.ProcessingRequest_ResponseHeaders:
			answer = emptyResponseHeaders
		case *extprocv3.ProcessingRequest_ResponseBody:
			answer = &extprocv3.ProcessingResponse{
				Response: &extprocv3.ProcessingResponse_ResponseBody{ResponseBody: sentBack(request.ResponseBody)},
			}
		case *extprocv3.ProcessingRequest_ResponseTrailers:
			answer = emptyResponseTrailers
		default:
			return fmt.Errorf("unexpected message %T", message.GetRequest())
		}
		if err := stream.Send(answer); err != nil {
			return nil
		}
	}
}

// marshalAnswers encodes the answers for the file, each preceded by its length in four bytes; unmarshalAnswers decodes
// them.
func marshalAnswers(answers []*extprocv3.ProcessingResponse) ([]byte, error) {
	var text []byte
	for _, answer := range answers {
		one, err := proto.Marshal(answer)
		if err != nil {
			return nil, err
		}
		text = append(append(text, byte(len(one)>>24), byte(len(one)>>16), byte(len(one)>>8), byte(len(one))), one...)
	}
	return text, nil
}

func unmarshalAnswers(text []byte) ([]*extprocv3.ProcessingResponse, error) {
	var answers []*extprocv3.ProcessingResponse
	for len(text) >= 4 {
		length := int(text[0])<<24 | int(text[1])<<16 | int(text[2])<<8 | int(text[3])
		if text = text[4:]; length > len(text) {
			return nil, errors.New("answers: cut short")
		}
		answer := &extprocv3.ProcessingResponse{}
		if err := proto.Unmarshal(text[:length], answer); err != nil {
			return nil, fmt.Errorf("answers: %w", err)
		}
		answers = append(answers, answer)
		text = text[length:]
	}
	if len(answers) == 0 {
		return nil, errors.New("answers: none")
	}
	return answers, nil
}
