package integration

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/expect"
)

// half opens a connection to the scene's Envoy that announces a body of 100 bytes and sends only 4 of them. A gateway's
// header has the model's name, so that Weir needs only the headers.
func (s *scene) half() net.Conn {
	s.t.Helper()
	return s.write(fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nhost: inference\r\nauthorization: %s\r\n"+
		"content-type: application/json\r\nx-gateway-model-name: tiny\r\ncontent-length: 100\r\n\r\n{\"mo",
		credentials(s.t, s.with.envoys[0])))
}

// received waits until Envoy has begun to read the given number of requests.
func (s *scene) received(requests int64) {
	s.t.Helper()
	expect.Eventually(s.t, "Envoy has the requests", func() error {
		stats, err := s.envoy().Stats(s.t.Context(), `^http\.inference\.downstream_rq_total$`)
		if n := stats["http.inference.downstream_rq_total"]; err == nil && n < requests {
			err = fmt.Errorf("it has %d", n)
		}
		return err
	})
}

// A partly sent request holds nothing: it does not reach Weir before it is complete. This holds in every shipped
// configuration except the one that documents otherwise, which shows the difference.
func TestHalfSentRequestsHoldNothing(t *testing.T) {
	t.Parallel()
	for _, m := range modes {
		t.Run(m.config, func(t *testing.T) {
			t.Parallel()
			config := "profile: recommended\n"
			if m.config == "buffered-partial" {
				config += "scheduling: { affinity: off }\n" // otherwise Weir awaits the body, which the filter does not hold
			}
			s := start(t, setup{
				envoys: []string{m.config}, config: config,
				edit: envoyrun.KeepHeader("x-gateway-model-name"),
			})
			halves := make([]net.Conn, 5)
			for i := range halves {
				halves[i] = s.half()
			}
			s.received(5)
			if m.config == "buffered-partial" {
				s.epp.waitFor(5, "weir_stock_level")
				return
			}
			// A complete request of the same client overtakes them: by now the others would hold their stock, if any.
			wantServed(t, "a whole request", s.send(ask{}))
			s.epp.settled()
			if n := s.epp.value("weir_requests_total"); n != 1 {
				t.Errorf("%v requests came to Weir, want the whole one", n)
			}

			// Once complete, it is served.
			if _, err := halves[0].Write([]byte(`del":"tiny","messages":[]}` + strings.Repeat(" ", 70))); err != nil {
				t.Fatal(err)
			}
			_ = halves[0].SetReadDeadline(time.Now().Add(patience))
			status := make([]byte, len("HTTP/1.1 200"))
			if _, err := halves[0].Read(status); err != nil || string(status) != "HTTP/1.1 200" {
				t.Errorf("the one that was completed: %q, %v", status, err)
			}
			s.epp.settled()
		})
	}
}

// The filter causes this: without it, five half-sent requests are a stock of five.
func TestHalfSentRequestsWithoutTheFilter(t *testing.T) {
	t.Parallel()
	for _, config := range []string{"recommended", "header-only", "streamed"} {
		t.Run(config, func(t *testing.T) {
			t.Parallel()
			s := start(t, setup{
				envoys: []string{config},
				edit: envoyrun.Edits(
					envoyrun.KeepHeader("x-gateway-model-name"), envoyrun.WithoutFilter(envoyrun.BufferFilter)),
			})
			for range 5 {
				s.half()
			}
			s.epp.waitFor(5, "weir_stock_level")
		})
	}
}

// The route for uploads above the limit, a comment in recommended.yaml, works as described: uploads pass whole on that
// route, and on no other.
func TestRouteForUploads(t *testing.T) {
	t.Parallel()
	body, _ := prompt(envoyLimit + 1)
	s := start(t, setup{envoys: []string{withUploads(t)}})
	wantEnvoysError(t, s.send(ask{body: body}), 413, "too-large")
	got := s.send(ask{path: "/v1/files", body: body})
	if got.err != nil || got.status == 413 || got.reason() != "" {
		t.Errorf("an upload: %d %q %v", got.status, got.reason(), got.err)
	}
	s.epp.settled()
	// A half-sent request holds nothing here either.
	s.write("POST /v1/files HTTP/1.1\r\nhost: inference\r\ncontent-length: 100\r\n\r\n{")
	s.received(3)
	wantServed(t, "another request", s.send(ask{}))
	s.epp.settled()
}

// modes contains all shipped configurations with Weir, as the tests above assume.
func TestModesAreAllShipped(t *testing.T) {
	t.Parallel()
	for _, config := range envoyrun.Shipped() {
		known := slices.ContainsFunc(modes, func(m mode) bool { return m.config == config })
		if !known && config != "direct" {
			t.Errorf("%s is tested nowhere", config)
		}
	}
}
