package envoyfacts

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/weir-epp/weir/internal/envoyrun"
)

// messageTimeout edits the message timeout of the main ext_proc filter.
func messageTimeout(d time.Duration) func(envoyrun.Bootstrap) error {
	return func(b envoyrun.Bootstrap) error {
		if b.Filter(envoyrun.ExtProcFilter) == nil {
			return nil // direct.yaml
		}
		b.Filter(envoyrun.ExtProcFilter)["message_timeout"] = strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "s"
		return nil
	}
}

// "message_timeout: when over, the client gets 504 at once", in fail-closed; in fail-open the request goes on, unqueued.
func TestMessageTimeout(t *testing.T) {
	for config, want := range map[string]int{"recommended": http.StatusOK, "fail-closed": http.StatusGatewayTimeout} {
		t.Run(config, func(t *testing.T) {
			p := newProcessor(t)
			envoy := start(t, config, p, messageTimeout(100*time.Millisecond), modelServer(t, answering("")))

			x := envoy.post(t, `{}`)
			s := p.accept(t)
			s.want("request_headers")
			if resp := x.headers(); resp.StatusCode != want {
				t.Errorf("status is %d, want %d", resp.StatusCode, want)
			}
			s.wantEnded()
		})
	}
}

// "The best of both: message_timeout with max_message_timeout, and one override_message_timeout when a request really
// queues (works in the header phase and the BUFFERED body phase)."
func TestOverrideMessageTimeout(t *testing.T) {
	const timeout = 2 * time.Second // not reached between a message and our answer
	for _, phase := range []string{"request_headers", "request_body"} {
		t.Run(phase, func(t *testing.T) {
			t.Parallel()
			p := newProcessor(t)
			envoy := start(t, "fail-closed", p, messageTimeout(timeout), modelServer(t, answering("whole")))

			x := envoy.post(t, `{}`)
			s := p.accept(t)
			s.want("request_headers")
			if phase == "request_body" {
				s.send(requestHeaders())
				s.want("request_body")
			}
			s.send(overrideTimeout(time.Hour))
			time.Sleep(timeout + timeout/4)
			s.wantAlive()
			x.wantUnanswered()
			if phase == "request_body" {
				s.send(requestBody())
			} else {
				s.send(withoutBody(requestHeaders()))
			}
			s.want("response_headers")
			s.send(responseHeaders())
			x.want(http.StatusOK, "whole")
		})
	}
}

// "FULL_DUPLEX_STREAMED: no limit of size, and no message timeout; the whole body is sent to the processor, which must
// send it back; the upstream sees transfer-encoding: chunked. The header answer may wait until the whole body was seen."
func TestFullDuplexHoldsAndEchoes(t *testing.T) {
	t.Parallel()
	const timeout = time.Second
	p := newProcessor(t)
	large := strings.Repeat("0123456789abcdef", 4<<20/16)
	address := modelServer(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Same", strconv.FormatBool(string(body) == large))
		w.Header().Set("X-Length", strconv.FormatInt(r.ContentLength, 10))
		_, _ = io.WriteString(w, large)
	})
	envoy := start(t, "full-duplex", p, func(b envoyrun.Bootstrap) error {
		b.Listener()["per_connection_buffer_limit_bytes"] = 64 << 10
		return messageTimeout(timeout)(b)
	}, address)

	x := envoy.post(t, large)
	s := p.accept(t)
	s.want("request_headers")
	var held []byte
	for {
		piece := s.want("request_body").GetRequestBody()
		held = append(held, piece.GetBody()...)
		if piece.GetEndOfStream() {
			break
		}
	}
	time.Sleep(2 * timeout)
	s.wantAlive()
	x.wantUnanswered()
	s.send(requestHeaders(destinationHeader, address))
	const largest = 64 << 10 // "… in chunks of at most 64 KB"
	for rest := held; len(rest) > 0; {
		n := min(largest, len(rest))
		s.send(echoRequest(&extproc.HttpBody{Body: rest[:n], EndOfStream: n == len(rest)}))
		rest = rest[n:]
	}

	if status := header(s.want("response_headers").GetResponseHeaders(), ":status"); status != "200" {
		t.Errorf(":status is %q", status)
	}
	first := s.want("response_body").GetResponseBody() // "Envoy sends body messages without waiting for the header answer"
	x.wantUnanswered()
	s.send(responseHeaders())
	s.send(echoResponse(first))
	for ended := first.GetEndOfStream(); !ended; {
		piece := s.want("response_body").GetResponseBody()
		s.send(echoResponse(piece))
		ended = piece.GetEndOfStream()
	}
	resp := x.want(http.StatusOK, large)
	if same, length := resp.Header.Get("X-Same"), resp.Header.Get("X-Length"); same != "true" || length != "-1" {
		t.Errorf("the model server got the same body: %s, content-length: %s", same, length)
	}
	s.wantNoMore()
}

// "Envoy's default circuit breaker allows 1,024 requests per cluster, and each held request is one on the processor's."
// Ours is a million.
func TestMoreThan1024Held(t *testing.T) {
	const held = 1100
	p := newProcessor(t)
	envoy := start(t, "recommended", p, nil, modelServer(t, answering("")))

	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols}
	defer transport.CloseIdleConnections()
	client := http.Client{Transport: transport}
	statuses := make(chan int, held)
	var clients sync.WaitGroup
	for range held {
		clients.Go(func() {
			resp, err := client.Post(envoy.URL(), "application/json", http.NoBody)
			if err != nil {
				t.Error(err)
				statuses <- 0
				return
			}
			_ = resp.Body.Close()
			statuses <- resp.StatusCode
		})
	}
	streams := make([]*stream, 0, held)
	for range held {
		streams = append(streams, p.accept(t))
	}
	for _, s := range streams {
		s.want("request_headers")
		s.send(requestHeaders())
	}
	for _, s := range streams {
		s.want("response_headers")
		s.send(responseHeaders())
	}
	for range held {
		if status := receive(t, "an answer", statuses); status != http.StatusOK {
			t.Errorf("status %d", status)
		}
	}
	clients.Wait()
}
