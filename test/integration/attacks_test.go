package integration

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/envoyrun"
)

// utf16 returns an ASCII text in UTF-16, little endian, which Python's json can read.
func utf16(text string) string {
	var b strings.Builder
	for i := range len(text) {
		b.WriteString(text[i:i+1] + "\x00")
	}
	return b.String()
}

// These are ways for a client to run a model without waiting behind the plug, or in another flow and tier than those of
// the model that the engine would find in its body. Each request is refused, or waits in its true flow.
func TestAttemptsToPassTheQueue(t *testing.T) {
	t.Parallel()
	s := plugged(t, "recommended", "profile: recommended\ncost: requests\nmodels: [ { name: tiny, criticality: Sheddable } ]\n")
	body, json := chat("tiny", false), "content-type: application/json"
	odd := func(field string) string { return strings.Replace(body, `"stream"`, field+`,"stream"`, 1) }
	const waits, refused = "waits", "refused"
	for _, attempt := range []struct{ name, text, want string }{
		{"its own model", rawRequest("POST", "/v1/chat/completions", body, json), waits},
		{"the path as an URL", rawRequest("POST", "http://weir/tokenize/../v1/chat/completions", body, json), waits},
		{"behind a prefix", rawRequest("POST", "/llm/chat/completions", body, json), waits},
		{"the key in escapes", rawRequest("POST", "/llm/chat/completions", strings.Replace(body, "model", `\u006dodel`, 1), json), waits},
		{"another model before it", rawRequest("POST", "/llm/chat/completions", `{"model":"cheap",`+body[1:], json), waits},
		{"HEAD with a body", rawRequest("HEAD", "/v1/chat/completions", body, json), waits},
		{"a second request behind it", rawRequest("POST", "/v1/chat/completions", body, json) + rawRequest("GET", "/v1/models", ""), waits},
		{"expecting 100", rawRequest("POST", "/v1/chat/completions", body, json, "expect: 100-continue"), waits},
		{"h2c", rawRequest("POST", "/v1/chat/completions", body, json, "connection: upgrade, http2-settings", "upgrade: h2c", "http2-settings: AAMAAABkAAQAAP__"), waits},
		{"an unknown connection", rawRequest("POST", "/v1/chat/completions", body, json, "connection: x"), waits},
		{"its own words of Weir", rawRequest("POST", "/v1/chat/completions", body, json, "x-weir-tier: critical", "x_tenant: vip"), waits},
		{"UTF-16, with a newline in the path", rawRequest("POST", "/v1/chat/completions%0A", utf16(body), json), refused},
		{"UTF-16, behind a prefix", rawRequest("POST", "/llm/chat/completions", utf16(body), json), refused},
		{"NaN", rawRequest("POST", "/llm/chat/completions", odd(`"x":NaN`), json), refused},
		{"nested deeply", rawRequest("POST", "/llm/chat/completions", odd(`"x":`+strings.Repeat("[", 600)+strings.Repeat("]", 600)), json), refused},
		{"a byte order mark", rawRequest("POST", "/llm/chat/completions", "\xef\xbb\xbf"+body, json), refused},
		{"two objects", rawRequest("POST", "/llm/chat/completions", body+body, json), refused},
		{"no model, with a newline in the path", rawRequest("POST", "/v1/chat/completions%0A", `{"messages":[]}`, json), refused},
		{"an upgrade of no kind", rawRequest("GET", "/v1/models", "", "connection: upgrade", "upgrade: tcp"), refused},
		{"a fragment", rawRequest("POST", "/tokenize#/../v1/chat/completions", body, json), refused},
		{"two lengths", rawRequest("POST", "/v1/chat/completions", body, json, "content-length: 0"), refused},
		{"a length and chunks", rawRequest("POST", "/v1/chat/completions", "0\r\n\r\n", json, "transfer-encoding: chunked") + "GET", refused},
	} {
		s.run(attempt.name, func() {
			conn := s.write(attempt.text)
			defer func() {
				_ = conn.Close()
				s.epp.waitFor(0, "weir_queue_length") // the request of a disconnected client no longer waits
			}()
			if attempt.want == waits {
				s.epp.waitFor(1, "weir_queue_length")
				want := []waitingFlow{{Flow: "anonymous", Tier: "sheddable", Waiting: 1, WaitingCost: 1}}
				if got := s.epp.waitingFlows(); !slices.Equal(got, want) {
					s.t.Errorf("it waits as %+v, want %+v", got, want)
				}
				return
			}
			line, err := bufio.NewReader(conn).ReadString('\n')
			if hungUp := line == "" && errors.Is(err, io.EOF); !hungUp && !strings.HasPrefix(line, "HTTP/1.1 4") {
				s.t.Errorf("got %q, %v, want a refusal", line, err)
			}
		})
	}
	s.epp.waitFor(1, "weir_stock_level") // the plug

	// A client that half-closes its connection after its request counts as disconnected. 300 clients that disconnect at
	// once leave nothing behind.
	half := s.write(rawRequest("POST", "/v1/chat/completions", body, json))
	s.epp.waitFor(1, "weir_queue_length")
	if err := half.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	s.epp.waitFor(0, "weir_queue_length")
	for range 300 {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Millisecond)
		_ = send(ctx, s.envoy().URL(), ask{client: client2})
		cancel()
	}
	s.epp.waitFor(0, "weir_queue_length")
	s.epp.waitFor(1, "weir_stock_level")
}

