package extproc

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	alsv3 "github.com/envoyproxy/go-control-plane/envoy/service/accesslog/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// maxLogStreams is how many streams of Envoys' access logs are served at a time. Each worker thread of an Envoy has one.
const maxLogStreams = 4096

// StreamAccessLogs receives records of Envoy's access log until Envoy ends the stream. It implements
// alsv3.AccessLogServiceServer.
//
// One goroutine per stream reads its records, one after the other, and keeps none: whoever sends more than that is held
// back by gRPC.
func (s *Server) StreamAccessLogs(stream alsv3.AccessLogService_StreamAccessLogsServer) error {
	if s.roll.streams.Add(1) > maxLogStreams {
		s.roll.streams.Add(-1)
		return status.Errorf(codes.ResourceExhausted, "more than %d streams of access logs", maxLogStreams)
	}
	defer s.roll.streams.Add(-1)
	defer s.recovered("reading an access log")
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err // of gRPC's own: Envoy is gone, or the message is not one
		}
		for _, entry := range m.GetHttpLogs().GetLogEntry() {
			s.metrics.records[s.readEntry(entry)].Inc()
		}
	}
}

// recovered reports a panic of a goroutine that serves no ext_proc stream. It has to be deferred.
func (s *Server) recovered(doing string) {
	if p := recover(); p != nil {
		s.metrics.panics.Inc()
		s.log.Error(fmt.Errorf("extproc: panic: %v", p), doing, "stack", string(debug.Stack()))
	}
}
