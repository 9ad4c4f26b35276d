package kube

import (
	"context"
	"testing"

	"github.com/weir-epp/weir/internal/envoystream"
)

// request is one stream that Envoy would open; its request is in flight until it ends.
type request struct {
	stream envoystream.Stream
	end    context.CancelFunc
}

// send begins a request for a model, with more headers, which need not be granted at once.
func (e *epp) send(model string, more ...[2]string) *request {
	e.t.Helper()
	ctx, end := context.WithCancel(e.t.Context())
	stream, err := envoystream.Open(ctx, e.grpc, envoystream.First(model, more...))
	if err != nil {
		e.t.Fatal(err)
	}
	return &request{stream, end}
}

// granted waits for the request's destination.
func (r *request) granted(t *testing.T) string {
	t.Helper()
	address, err := envoystream.Granted(r.stream)
	if err != nil {
		t.Fatal(err)
	}
	return address
}
