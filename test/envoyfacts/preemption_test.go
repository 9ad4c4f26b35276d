package envoyfacts

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weir-epp/weir/internal/expect"
)

// hanging is a model server that accepts requests and never answers. arrived gets a value for each request, and gone
// one for each disconnected client.
func hanging(t *testing.T) (address string, arrived, gone <-chan struct{}) {
	t.Helper()
	came, left := make(chan struct{}, 16), make(chan struct{}, 16)
	address = modelServer(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		came <- struct{}{}
		<-r.Context().Done()
		left <- struct{}{}
	})
	return address, came, left
}

// dispatch drives a new stream until its small request has gone on to the model server, in any mode.
func dispatch(t *testing.T, p *processor, config, destination string) *stream {
	t.Helper()
	s := p.accept(t)
	s.want("request_headers")
	s.send(requestHeaders(destinationHeader, destination))
	switch config {
	case "header-only":
	case "full-duplex":
		for {
			body := s.want("request_body").GetRequestBody()
			s.send(echoRequest(body))
			if body.GetEndOfStream() {
				return s
			}
		}
	default:
		s.want("request_body")
		s.send(requestBody())
	}
	return s
}

// wantRejection waits for the answer, which must be exactly the rejection.
func (x *exchange) wantRejection(reason string) {
	x.t.Helper()
	resp := x.want(http.StatusServiceUnavailable, rejectionBody)
	for name, want := range map[string]string{
		"Content-Type": "application/json", "Retry-After": "7", "X-Weir-Reason": reason,
	} {
		if got := resp.Header.Get(name); got != want {
			x.t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// "After the request was dispatched and before response headers, an unsolicited ImmediateResponse on the same stream is
// honoured at once: the client gets the status, headers and body; the upstream connection is reset; the stream ends."
func TestPreemptionInFlight(t *testing.T) {
	for _, config := range []string{"recommended", "header-only", "buffered-partial", "full-duplex"} {
		t.Run(config, func(t *testing.T) {
			p := newProcessor(t)
			address, arrived, gone := hanging(t)
			envoy := start(t, config, p, nil, address)

			x := envoy.post(t, `{"model":"m"}`)
			s := dispatch(t, p, config, address)
			receive(t, "the request at the model server", arrived)
			x.wantUnanswered()
			s.send(rejection("preempted"))
			x.wantRejection("preempted")
			receive(t, "the model server's request to be cancelled", gone)
			s.wantEnded()
		})
	}
}

// "As the answer to the response-headers message it still replaces the whole response (the upstream's 200 is dropped)."
func TestRejectionReplacesAnAnswer(t *testing.T) {
	p := newProcessor(t)
	address := modelServer(t, answering("an answer that nobody sees"))
	envoy := start(t, "recommended", p, nil, address)

	x := envoy.post(t, `{}`)
	s := dispatch(t, p, "recommended", address)
	s.want("response_headers")
	x.wantUnanswered()
	s.send(rejection("preempted"))
	x.wantRejection("preempted")
	s.wantEnded()
}

// begun starts a streamed answer. The client has its first piece.
func begun(t *testing.T) (s *stream, body io.Reader, pieces chan<- string, gone <-chan struct{}) {
	t.Helper()
	p := newProcessor(t)
	address, pieces, gone := sse(t)
	envoy := start(t, "recommended", p, nil, address)
	x := envoy.post(t, `{}`)
	s = dispatch(t, p, "recommended", address)
	s.want("response_headers")
	s.send(responseHeaders())
	pieces <- "begun"
	body = x.headers().Body
	wantRead(t, body, "begun")
	return s, body, pieces, gone
}

// "After response headers have gone to the client it cuts the stream (client: transfer closed early): never do that."
func TestRejectionAfterTheFirstByteCutsTheAnswer(t *testing.T) {
	s, body, _, gone := begun(t)
	s.send(rejection("too late"))
	if rest, err := io.ReadAll(body); err == nil {
		t.Errorf("the answer ended orderly, with %q", rest)
	}
	receive(t, "the model server's request to be cancelled", gone)
}

// "ImmediateResponse while held: in every mode, with JSON body, content-type, retry-after and own headers delivered as
// sent." "ImmediateResponse.details appears as %RESPONSE_CODE_DETAILS% in Envoy's access log."
func TestRejectionWhileHeld(t *testing.T) {
	for _, config := range []string{"recommended", "header-only", "buffered-partial", "streamed", "full-duplex"} {
		t.Run(config, func(t *testing.T) {
			p := newProcessor(t)
			envoy := start(t, config, p, nil, unused(t))

			x := envoy.post(t, strings.Repeat("x", 2<<20))
			s := p.accept(t)
			s.want("request_headers")
			s.send(rejection("queue-full"))
			x.wantRejection("queue-full")
			s.wantEnded()
			expect.True(t, "the access log has the reason", func() bool {
				entries, err := envoy.AccessEntries()
				return err == nil && len(entries) == 1 && entries[0]["status"] == 503.0 && entries[0]["details"] == "queue-full"
			})
		})
	}
}

// "Ending the stream with OK after the request was answered lets the exchange go on, unobserved."
func TestStreamEndedByUs(t *testing.T) {
	s, body, pieces, _ := begun(t)
	s.end(nil)
	s.wantEnded()
	pieces <- ", goes on"
	close(pieces)
	wantRead(t, body, ", goes on")
	if rest, err := io.ReadAll(body); err != nil || len(rest) > 0 {
		t.Errorf("rest is %q, %v", rest, err)
	}
}

// Ending a held request's stream with a gRPC error rejects it only in fail-closed. In fail-open the request goes on.
func TestStreamEndedByUsWithAnError(t *testing.T) {
	for config, want := range map[string]int{"recommended": http.StatusOK, "fail-closed": http.StatusServiceUnavailable} {
		t.Run(config, func(t *testing.T) {
			p := newProcessor(t)
			envoy := start(t, config, p, nil, modelServer(t, answering("")))

			x := envoy.post(t, `{}`)
			s := p.accept(t)
			s.want("request_headers")
			s.end(status.Error(codes.Internal, "broken"))
			if want == http.StatusOK {
				x.want(want, "")
			} else {
				x.wantError(want, "unavailable")
			}
		})
	}
}
