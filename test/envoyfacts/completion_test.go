package envoyfacts

import (
	"io"
	"net"
	"net/http"
	"strconv"
	"testing"

	"github.com/weir-epp/weir/internal/envoyrun"
)

// sse is a model server that sends its headers at once and then the given pieces, one by one. It ends with the last
// piece. gone gets a value for each ended request.
func sse(t *testing.T) (address string, pieces chan<- string, gone <-chan struct{}) {
	t.Helper()
	source, left := make(chan string), make(chan struct{}, 16)
	address = modelServer(t, func(w http.ResponseWriter, r *http.Request) {
		defer func() { left <- struct{}{} }()
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		for {
			select {
			case piece, ok := <-source:
				if !ok {
					return
				}
				_, _ = io.WriteString(w, piece)
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				return
			}
		}
	})
	return address, source, left
}

// "response_trailer_mode: SEND with response_body_mode: NONE is a free completion signal: Envoy keeps the stream open for
// trailers that may come, and closes it when the response ends."
func TestStreamEndsWithTheResponse(t *testing.T) {
	p := newProcessor(t)
	address, pieces, _ := sse(t)
	envoy := start(t, "recommended", p, nil, address)

	x := envoy.post(t, `{"stream":true}`)
	s := p.accept(t)
	s.want("request_headers")
	s.send(withoutBody(requestHeaders(destinationHeader, address)))
	if status := header(s.want("response_headers").GetResponseHeaders(), ":status"); status != "200" {
		t.Errorf(":status in raw_value is %q, want 200", status)
	}
	s.send(responseHeaders())
	body := x.headers().Body
	for i := range 20 {
		piece := "data: " + strconv.Itoa(i) + "\n\n"
		pieces <- piece
		wantRead(t, body, piece)
		s.wantAlive()
	}
	close(pieces)
	s.wantNoMore() // and so there was one message for the whole answer
	if rest, err := io.ReadAll(body); err != nil || len(rest) > 0 {
		t.Errorf("the answer goes on with %q, %v", rest, err)
	}
}

// "SEND / NONE / SKIP: just after response headers: useless as completion."
func TestStreamWithoutTrailerModeEndsEarly(t *testing.T) {
	p := newProcessor(t)
	address, pieces, _ := sse(t)
	envoy := start(t, "recommended", p, func(b envoyrun.Bootstrap) error {
		envoyrun.Object(b.Filter(envoyrun.ExtProcFilter), "processing_mode")["response_trailer_mode"] = "SKIP"
		return nil
	}, address)

	x := envoy.post(t, "")
	s := p.accept(t)
	s.want("request_headers")
	s.send(requestHeaders())
	s.want("response_headers")
	s.send(responseHeaders())
	s.wantEnded()
	pieces <- "still running"
	wantRead(t, x.headers().Body, "still running")
	close(pieces)
}

// "A trailers message itself comes only if the upstream sent trailers (answer it)."
func TestTrailersAreAMessage(t *testing.T) {
	p := newProcessor(t)
	address := modelServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "X-Checksum")
		_, _ = io.WriteString(w, "body")
		w.Header().Set("X-Checksum", "1")
	})
	// Over HTTP/1.1 Envoy passes trailers only if configured. Upstream trailers reach ext_proc only then.
	envoy := start(t, "recommended", p, func(b envoyrun.Bootstrap) error {
		protocol := envoyrun.Object(b.Cluster(envoyrun.ModelServersCluster), "typed_extension_protocol_options",
			"envoy.extensions.upstreams.http.v3.HttpProtocolOptions", "explicit_http_config")
		protocol["http_protocol_options"] = map[string]any{"enable_trailers": true}
		return nil
	}, address)

	x := envoy.post(t, "")
	s := p.accept(t)
	s.want("request_headers")
	s.send(requestHeaders())
	s.want("response_headers")
	s.send(responseHeaders())
	s.want("response_trailers")
	s.send(responseTrailers())
	x.want(http.StatusOK, "body")
	s.wantNoMore()
}

// "Checked for: connect failure (503 made by Envoy): each time the stream's context ends, once." "Envoy's own answers
// arrive as a response-headers message too."
func TestStreamEndsWhenNobodyListens(t *testing.T) {
	p := newProcessor(t)
	envoy := start(t, "recommended", p, nil, unused(t))

	x := envoy.post(t, "")
	s := p.accept(t)
	s.want("request_headers")
	s.send(requestHeaders())
	if status := header(s.want("response_headers").GetResponseHeaders(), ":status"); status != "503" {
		t.Errorf(":status is %q, want Envoy's own 503", status)
	}
	s.send(responseHeaders())
	if resp := x.headers(); resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("status is %d, want 503", resp.StatusCode)
	}
	s.wantNoMore()
}

// "… client gone while queued, while waiting for headers, and in mid-stream."
func TestStreamEndsWithTheClient(t *testing.T) {
	for _, when := range []string{"queued", "waiting for headers", "in mid-stream"} {
		t.Run(when, func(t *testing.T) {
			p := newProcessor(t)
			address, pieces, gone := sse(t)
			envoy := start(t, "recommended", p, nil, address)

			x := envoy.post(t, `{}`)
			s := p.accept(t)
			s.want("request_headers")
			switch when {
			case "waiting for headers":
				s.send(withoutBody(requestHeaders()))
				s.want("response_headers")
			case "in mid-stream":
				s.send(withoutBody(requestHeaders()))
				s.want("response_headers")
				s.send(responseHeaders())
				pieces <- "begun"
				wantRead(t, x.headers().Body, "begun")
			}
			s.wantAlive()
			x.hangUp()
			s.wantNoMore()
			if when != "queued" {
				receive(t, "the model server's slot to be free", gone)
			}
		})
	}
}

// unused returns an address without a listener.
func unused(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}
