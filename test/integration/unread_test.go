package integration

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/envoyrun"
)

// reluctant speaks HTTP/2 with a window of 64 KiB for each answer: more is not sent to it before it reads.
func reluctant() *http.Client {
	t := &http.Transport{
		DisableCompression: true, Protocols: new(http.Protocols),
		HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10},
	}
	t.Protocols.SetUnencryptedHTTP2(true)
	return &http.Client{Transport: t}
}

// A client that asks and never reads its answers holds nothing for longer than the shipped files say, once the model
// server is through with them. With HTTP/2 it would otherwise for as long as an idle stream may live, which is an hour,
// and with any answer longer than the window that it chooses.
func TestUnreadAnswersHoldNothing(t *testing.T) {
	for _, m := range modes {
		t.Run(m.config, func(t *testing.T) {
			begun := make(chan struct{})
			s := before(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				_, _ = io.WriteString(w, "x")
				_ = http.NewResponseController(w).Flush()
				<-begun // an answer that is whole before its headers are through ends for Weir at once
				_, _ = io.WriteString(w, strings.Repeat("x", 256<<10))
			}), setup{envoys: []string{m.config}, config: "profile: recommended\n", edit: envoyrun.Edits(trustIssuer, soonFlushed)})
			client := reluctant()
			defer client.CloseIdleConnections()
			for range 4 {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
					s.envoy().URL()+"/v1/chat/completions", strings.NewReader(chat("tiny", false)))
				if err != nil {
					t.Fatal(err)
				}
				s.authorize(request)
				response, err := client.Do(request)
				if err != nil || response.StatusCode != http.StatusOK {
					t.Fatalf("got %v, %v", response, err)
				}
				defer response.Body.Close() // and never read
			}
			s.epp.waitFor(4, "weir_stock_level")
			close(begun)
			s.epp.waitFor(4, "weir_requests_total", "outcome", "dispatched")
			s.epp.settled()
		})
	}
}

// soonFlushed is an Edit that makes the shipped time for the rest of an answer shorter, where there is one.
func soonFlushed(b envoyrun.Bootstrap) error {
	if manager := b.ConnectionManager(); manager["stream_flush_timeout"] != nil {
		manager["stream_flush_timeout"] = "0.3s"
	}
	return nil
}
