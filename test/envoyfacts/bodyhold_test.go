package envoyfacts

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/envoyrun"
)

// One override counts for the whole body phase, from its start to the answer. Sent directly after the answer to the
// headers, it covers the body's way to the processor and the following wait. This needs a whole body at that time, as
// with the buffer filter. A second override in the same phase is ignored, even a longer one.
func TestOneOverrideForTheBodyPhase(t *testing.T) {
	t.Parallel()
	const timeout, override = 2 * time.Second, 6 * time.Second // a message of the processor takes less
	p := newProcessor(t)
	envoy := start(t, "fail-closed", p, messageTimeout(timeout), modelServer(t, answering("whole")))

	x := envoy.post(t, `{}`)
	s := p.accept(t)
	s.want("request_headers")
	s.send(requestHeaders())
	s.send(overrideTimeout(override))
	begun := time.Now()
	s.want("request_body")
	time.Sleep(timeout + timeout/2)
	s.wantAlive()
	x.wantUnanswered()
	s.send(overrideTimeout(time.Hour))
	x.wantError(http.StatusGatewayTimeout, "timeout")
	if held := time.Since(begun); held < override-timeout/2 {
		t.Errorf("the request was held for %v, want the first override's %v", held, override)
	}
	s.wantEnded()
	stats, err := envoy.Stats(t.Context(), `ext_proc\.override_message_timeout_`)
	if err != nil {
		t.Fatal(err)
	}
	const prefix = "http.inference.ext_proc.override_message_timeout_"
	if received, ignored := stats[prefix+"received"], stats[prefix+"ignored"]; received != 1 || ignored != 1 {
		t.Errorf("%d overrides were received and %d ignored, want 1 and 1: %v", received, ignored, stats)
	}
}

// While the client still sends, no message is outstanding and an override is ignored. It does not count as the one of
// the body phase: the override after the body does.
func TestOverrideBeforeTheBodyIsWhole(t *testing.T) {
	t.Parallel()
	const timeout = 2 * time.Second
	p := newProcessor(t)
	envoy := start(t, "fail-closed", p, envoyrun.Edits(
		envoyrun.WithoutFilter(envoyrun.BufferFilter), messageTimeout(timeout)), modelServer(t, answering("whole")))

	body, rest := io.Pipe()
	defer rest.Close()
	x := envoy.send(t, body)
	if _, err := io.WriteString(rest, `{"half":`); err != nil {
		t.Fatal(err)
	}
	s := p.accept(t)
	s.want("request_headers")
	s.send(requestHeaders())
	s.send(overrideTimeout(time.Hour))
	time.Sleep(timeout + timeout/4) // a body takes its time without a message outstanding
	s.wantAlive()
	if _, err := io.WriteString(rest, `1}`); err != nil {
		t.Fatal(err)
	}
	_ = rest.Close()
	s.want("request_body")
	s.send(overrideTimeout(time.Hour))
	time.Sleep(timeout + timeout/4)
	s.wantAlive()
	x.wantUnanswered()
	s.send(requestBody())
	s.want("response_headers")
	s.send(responseHeaders())
	x.want(http.StatusOK, "whole")
}
