package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	logv3 "github.com/envoyproxy/go-control-plane/envoy/data/accesslog/v3"
	alsv3 "github.com/envoyproxy/go-control-plane/envoy/service/accesslog/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weir-epp/weir/internal/modelsim"
)

// forgedRecords returns a message of n records with made-up IDs and usage.
func forgedRecords(n int, id string) *alsv3.StreamAccessLogsMessage {
	entries := &alsv3.StreamAccessLogsMessage_HTTPAccessLogEntries{}
	for i := range n {
		entries.LogEntry = append(entries.LogEntry, &logv3.HTTPAccessLogEntry{CommonProperties: &logv3.AccessLogCommon{
			Metadata: &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{
				"weir":       {Fields: map[string]*structpb.Value{"request": structpb.NewStringValue(fmt.Sprint(id, i))}},
				"weir.usage": {Fields: map[string]*structpb.Value{"input": structpb.NewNumberValue(1e9), "output": structpb.NewNumberValue(1e9)}},
			}},
		}})
	}
	return &alsv3.StreamAccessLogsMessage{LogEntries: &alsv3.StreamAccessLogsMessage_HttpLogs{HttpLogs: entries}}
}

// Who can connect to Weir's port and floods it with records charges nobody for anything, and keeps nobody's record from
// coming. A message that is too long ends its stream.
func TestFloodOfRecords(t *testing.T) {
	t.Parallel()
	s := start(t, setup{envoys: []string{"als"}, models: []modelsim.Config{modelsim.Fixed(4, 5*time.Millisecond)}, config: byLog})
	conn, err := grpc.NewClient(s.epp.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	open := func() alsv3.AccessLogService_StreamAccessLogsClient {
		stream, err := alsv3.NewAccessLogServiceClient(conn).StreamAccessLogs(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return stream
	}
	const messages, records = 100, 200
	flood := make(chan error, 1)
	go func() {
		stream := open()
		for i := range messages {
			if err := stream.Send(forgedRecords(records, fmt.Sprint(i, "."))); err != nil {
				flood <- err
				return
			}
		}
		flood <- stream.CloseSend()
	}()
	const requests = 20
	for range requests {
		wantServed(t, "one", s.send(ask{}))
	}
	if err := <-flood; err != nil {
		t.Fatal(err)
	}
	s.epp.waitFor(requests, "weir_extproc_usage_records_total", "outcome", "used")
	s.epp.waitFor(messages*records, "weir_extproc_usage_records_total", "outcome", "unknown")
	s.epp.waitFor(0, "weir_extproc_usage_awaited")
	if got := s.epp.value("weir_extproc_usage_tokens_total", "kind", "output"); got != requests*4 {
		t.Errorf("%v tokens, want %v", got, requests*4)
	}

	long := open()
	_ = long.Send(forgedRecords(1, strings.Repeat("x", 5<<20))) // an error would be the stream's end
	done := make(chan error, 1)
	go func() { done <- long.RecvMsg(&alsv3.StreamAccessLogsResponse{}) }()
	select {
	case err := <-done:
		if err == nil {
			t.Error("a response")
		}
	case <-time.After(20 * time.Second):
		t.Error("the stream of a long message has not ended")
	}
	if n := s.epp.value("weir_extproc_usage_records_total", "outcome", "unknown"); n != messages*records {
		t.Error("the long message was read")
	}
	wantServed(t, "one more", s.send(ask{}))
	s.epp.waitFor(requests+1, "weir_extproc_usage_records_total", "outcome", "used")
}

// However many idle streams of access logs somebody opens, before those of Envoy and after, these go on, and the records of
// all requests come.
func TestIdleStreamsOfLogs(t *testing.T) {
	t.Parallel()
	s := start(t, setup{envoys: []string{"als"}, models: []modelsim.Config{modelsim.Fixed(4, 5*time.Millisecond)}, config: byLog})
	conn, err := grpc.NewClient(s.epp.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	requests := 0
	for flood := range 2 {
		var last alsv3.AccessLogService_StreamAccessLogsClient
		for range 5000 {
			if last, err = alsv3.NewAccessLogServiceClient(conn).StreamAccessLogs(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := last.Send(forgedRecords(1, "x")); err != nil { // once it is there, so are those before it
			t.Fatal(err)
		}
		s.epp.waitFor(float64(flood+1), "weir_extproc_usage_records_total", "outcome", "unknown")
		for range 20 {
			requests++
			wantServed(t, "one", s.send(ask{}))
		}
		s.epp.waitFor(float64(requests), "weir_extproc_usage_records_total", "outcome", "used")
		s.epp.waitFor(0, "weir_extproc_usage_awaited")
	}
	if n := s.epp.value("weir_extproc_usage_unknown_total"); n != 0 {
		t.Errorf("%v requests without usage", n)
	}
}
