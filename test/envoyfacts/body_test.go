package envoyfacts

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	mode "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/expect"
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
				p.accept(t).passGate() // a rejection goes through it as well
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
	envoy := start(t, "recommended", p, envoyrun.Edits(envoyrun.WithoutFilter(envoyrun.BufferFilter), func(b envoyrun.Bootstrap) error {
		b.Listener()["per_connection_buffer_limit_bytes"] = 64 << 10
		return nil
	}), unused(t))

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

// "BUFFERED_PARTIAL: a 20 MB body arrives as its first 1.7 MB, can be held, and the rest streams on after the answer."
func TestBufferedPartialShowsTheBeginning(t *testing.T) {
	p := newProcessor(t)
	large := strings.Repeat("0123456789abcdef", 8<<20/16)
	address := modelServer(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, strconv.FormatBool(string(body) == large))
	})
	envoy := start(t, "buffered-partial", p, nil, unused(t), address)

	x := envoy.post(t, large)
	s := p.accept(t)
	s.want("request_headers")
	s.send(requestHeaders())
	begin := s.want("request_body").GetRequestBody()
	if n := len(begin.GetBody()); begin.GetEndOfStream() || n < 1<<20 || n > 4<<20 || !strings.HasPrefix(large, string(begin.GetBody())) {
		t.Errorf("beginning has %d bytes, end of stream: %t", n, begin.GetEndOfStream())
	}
	x.wantUnanswered()
	s.send(requestBody(destinationHeader, address))
	s.want("response_headers")
	s.send(responseHeaders())
	x.want(http.StatusOK, "true")
	s.wantNoMore()
}

// "Header phase, header-only mode: a held request with a body of 1 MB or 20 MB is held by flow control, and flows on
// after the answer."
func TestHeaderOnlyHoldsTheBody(t *testing.T) {
	p := newProcessor(t)
	large := strings.Repeat("0123456789abcdef", 8<<20/16)
	address := modelServer(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, strconv.FormatBool(string(body) == large))
	})
	envoy := start(t, "header-only", p, envoyrun.Edits(envoyrun.WithoutFilter(envoyrun.BufferFilter), func(b envoyrun.Bootstrap) error {
		b.Listener()["per_connection_buffer_limit_bytes"] = 64 << 10
		return nil
	}), address)

	sent := &counter{from: strings.NewReader(large)}
	x := envoy.send(t, sent)
	s := p.accept(t)
	s.want("request_headers")
	expect.True(t, "the client is pushed back", func() bool {
		before := sent.read.Load()
		time.Sleep(50 * time.Millisecond)
		return before > 0 && before == sent.read.Load()
	})
	s.wantAlive()
	if n := sent.read.Load(); n == int64(len(large)) {
		t.Errorf("all %d bytes went somewhere", n)
	}
	s.send(requestHeaders())
	s.want("response_headers")
	s.send(responseHeaders())
	x.want(http.StatusOK, "true")
	s.wantNoMore()
}

// counter counts the bytes read from it.
type counter struct {
	from io.Reader
	read atomic.Int64
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.from.Read(b)
	c.read.Add(int64(n))
	return n, err
}

// "Replacing the body (model rewrite) needs content-length set to the new length in the same answer, else 500."
func TestRewrittenBody(t *testing.T) {
	const before, after = `{"model":"chat"}`, `{"model":"llama-3-8b-v1"}`
	for name, test := range map[string]struct {
		pairs  []string
		status int
		body   string
	}{
		"with the new length":    {[]string{"content-length", strconv.Itoa(len(after))}, http.StatusOK, after},
		"without the new length": {nil, http.StatusInternalServerError, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProcessor(t)
			address := modelServer(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
			envoy := start(t, "fail-closed", p, nil, address)

			x := envoy.post(t, before)
			s := p.accept(t)
			s.want("request_headers")
			s.send(requestHeaders())
			s.want("request_body")
			s.send(withBody(requestBody(test.pairs...), after))
			if test.status == http.StatusOK {
				s.want("response_headers")
				s.send(responseHeaders())
				x.want(test.status, test.body)
				return
			}
			if resp := x.headers(); resp.StatusCode == http.StatusOK {
				t.Errorf("a body that is longer than its content-length went through: %d", resp.StatusCode)
			} else {
				t.Logf("status %d", resp.StatusCode)
			}
		})
	}
}

// "In the answer to the response headers (base NONE or BUFFERED): response_body_mode: BUFFERED for a JSON answer (usage
// in one message), STREAMED for SSE when its usage must be read, or nothing."
func TestResponseBodyByOverride(t *testing.T) {
	for _, wanted := range []mode.ProcessingMode_BodySendMode{mode.ProcessingMode_BUFFERED, mode.ProcessingMode_STREAMED} {
		t.Run(wanted.String(), func(t *testing.T) {
			p := newProcessor(t)
			address, pieces, _ := sse(t)
			envoy := start(t, "recommended", p, envoyrun.WithoutUsage, address) // which ends answers with trailers

			x := envoy.post(t, `{}`)
			s := dispatch(t, p, "recommended", address)
			s.want("response_headers")
			answer := withoutBody(responseHeaders())
			answer.ModeOverride.ResponseBodyMode = wanted
			s.send(answer)
			pieces <- "one,"
			if wanted == mode.ProcessingMode_STREAMED {
				if body := s.want("response_body").GetResponseBody(); string(body.GetBody()) != "one," {
					t.Errorf("first chunk is %q", body.GetBody())
				}
				s.send(responseBody())
				wantRead(t, x.headers().Body, "one,")
			}
			pieces <- "two"
			close(pieces)
			var got []byte
			for ended := false; !ended; {
				body := s.want("response_body").GetResponseBody()
				got, ended = append(got, body.GetBody()...), body.GetEndOfStream()
				s.send(responseBody())
			}
			if wanted == mode.ProcessingMode_STREAMED {
				if string(got) != "two" {
					t.Errorf("the other chunks are %q", got)
				}
			} else {
				if string(got) != "one,two" {
					t.Errorf("the body is %q", got)
				}
				x.want(http.StatusOK, "one,two")
			}
			s.wantNoMore()
		})
	}
}
