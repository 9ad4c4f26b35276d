package integration

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/envoyrun"
)

// If Envoy reads usage beside the gate, a stream without a token passes at its end, as without the reading. The one
// exception is Envoy's: a stream that ends within a line gets trailers from the filter that reads. These wait for the
// headers, like any unannounced trailers, until the gate's timeout.
func TestStreamsWithoutATokenBesideUsage(t *testing.T) {
	t.Parallel()
	const timeout = 10 * time.Second
	server := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("content-type", "text/event-stream")
		_, _ = io.WriteString(w, r.Header.Get("x-begin"))
		_ = http.NewResponseController(w).Flush()
		time.Sleep(10 * time.Millisecond)
		if r.Header.Get("x-open") == "" {
			_, _ = io.WriteString(w, "\n\n")
		}
	})
	s := before(t, server, setup{
		envoys: []string{"gate"}, config: wide + "cost: tokens\n",
		edit: envoyrun.Edits(envoyrun.ReadUsage, func(b envoyrun.Bootstrap) error {
			b.Filter(envoyrun.GateFilter)["message_timeout"] = timeout.String()
			return nil
		}),
	})
	for range 3 { // Weir learns that there is a gate
		wantServed(t, "a stream with a token", s.send(ask{header: []string{"x-begin", "data: {}"}}))
	}
	for _, c := range []struct {
		begin, open string
		held        bool
	}{
		{begin: ": a comment"},
		{begin: ""},
		{begin: "event: response.created"},
		{begin: "data: {}", open: "yes"},
		{begin: ": a comment", open: "yes", held: true},
	} {
		begun := time.Now()
		got := s.send(ask{path: "/v1/responses", header: []string{"x-begin", c.begin, "x-open", c.open}})
		want := c.begin
		if c.open == "" {
			want += "\n\n"
		}
		if took := time.Since(begun); got.err != nil || got.body != want || took >= timeout != c.held {
			t.Errorf("%q, open %q: after %v: %q, %v", c.begin, c.open, took, got.body, got.err)
		}
	}
	s.epp.settled()
	s.epp.waitFor(0, "weir_gate_streams")
}
