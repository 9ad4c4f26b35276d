package app

import (
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	alsv3 "github.com/envoyproxy/go-control-plane/envoy/service/accesslog/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// Long messages of access logs are refused before they are decoded; those of ext_proc have bodies, and are not.
func TestLongMessagesOfAccessLogs(t *testing.T) {
	decode := func(m, to proto.Message) error {
		data, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return newBoundedLogs().Unmarshal(mem.BufferSlice{mem.SliceBuffer(data)}, to)
	}
	log := func(length int) *alsv3.StreamAccessLogsMessage {
		node := &corev3.Node{Id: strings.Repeat("x", length)}
		return &alsv3.StreamAccessLogsMessage{Identifier: &alsv3.StreamAccessLogsMessage_Identifier{Node: node}}
	}
	if err := decode(log(maxLogMessage/2), &alsv3.StreamAccessLogsMessage{}); err != nil {
		t.Error(err)
	}
	err := decode(log(maxLogMessage), &alsv3.StreamAccessLogsMessage{})
	if err == nil || !strings.Contains(err.Error(), "4194304 are the most") {
		t.Errorf("a long one: %v", err)
	}
	body := &extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_RequestBody{
		RequestBody: &extprocv3.HttpBody{Body: make([]byte, 2*maxLogMessage)},
	}}
	if err := decode(body, &extprocv3.ProcessingRequest{}); err != nil {
		t.Error(err)
	}
}

// While Weir drains, no Envoy can open another stream of its access log, which would hold up the end; streams of requests
// that are in flight are not refused.
func TestNoAccessLogsWhileDraining(t *testing.T) {
	s := newStreamEnd()
	served := func(method string) (is bool) {
		handler := func(any, grpc.ServerStream) error { is = true; return nil }
		err := s.intercept(nil, nil, &grpc.StreamServerInfo{FullMethod: method}, handler)
		if !is && status.Code(err) != codes.Unavailable {
			t.Errorf("%s: %v", method, err)
		}
		return is
	}
	if !served(accessLogs) {
		t.Error("access logs are refused from the start")
	}
	s.endLogs()
	if served(accessLogs) || !served(extprocv3.ExternalProcessor_Process_FullMethodName) {
		t.Error("streams are not served as they should be while draining")
	}
}
