package app

import (
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// streamEnd can end all streams with OK. If a stream ends with OK, its response continues unobserved; closing the
// connection would cut the response if the filter fails closed.
//
// A handler waiting in Recv cannot be made to return, and Envoy would see a cancelled context as an error. So streamEnd
// writes the status itself, bypassing the handler: the transport then ends the stream and its context, the handler
// wakes up, and its own status is ignored as the second one.
type streamEnd struct {
	mu   sync.Mutex
	open map[grpc.ServerStream]struct{}
}

// statusWriter is the part of gRPC's transport stream beyond its interface; a test checks that it still does.
type statusWriter interface {
	WriteStatus(st *status.Status) error
}

func newStreamEnd() *streamEnd { return &streamEnd{open: map[grpc.ServerStream]struct{}{}} }

// intercept runs a stream's handler.
func (s *streamEnd) intercept(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	s.mu.Lock()
	s.open[stream] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.open, stream)
		s.mu.Unlock()
	}()
	return handler(srv, stream)
}

// end ends every open stream and returns their number.
func (s *streamEnd) end() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for stream := range s.open {
		endStream(stream)
	}
	return len(s.open)
}

func endStream(stream grpc.ServerStream) {
	if w, ok := grpc.ServerTransportStreamFromContext(stream.Context()).(statusWriter); ok {
		_ = w.WriteStatus(status.New(codes.OK, "")) // an error: the connection is gone, and the stream with it
	}
}
