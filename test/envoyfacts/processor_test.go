package envoyfacts

import (
	"errors"
	"net"
	"testing"
	"time"

	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/weir-epp/weir/pkg/extproc/codec"
)

// patience bounds a test's wait for a certain event. A tenth of it should suffice, except on a loaded machine.
const patience = 30 * time.Second

// processor is an ext_proc server whose streams the test drives by hand, message by message.
type processor struct {
	extproc.UnimplementedExternalProcessorServer
	address string
	server  *grpc.Server
	streams chan *stream
}

// compared is Weir's codec, which must read all of Envoy's messages like the generated code.
type compared struct {
	encoding.CodecV2
	t *testing.T
}

func (c compared) Unmarshal(data mem.BufferSlice, v any) error {
	var here, there extproc.ProcessingRequest
	own := data.Materialize()
	if err := proto.Unmarshal(own, &there); err != nil {
		c.t.Errorf("Envoy sent %x: %v", own, err)
	}
	switch there.Request.(type) {
	case *extproc.ProcessingRequest_RequestHeaders, *extproc.ProcessingRequest_ResponseHeaders:
	default: // the codec skips fields that Weir reads in messages with headers only
		if m := there.MetadataContext; m != nil {
			m.FilterMetadata = nil
		}
	}
	if !codec.Read(own, &here) {
		c.t.Errorf("the codec does not read %v", &there)
	} else if !proto.Equal(&here, &there) {
		c.t.Errorf("the codec reads %v, the generated code %v", &here, &there)
	}
	return c.CodecV2.Unmarshal(data, v)
}

// stream is one ext_proc stream. It always receives, as Weir does. The messages wait until the test takes them.
type stream struct {
	t        *testing.T
	grpc     grpc.BidiStreamingServer[extproc.ProcessingRequest, extproc.ProcessingResponse]
	messages chan *extproc.ProcessingRequest
	verdict  chan error // result of Process
	why      chan error // reason for the end of the messages
}

func newProcessor(t *testing.T) *processor {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &processor{
		address: listener.Addr().String(),
		server:  grpc.NewServer(grpc.MaxRecvMsgSize(64<<20), grpc.ForceServerCodecV2(compared{codec.New(), t})),
		streams: make(chan *stream, 4096),
	}
	extproc.RegisterExternalProcessorServer(p.server, p)
	served := make(chan error, 1)
	go func() { served <- p.server.Serve(listener) }()
	t.Cleanup(func() {
		p.die()
		if err := <-served; err != nil && !errors.Is(err, grpc.ErrServerStopped) { // dead before it served
			t.Errorf("processor: %v", err)
		}
	})
	return p
}

// die closes the listener and all connections, as if the process was killed.
func (p *processor) die() { p.server.Stop() }

func (p *processor) Process(s grpc.BidiStreamingServer[extproc.ProcessingRequest, extproc.ProcessingResponse]) error {
	own := &stream{grpc: s, messages: make(chan *extproc.ProcessingRequest, 4096), verdict: make(chan error, 1), why: make(chan error, 1)}
	go func() {
		defer close(own.messages)
		for {
			message, err := s.Recv()
			if err != nil {
				own.why <- err
				return
			}
			own.messages <- message
		}
	}()
	p.streams <- own
	select {
	case err := <-own.verdict:
		return err
	case <-s.Context().Done():
		return nil
	}
}

// accept returns the next new stream.
func (p *processor) accept(t *testing.T) *stream {
	t.Helper()
	s := receive(t, "a stream", p.streams)
	s.t = t
	return s
}

// next returns the stream's next message.
func (s *stream) next() *extproc.ProcessingRequest {
	s.t.Helper()
	return receive(s.t, "a message", s.messages)
}

func (s *stream) send(answer *extproc.ProcessingResponse) {
	s.t.Helper()
	if err := s.grpc.Send(answer); err != nil {
		s.t.Fatalf("sending to Envoy: %v", err)
	}
}

// end ends the stream from the processor's side; nil is gRPC's OK.
func (s *stream) end(err error) { s.verdict <- err }

// wantEnded waits until Envoy has ended the stream.
func (s *stream) wantEnded() {
	s.t.Helper()
	select {
	case <-s.grpc.Context().Done():
	case <-time.After(patience):
		s.t.Fatal("the stream has not ended")
	}
}

// wantAlive fails if the stream has ended.
func (s *stream) wantAlive() {
	s.t.Helper()
	if err := s.grpc.Context().Err(); err != nil {
		s.t.Fatalf("the stream has ended: %v", err)
	}
}

// wantNoMore fails if the stream, which must have ended, has messages that the test did not take.
func (s *stream) wantNoMore() {
	s.t.Helper()
	s.wantEnded()
	for {
		select {
		case message, ok := <-s.messages:
			if !ok {
				return
			}
			s.t.Errorf("one more message: %v", message)
		case <-time.After(patience):
			s.t.Fatal("the stream's receiver has not ended")
		}
	}
}

// receive receives from a channel, and waits at most patience.
func receive[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case v, ok := <-from:
		if !ok {
			t.Fatalf("waiting for %s: there are no more", what)
		}
		return v
	case <-time.After(patience):
		t.Fatalf("waited %v for %s", patience, what)
	}
	panic("unreachable")
}
