package envoyfacts

import (
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/envoyrun"
)

// "A stream that Envoy has no more use for after a reply is cancelled at once; one that lives on until the response ends
// or the client leaves is closed first, so that Recv returns io.EOF."
func TestEndsOfStreams(t *testing.T) {
	for name, test := range map[string]struct {
		trailers string
		leaves   bool // the client, as soon as it has the headers
		closed   bool
	}{
		"trailers, the answer ends":           {"SEND", false, true},
		"trailers, the client leaves":         {"SEND", true, true},
		"without trailers":                    {"SKIP", false, false},
		"without trailers, the client leaves": {"SKIP", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			address := modelServer(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("content-type", "text/event-stream")
				_ = http.NewResponseController(w).Flush()
				select {
				case <-time.After(100 * time.Millisecond):
				case <-r.Context().Done():
				}
			})
			p := newProcessor(t)
			envoy := start(t, "header-only", p, func(b envoyrun.Bootstrap) error {
				envoyrun.Object(b.Filter(envoyrun.ExtProcFilter), "processing_mode")["response_trailer_mode"] = test.trailers
				return nil
			}, address)
			for range 5 {
				x := envoy.post(t, `{}`)
				s := p.accept(t)
				s.want("request_headers")
				s.send(requestHeaders())
				s.want("response_headers")
				s.send(responseHeaders())
				answer := x.headers()
				if test.leaves {
					x.hangUp()
				} else {
					_, _ = io.Copy(io.Discard, answer.Body)
				}
				s.wantEnded()
				if closed := errors.Is(receive(t, "why the stream ended", s.why), io.EOF); closed != test.closed {
					t.Errorf("Envoy has closed the stream before it cancelled it: %v, want %v", closed, test.closed)
				}
			}
		})
	}
}