// No request of a client makes Envoy repeat it at the model servers, where it has one lease, not even from a private
// address. A client cannot change its path in the access log. A model server that imitates Weir cannot change a
// request's outcome.
func TestAttemptsToMultiplyWork(t *testing.T) {
	t.Parallel()
	var served atomic.Int64
	s := before(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("link", "</>")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Set("x-weir-reason", "flow-full")
		w.Header().Set("x-weir-requeue", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
	}), setup{envoys: []string{"recommended"}, config: "profile: recommended\n", edit: func(b envoyrun.Bootstrap) error {
		b.Listener()["listener_filters"] = []any{map[string]any{"name": "envoy.filters.listener.proxy_protocol", "typed_config": map[string]any{
			"@type": "type.googleapis.com/envoy.extensions.filters.listener.proxy_protocol.v3.ProxyProtocol",
		}}}
		return nil
	}})
	sent := 0
	for _, address := range []string{"10.1.2.3", "127.0.0.1", "203.0.113.9"} {
		for _, headers := range [][]string{
			{"x-envoy-retry-on: 5xx,retriable-status-codes,retriable-headers", "x-envoy-max-retries: 9", "x-envoy-retriable-status-codes: 503"},
			{"x-envoy-upstream-rq-per-try-timeout-ms: 1", "x-envoy-hedge-on-per-try-timeout: true", "x-envoy-retry-on: 5xx"},
			{"x-envoy-original-path: /forged", "x-envoy-internal: true", "x-forwarded-for: 10.0.0.1", "x-envoy-retry-on: 5xx"},
		} {
			sent++
			conn := s.write(fmt.Sprintf("PROXY TCP4 %s 10.1.2.4 1000 8080\r\n", address) + rawRequest(
				"POST", "/v1/chat/completions", chat("tiny", false), append(headers, "content-type: application/json")...))
			reader := bufio.NewReader(conn)
			response, err := http.ReadResponse(reader, nil)
			if err == nil && response.StatusCode == http.StatusEarlyHints {
				response, err = http.ReadResponse(reader, nil)
			}
			if err != nil || response.StatusCode != http.StatusServiceUnavailable {
				t.Errorf("%s, %q: %v, %v", address, headers, response, err)
			}
			_ = conn.Close()
		}
	}
	s.epp.settled()
	if n := served.Load(); n != int64(sent) {
		t.Errorf("%d requests came to the model server for %d", n, sent)
	}
	if got := s.epp.outcomes(); got["dispatched"] != sent || len(got) != 1 {
		t.Errorf("outcomes are %v, want %d dispatched", got, sent)
	}
	for _, entry := range s.accessLog(sent) {
		if entry["path"] != "/v1/chat/completions" {
			t.Errorf("logged is %v", entry)
		}
	}
}
