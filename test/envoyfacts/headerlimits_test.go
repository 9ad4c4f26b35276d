package envoyfacts

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/weir-epp/weir/internal/envoyrun"
)

// numbered returns pairs of n headers.
func numbered(n int) (pairs []string) {
	for i := range n {
		pairs = append(pairs, fmt.Sprintf("x-h%d", i), "v")
	}
	return pairs
}

// "A processor's headers that with the request's own exceed Envoy's limit (100) end the request with status_on_error,
// though the filter fails open; its stream ends."
func TestHeadersOfTheProcessorBeyondTheLimit(t *testing.T) {
	p := newProcessor(t)
	envoy := start(t, "recommended", p, envoysOwnHeaderLimits, unused(t))
	x := envoy.post(t, `{}`, numbered(80)...)
	s := p.accept(t)
	room := 100 - len(s.want("request_headers").GetRequestHeaders().GetHeaders().GetHeaders())
	s.send(withoutBody(requestHeaders(append(numbered(80), "x-new", "v")...))) // those that it has are replaced
	if status := header(s.want("response_headers").GetResponseHeaders(), ":status"); status != "503" {
		t.Errorf(":status with one header more is %q, want Envoy's own: no server listens", status)
	}
	s.send(responseHeaders())
	x.want(http.StatusServiceUnavailable, unreachable)
	s.wantNoMore()

	x = envoy.post(t, `{}`, numbered(80)...)
	s = p.accept(t)
	s.want("request_headers")
	var beyond []string
	for i := range room + 1 {
		beyond = append(beyond, fmt.Sprintf("x-new%d", i), "v")
	}
	s.send(withoutBody(requestHeaders(beyond...)))
	x.want(http.StatusServiceUnavailable, unreachable)
	s.wantEnded()
	stats, err := envoy.Stats(t.Context(), `ext_proc\.(rejected_header_mutations|failure_mode_allowed)$`)
	if err != nil || stats["http.inference.ext_proc.rejected_header_mutations"] != 1 || stats["http.inference.ext_proc.failure_mode_allowed"] != 0 {
		t.Errorf("statistics are %v, %v", stats, err)
	}
}

// "Envoy's own 431 does not reach the client where ext_proc sees response headers: the connection ends first."
func TestOwn431IsLost(t *testing.T) {
	for _, config := range []string{"recommended", "direct"} {
		t.Run(config, func(t *testing.T) {
			p := newProcessor(t)
			envoy := start(t, config, p, envoysOwnHeaderLimits, unused(t))
			x := envoy.post(t, `{}`, numbered(110)...)
			if config == "direct" {
				if status := x.headers().StatusCode; status != http.StatusRequestHeaderFieldsTooLarge {
					t.Errorf("status is %d, want 431", status)
				}
				return
			}
			if _, answered := <-x.answer; answered {
				t.Error("the client has an answer: the shipped limits could be Envoy's own")
			}
		})
	}
}

func envoysOwnHeaderLimits(b envoyrun.Bootstrap) error {
	delete(b.ConnectionManager(), "max_request_headers_kb")
	delete(b.ConnectionManager(), "common_http_protocol_options")
	return nil
}

// unreachable is the body of Envoy's own 503 with the shipped local_reply_config.
const unreachable = `{"error":{"code":"unavailable","message":"The service cannot be reached. Please retry later.","param":null,"type":"server_error"}}` + "\n"
