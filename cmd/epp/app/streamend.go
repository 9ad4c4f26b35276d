package app

import (
	"sync"

	alsv3 "github.com/envoyproxy/go-control-plane/envoy/service/accesslog/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// streamEnd can end all streams with OK. If a stream ends with OK its answer continues unobserved; closing the
// connection would cut it off, where the filter fails closed.
//
// A handler that waits in Recv cannot be made to return, and Envoy would see the cancelling of its context as an error.
// So streamEnd writes the status itself, bypassing the handler: the transport then ends the stream and its context, the
// handler wakes up, and its own status is ignored as the second one.
type streamEnd struct {
	mu     sync.Mutex
	open   map[grpc.ServerStream]string // with their methods
	noLogs bool                         // streams of access logs are refused
}

// accessLogs is the method of streams that live as long as Envoy does.
const accessLogs = alsv3.AccessLogService_StreamAccessLogs_FullMethodName

// statusWriter is what gRPC's transport stream offers beyond its interface; a test checks that it still does.
type statusWriter interface {
	WriteStatus(st *status.Status) error
}

func newStreamEnd() *streamEnd { return &streamEnd{open: map[grpc.ServerStream]string{}} }

// intercept runs a stream's handler.
func (s *streamEnd) intercept(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	s.mu.Lock()
	if s.noLogs && info.FullMethod == accessLogs {
		s.mu.Unlock()
		return status.Error(codes.Unavailable, "draining")
	}
	s.open[stream] = info.FullMethod
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.open, stream)
		s.mu.Unlock()
	}()
	return handler(srv, stream)
}

// end ends every open stream and returns how many there were.
func (s *streamEnd) end() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for stream := range s.open {
		endStream(stream)
	}
	return len(s.open)
}

// endLogs ends the streams of access logs, and refuses more of them.
func (s *streamEnd) endLogs() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noLogs = true
	for stream, method := range s.open {
		if method == accessLogs {
			endStream(stream)
		}
	}
}

func endStream(stream grpc.ServerStream) {
	if w, ok := grpc.ServerTransportStreamFromContext(stream.Context()).(statusWriter); ok {
		_ = w.WriteStatus(status.New(codes.OK, "")) // an error: the connection is gone, and the stream with it
	}
}
