package app

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// counter counts the headers that it receives, and the allocations meanwhile.
type counter struct {
	extprocv3.UnimplementedExternalProcessorServer
	headers chan int
}

func (c *counter) Process(s extprocv3.ExternalProcessor_ProcessServer) error {
	for {
		m, err := s.Recv()
		if err != nil {
			return nil
		}
		c.headers <- len(m.GetRequestHeaders().GetHeaders().GetHeaders())
	}
}

// Envoy's server reads messages from their bytes: a message of many headers takes fewer allocations than it has
// headers. The generated code takes two for each.
func TestMessagesAreReadFromTheirBytes(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	service := &counter{headers: make(chan int)}
	server := newGRPCServer(1<<20, nil, newStreamEnd())
	extprocv3.RegisterExternalProcessorServer(server, service)
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	stream, err := extprocv3.NewExternalProcessorClient(conn).Process(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	const headers, messages = 90, 200
	list := &corev3.HeaderMap{}
	for i := range headers {
		list.Headers = append(list.Headers, &corev3.HeaderValue{Key: fmt.Sprintf("x-header-%d", i), RawValue: []byte("value")})
	}
	m := &extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_RequestHeaders{
		RequestHeaders: &extprocv3.HttpHeaders{Headers: list},
	}}
	var before, after runtime.MemStats
	for i := range messages + 1 {
		if err := stream.Send(m); err != nil {
			t.Fatal(err)
		}
		if got := <-service.headers; got != headers {
			t.Fatalf("%d headers, want %d", got, headers)
		}
		if i == 0 { // one-time allocations of a connection
			runtime.ReadMemStats(&before)
		}
	}
	runtime.ReadMemStats(&after)
	if n := float64(after.Mallocs-before.Mallocs) / messages; n > headers { // 15, and 292 by the generated code
		t.Errorf("%.0f allocations for a message of %d headers", n, headers)
	}
}
