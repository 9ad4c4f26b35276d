package envoystream

import (
	"context"
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	filterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
)

// Stream is one request.
type Stream = extprocv3.ExternalProcessor_ProcessClient

// First returns the first message of a stream without a body: the headers of a chat completion that name the model,
// then more headers.
func First(model string, more ...[2]string) *extprocv3.ProcessingRequest {
	var headers []*corev3.HeaderValue
	for _, h := range append([][2]string{
		{":method", "POST"},
		{":path", "/v1/chat/completions"},
		{":authority", "weir"},
		{"content-type", "application/json"},
		{"content-length", "2"},
		{"x-gateway-model-name", model},
	}, more...) {
		headers = append(headers, &corev3.HeaderValue{Key: h[0], RawValue: []byte(h[1])})
	}
	return &extprocv3.ProcessingRequest{
		Request: &extprocv3.ProcessingRequest_RequestHeaders{
			RequestHeaders: &extprocv3.HttpHeaders{Headers: &corev3.HeaderMap{Headers: headers}},
		},
		ProtocolConfig: &extprocv3.ProtocolConfiguration{
			RequestBodyMode: filterv3.ProcessingMode_NONE, ResponseBodyMode: filterv3.ProcessingMode_NONE,
		},
	}
}

// Open opens a stream, waiting for the connection, and sends its first message. The stream ends with ctx.
func Open(ctx context.Context, conn grpc.ClientConnInterface, first *extprocv3.ProcessingRequest) (Stream, error) {
	stream, err := extprocv3.NewExternalProcessorClient(conn).Process(ctx, grpc.WaitForReady(true))
	if err != nil {
		return nil, fmt.Errorf("envoystream: %w", err)
	}
	if err := stream.Send(first); err != nil {
		return nil, fmt.Errorf("envoystream: %w", err)
	}
	return stream, nil
}

// Granted receives replies until one has a destination, and returns it. Before that, only the reply for a waiting
// request may come.
func Granted(stream Stream) (destination string, err error) {
	for {
		reply, err := stream.Recv()
		if err != nil {
			return "", fmt.Errorf("envoystream: %w", err)
		}
		if address := Destination(reply); address != "" {
			return address, nil
		}
		if reply.GetOverrideMessageTimeout() == nil {
			return "", fmt.Errorf("envoystream: no destination in %v", reply)
		}
	}
}

// Destination returns the destination in a reply to request headers; "" if there is none.
func Destination(reply *extprocv3.ProcessingResponse) string {
	for _, h := range reply.GetRequestHeaders().GetResponse().GetHeaderMutation().GetSetHeaders() {
		if h.GetHeader().GetKey() == "x-gateway-destination-endpoint" {
			return string(h.GetHeader().GetRawValue())
		}
	}
	return ""
}
