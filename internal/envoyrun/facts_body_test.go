package envoyrun

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	mode "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
)

// "The first message's protocol_config names the request and response body modes: tell modes apart by it."
func TestProtocolConfigNamesBodyModes(t *testing.T) {
	for config, want := range map[string][2]mode.ProcessingMode_BodySendMode{
		"recommended":      {mode.ProcessingMode_BUFFERED, mode.ProcessingMode_NONE},
		"gate":             {mode.ProcessingMode_BUFFERED, mode.ProcessingMode_NONE},
		"fail-closed":      {mode.ProcessingMode_BUFFERED, mode.ProcessingMode_NONE},
		"buffered-partial": {mode.ProcessingMode_BUFFERED_PARTIAL, mode.ProcessingMode_NONE},
		"header-only":      {mode.ProcessingMode_NONE, mode.ProcessingMode_NONE},
		"streamed":         {mode.ProcessingMode_STREAMED, mode.ProcessingMode_STREAMED},
		"full-duplex":      {mode.ProcessingMode_FULL_DUPLEX_STREAMED, mode.ProcessingMode_FULL_DUPLEX_STREAMED},
	} {
		t.Run(config, func(t *testing.T) {
			p := newProcessor(t)
			envoy := start(t, config, p, nil, unused(t))
			x := envoy.post(t, `{}`)
			s := p.accept(t)
			protocol := s.want("request_headers").GetProtocolConfig()
			got := [2]mode.ProcessingMode_BodySendMode{protocol.GetRequestBodyMode(), protocol.GetResponseBodyMode()}
			if protocol == nil || got != want {
				t.Errorf("protocol_config is %v, want %v", protocol, want)
			}
			s.send(rejection("enough"))
			if config == "gate" {
				p.accept(t).passGate() // which a rejection goes through as well
			}
			x.want(http.StatusServiceUnavailable, rejectionBody)
			s.wantEnded()
		})
	}
}

// "Override downward: base BUFFERED, and NONE when the headers say enough: works, the body is never sent to us."
func TestOverrideToNoBody(t *testing.T) {
	p := newProcessor(t)
	large := strings.Repeat("x", 3<<20)
	address := modelServer(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, strconv.FormatInt(r.ContentLength, 10)+" "+strconv.FormatBool(string(body) == large))
	})
	envoy := start(t, "recommended", p, nil, address)

	x := envoy.post(t, large)
	s := p.accept(t)
	s.want("request_headers")
	s.send(withoutBody(requestHeaders()))
	s.want("response_headers")
	s.send(responseHeaders())
	x.want(http.StatusOK, strconv.Itoa(len(large))+" true")
	s.wantNoMore()
}

// "BUFFERED: answer the headers at once, hold in the body phase, set the destination in the body's answer; nothing is
// echoed, content-length is kept."
func TestBufferedBodyIsOneMessage(t *testing.T) {
	p := newProcessor(t)
	address := modelServer(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, strconv.FormatInt(r.ContentLength, 10))
	})
	envoy := start(t, "recommended", p, nil, unused(t), address)

	large := strings.Repeat("x", 5<<20)
	x := envoy.post(t, large)
	s := p.accept(t)
	s.want("request_headers")
	s.send(requestHeaders())
	body := s.want("request_body").GetRequestBody()
	if !body.GetEndOfStream() || !bytes.Equal(body.GetBody(), []byte(large)) {
		t.Errorf("body message has %d bytes, end of stream: %t", len(body.GetBody()), body.GetEndOfStream())
	}
	s.send(requestBody(destinationHeader, address))
	s.want("response_headers")
	s.send(responseHeaders())
	x.want(http.StatusOK, strconv.Itoa(len(large)))
	s.wantNoMore()
}

// "BUFFERED: a body over the buffer limit gives 413 by Envoy, after the processor has seen the headers: the stream then
// ends; nothing may leak."
func TestBodyOverTheBufferLimit(t *testing.T) {
	p := newProcessor(t)
	envoy := start(t, "recommended", p, func(b Bootstrap) error {
		b.listener()["per_connection_buffer_limit_bytes"] = 64 << 10
		return nil
	}, unused(t))

	x := envoy.post(t, strings.Repeat("x", 1<<20))
	s := p.accept(t)
	s.want("request_headers")
	s.send(requestHeaders())
	if status := header(s.want("response_headers").GetResponseHeaders(), ":status"); status != "413" {
		t.Errorf(":status is %q, want Envoy's own 413", status)
	}
	s.send(responseHeaders())
	if resp := x.headers(); resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("status is %d, want 413", resp.StatusCode)
	}
	s.wantNoMore()
}
