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

// StreamAccessLogs receives records of Envoy's access log until Envoy ends the stream, or it has to make room for another
// (logStreams). It implements alsv3.AccessLogServiceServer.
//
// One goroutine per stream reads its records, one after the other, and keeps none: whoever sends more than that is held
// back by gRPC. It ends with the stream, which ends when StreamAccessLogs returns.
func (s *Server) StreamAccessLogs(stream alsv3.AccessLogService_StreamAccessLogsServer) error {
	l := s.logs.open()
	defer s.logs.close(l)
	ended := make(chan error, 1)
	go func() { ended <- s.readLog(stream, l) }()
	select {
	case err := <-ended:
		return err
	case <-l.over:
		return status.Errorf(codes.ResourceExhausted, "more than %d streams of access logs", maxLogStreams)
	}
}

// readLog reads the records of a stream.
func (s *Server) readLog(stream alsv3.AccessLogService_StreamAccessLogsServer, l *logStream) error {
	defer s.recovered("reading an access log")
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err // of gRPC's own: Envoy is gone, or the message is not one
		}
		ours := false
		for _, entry := range m.GetHttpLogs().GetLogEntry() {
			fate := s.readEntry(entry)
			s.metrics.records[fate].Inc()
			ours = ours || fate.proves()
		}
		if ours {
			s.logs.prove(l)
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
