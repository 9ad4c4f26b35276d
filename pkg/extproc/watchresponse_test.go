package extproc

import (
	"testing"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
)

// The main stream and the gate read response headers in the same way.
func TestResponseHead(t *testing.T) {
	tests := []struct {
		headers []string
		want    responseHead
	}{
		{nil, responseHead{}},
		{[]string{":status", "200", "content-type", "application/json"}, responseHead{status: 200}},
		{[]string{":status", "soon"}, responseHead{}},
		{[]string{":status", "200", "content-type", "Text/Event-Stream; charset=utf-8"}, responseHead{status: 200, events: true}},
		{[]string{"content-type", "application/grpc+proto"}, responseHead{trailers: true}},
		{[]string{"trailer", "x-sum"}, responseHead{trailers: true}},
		{[]string{"trailer", "x-sum", "content-type", "text/event-stream"}, responseHead{events: true, trailers: true}},
		{[]string{"content-encoding", "gzip"}, responseHead{encoded: true}},
		{[]string{"content-encoding", "identity"}, responseHead{}},
		{[]string{":status", "503", reasonHeader, "shed"}, responseHead{status: 503, ours: true}},
	}
	for _, test := range tests {
		if got := headOf(&extprocv3.HttpHeaders{Headers: headerMap(test.headers...)}); got != test.want {
			t.Errorf("%q: %+v, want %+v", test.headers, got, test.want)
		}
	}
	if got := headOf(nil); got != (responseHead{}) { // a body came without headers
		t.Errorf("nothing: %+v", got)
	}
}
