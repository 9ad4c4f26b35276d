package kube

import (
	"context"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	filterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
)

// request is one stream that Envoy would open; its request is in flight until it ends.
type request struct {
	stream extprocv3.ExternalProcessor_ProcessClient
	end    context.CancelFunc
}

// send begins a request for a model, with more headers, which need not be granted at once.
func (e *epp) send(model string, more ...[2]string) *request {
	e.t.Helper()
	ctx, end := context.WithCancel(e.t.Context())
	stream, err := extprocv3.NewExternalProcessorClient(e.grpc).Process(ctx)
	if err != nil {
		e.t.Fatal(err)
	}
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
	err = stream.Send(&extprocv3.ProcessingRequest{
		Request: &extprocv3.ProcessingRequest_RequestHeaders{
			RequestHeaders: &extprocv3.HttpHeaders{Headers: &corev3.HeaderMap{Headers: headers}},
		},
		ProtocolConfig: &extprocv3.ProtocolConfiguration{
			RequestBodyMode: filterv3.ProcessingMode_BUFFERED, ResponseBodyMode: filterv3.ProcessingMode_NONE,
		},
	})
	if err != nil {
		e.t.Fatal(err)
	}
	return &request{stream, end}
}

// granted waits for the request's destination.
func (r *request) granted(t *testing.T) string {
	t.Helper()
	for {
		m, err := r.stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range m.GetRequestHeaders().GetResponse().GetHeaderMutation().GetSetHeaders() {
			if h.GetHeader().GetKey() == "x-gateway-destination-endpoint" {
				return string(h.GetHeader().GetRawValue())
			}
		}
		if m.GetOverrideMessageTimeout() == nil {
			t.Fatalf("no destination: %v", m)
		}
	}
}
