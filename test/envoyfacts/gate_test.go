package envoyfacts

import (
	"io"
	"net/http"
	"strings"
	"testing"

	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
)

// gateID is the metadata key that links a gate's stream to its main stream.
func gateID(message *extproc.ProcessingRequest) string {
	return message.GetMetadataContext().GetFilterMetadata()["weir"].GetFields()["id"].GetStringValue()
}

// passGate drives a gate's stream: it answers the headers after the first piece of the body, and ends the stream.
func (s *stream) passGate() {
	s.t.Helper()
	message := s.want("response_headers")
	if message.GetResponseHeaders().GetEndOfStream() {
		s.send(responseHeaders())
		s.end(nil)
		return
	}
	s.want("response_body")
	s.openGate()
}

// openGate answers the headers and the first piece, both of which wait, and ends the stream.
func (s *stream) openGate() {
	s.t.Helper()
	s.send(responseHeaders())
	s.send(responseBody())
	s.end(nil)
}

// gated starts an exchange through gate.yaml and drives it until the gate has the answer's headers.
func gated(t *testing.T, p *processor, envoy *proxy, destination string) (x *exchange, main, gate *stream) {
	t.Helper()
	x = envoy.post(t, `{"stream":true}`)
	main = p.accept(t)
	main.want("request_headers")
	main.send(withMetadata(withoutBody(requestHeaders(destinationHeader, destination)), "weir", "id", "r-17"))
	gate = p.accept(t)
	message := gate.want("response_headers")
	if id := gateID(message); id != "r-17" {
		t.Errorf("the gate's stream is of request %q, want r-17", id)
	}
	if status := header(message.GetResponseHeaders(), ":status"); status != "200" {
		t.Errorf("the gate's :status is %q", status)
	}
	return x, main, gate
}

// "Its stream begins with the response-headers message; leave it unanswered; the first response-body message arrives
// meanwhile: that moment is the first token. Then answer the headers, answer that chunk (empty), and end the stream with
// OK: Envoy passes all later chunks on without a message. The main filter sees its own response-headers message only
// now."
func TestGateHoldsUntilTheFirstToken(t *testing.T) {
	p := newProcessor(t)
	address, pieces, _ := sse(t)
	envoy := start(t, "gate", p, nil, address)

	x, main, gate := gated(t, p, envoy, address)
	x.wantUnanswered()
	if len(main.messages) > 0 {
		t.Errorf("the main stream has a message already: %s", kind(main.next()))
	}
	pieces <- "data: first\n\n"
	if body := gate.want("response_body").GetResponseBody().GetBody(); string(body) != "data: first\n\n" {
		t.Errorf("first piece is %q", body)
	}
	x.wantUnanswered()
	gate.openGate()
	main.want("response_headers")
	main.send(responseHeaders())
	body := x.headers().Body
	wantRead(t, body, "data: first\n\n")
	gate.wantNoMore()
	for range 20 {
		pieces <- "data: more\n\n"
		wantRead(t, body, "data: more\n\n")
	}
	main.wantAlive()
	close(pieces)
	if rest, err := io.ReadAll(body); err != nil || len(rest) > 0 {
		t.Errorf("rest is %q, %v", rest, err)
	}
	main.wantNoMore()
}

// "… each byte-identical, no stream left", here for answers that race with the end of the gate's stream.
func TestGateKeepsEveryByte(t *testing.T) {
	p := newProcessor(t)
	line := strings.Repeat("0123456789abcdef", 1<<10)
	address := modelServer(t, func(w http.ResponseWriter, _ *http.Request) {
		for begin := 0; begin < len(line); {
			end := min(len(line), begin+begin*begin%701+1) // pieces of 1 to 701 bytes
			_, _ = io.WriteString(w, line[begin:end])
			_ = http.NewResponseController(w).Flush()
			begin = end
		}
	})
	envoy := start(t, "gate", p, nil, address)
	for range 20 {
		x, main, gate := gated(t, p, envoy, address)
		gate.want("response_body")
		gate.openGate()
		main.want("response_headers")
		main.send(responseHeaders())
		x.want(http.StatusOK, line)
		gate.wantEnded()
		main.wantNoMore()
	}
}

// "While the gate holds the headers, the main stream's unsolicited ImmediateResponse gives the client a clean 503."
func TestPreemptionAtTheGate(t *testing.T) {
	p := newProcessor(t)
	address, _, gone := sse(t)
	envoy := start(t, "gate", p, nil, address)

	x, main, gate := gated(t, p, envoy, address)
	main.send(rejection("preempted"))
	x.wantRejection("preempted")
	receive(t, "the model server's request to be cancelled", gone)
	main.wantEnded()
	gate.wantEnded()
}

// "EPP killed while holding: the headers flow on and the answers are whole."
func TestGateDies(t *testing.T) {
	p := newProcessor(t)
	address, pieces, _ := sse(t)
	envoy := start(t, "gate", p, nil, address)

	x, _, _ := gated(t, p, envoy, address)
	x.wantUnanswered()
	p.die()
	body := x.headers().Body
	pieces <- "whole"
	wantRead(t, body, "whole")
	close(pieces)
	if rest, err := io.ReadAll(body); err != nil || len(rest) > 0 {
		t.Errorf("rest is %q, %v", rest, err)
	}
}

// A rejection is an answer too: it reaches the gate, on a stream that no metadata links to a request.
func TestRejectionGoesThroughTheGate(t *testing.T) {
	p := newProcessor(t)
	envoy := start(t, "gate", p, nil, unused(t))

	x := envoy.post(t, `{}`)
	main := p.accept(t)
	main.want("request_headers")
	main.send(rejection("queue-full"))
	gate := p.accept(t)
	message := gate.want("response_headers")
	if id := gateID(message); id != "" {
		t.Errorf("it has the name %q", id)
	}
	if status := header(message.GetResponseHeaders(), ":status"); status != "503" {
		t.Errorf(":status is %q", status)
	}
	x.wantUnanswered()
	gate.want("response_body")
	gate.openGate()
	x.wantRejection("queue-full")
}
