package integration

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/envoyrun"
)

// write sends the bytes to the scene's Envoy and keeps the connection open until the end of the test. The bytes may be
// anything that a client could send, even if no library would.
func (s *scene) write(text string) net.Conn {
	s.t.Helper()
	conn, err := net.DialTimeout("tcp", s.envoy().Addr(), patience)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, text); err != nil {
		s.t.Fatal(err)
	}
	return conn
}

// rawRequest returns an HTTP/1.1 request in wire form. Headers are given without CRLF.
func rawRequest(method, path, body string, headers ...string) string {
	lines := append([]string{method + " " + path + " HTTP/1.1", "host: weir"}, headers...)
	if body != "" {
		lines = append(lines, fmt.Sprintf("content-length: %d", len(body)))
	}
	return strings.Join(lines, "\r\n") + "\r\n\r\n" + body
}

// plugged returns a scene whose only slot is taken by a request with x-plug. The model server answers all others at
// once, so a queued request waits behind the plug. Its Envoy serves /llm/ as /v1/, and lets WebSockets through.
func plugged(t *testing.T, envoy, config string) *scene {
	t.Helper()
	s := before(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Header.Get("x-plug") != "" {
			<-r.Context().Done()
			return
		}
		w.Header().Set("x-path", r.URL.Path)
	}), setup{
		envoys: []string{envoy},
		config: byTenant + single + config,
		edit: func(b envoyrun.Bootstrap) error {
			manager := b.ConnectionManager()
			// The buffer filter would wait for the end of an upgrade, which has none.
			filters := slices.DeleteFunc(slices.Clone(envoyrun.List(manager, "http_filters")), func(filter any) bool {
				return envoyrun.Object(filter)["name"] == envoyrun.BufferFilter
			})
			manager["upgrade_configs"] = []any{map[string]any{"upgrade_type": "websocket", "filters": filters}}
			host := envoyrun.Object(manager, "route_config", "virtual_hosts", 0)
			host["routes"] = append([]any{map[string]any{
				"match": map[string]any{"prefix": "/llm/"},
				"route": map[string]any{"cluster": envoyrun.ModelServersCluster, "prefix_rewrite": "/v1/", "timeout": "0s"},
			}}, envoyrun.List(host, "routes")...)
			return nil
		},
	})
	s.begin(ask{header: []string{"x-tenant", "plug", "x-plug", "1"}})
	s.epp.waitFor(1, "weir_stock_level")
	return s
}

// A request that is not known to be cheap waits, for any spelling of its path and any route of a gateway: only the list
// bypasses the queue.
func TestNothingPassesTheQueueButTheList(t *testing.T) {
	t.Parallel()
	for _, envoy := range []string{"recommended", "full-duplex", "header-only"} {
		t.Run(envoy, func(t *testing.T) {
			s := plugged(t, envoy, "passOnPaths: [/cheap]\n")
			body, waiting := chat("tiny", false), 0.0
			for _, request := range []struct{ name, text string }{
				{"encoded", rawRequest("POST", "/v1/chat/%63ompletions", body)},
				{"a newline at the end", rawRequest("POST", "/v1/chat/completions%0A", body)},
				{"a prefix that the gateway rewrites", rawRequest("POST", "/llm/chat/completions", body)},
				{"an engine's own path", rawRequest("POST", "/generate", `{"text":"hello"}`)},
				{"no JSON", rawRequest("POST", "/generate", `text=hello`)},
				{"no body", rawRequest("POST", "/generate?text=hello", "", "content-length: 0")},
				{"PUT without a body", rawRequest("PUT", "/generate", "", "content-length: 0")},
				{"GET with a body", rawRequest("GET", "/v1/models", body)},
				{"GET with an empty chunked body", rawRequest("GET", "/v1/models", "", "transfer-encoding: chunked") + "0\r\n\r\n"},
				{"DELETE with a body", rawRequest("DELETE", "/v1/models", body)},
				{"WebSocket", rawRequest("GET", "/v1/realtime", "", "upgrade: websocket", "connection: Upgrade")},
				{"WebSocket at a listed path", rawRequest("GET", "/cheap", "", "upgrade: websocket", "connection: keep-alive, upgrade")},
				{"nearly a listed path", rawRequest("POST", "/tokenize/", body)},
				{"nearly a listed path, by spelling", rawRequest("POST", "/%74okenize", body)},
				{"behind a listed path", rawRequest("POST", "/v1/chat/completions?/tokenize", body)},
			} {
				waiting++
				s.write(request.text) // not within run, whose end would close the connection
				s.run(request.name, func() { s.epp.waitFor(waiting, "weir_queue_length") })
				if t.Failed() {
					return // all further ones would wait in vain
				}
			}
			for _, request := range []struct{ method, path, body string }{
				{"GET", "/v1/models?x=y", ""},
				{"GET", "/anything%0A", ""},
				{"HEAD", "/v1/chat/completions", ""},
				{"OPTIONS", "/v1/chat/completions", ""},
				{"DELETE", "/v1/responses/1", ""},
				{"POST", "/tokenize", body},
				{"POST", "/detokenize?a=b", "not JSON"},
				{"POST", "/cheap", body},
			} {
				s.run(request.method+request.path, func() {
					conn := s.write(rawRequest(request.method, request.path, request.body))
					response, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: request.method})
					if err != nil || response.StatusCode != http.StatusOK {
						s.t.Fatalf("got %v, %v: it did not pass", response, err)
					}
				})
			}
			s.epp.waitFor(waiting, "weir_queue_length")
		})
	}
}
