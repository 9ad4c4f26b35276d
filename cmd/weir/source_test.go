package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A recording comes from /debug/recording of an epp's debug port. The output has epp's reason for an error, without
// control characters.
func TestExplainReadsADebugPort(t *testing.T) {
	port := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/led" {
			http.Redirect(w, r, "/debug/recording", http.StatusFound)
			return
		}
		if r.URL.Path != "/debug/recording" {
			http.Error(w, "nothing is recorded\x1b[2J, since recording is 0"+strings.Repeat(" and so on", 1000), http.StatusNotFound)
			return
		}
		_, _ = w.Write([]byte(`{"number":7,"flow":"a","outcome":"dispatched","waitedSeconds":2}` + "\n"))
	}))
	defer port.Close()
	for _, c := range []struct {
		address, stdout, stderr string
		code                    int
	}{
		{port.URL, `"number":7`, "", 0},
		{port.URL + "/", `"number":7`, "", 0},
		{port.URL + "/debug/recording", `"number":7`, "", 0},
		{port.URL + "/elsewhere", "", "/elsewhere: status 404: nothing is recorded�[2J, since recording is 0", 1},
		{port.URL + "/led", "", "/led: status 302", 1},
		{"http://127.0.0.1:1", "", "connection refused", 1},
	} {
		var stdout, stderr strings.Builder
		code := run([]string{"explain", c.address, "-o", "json"}, &stdout, &stderr)
		if code != c.code || !strings.Contains(stdout.String(), c.stdout) || !strings.Contains(stderr.String(), c.stderr) || stderr.Len() > 1000 {
			t.Errorf("%s: code %d: %s%s", c.address, code, stdout.String(), stderr.String())
		}
	}
}

// An answer may be slow, as long as it goes on.
func TestSlowAnswersAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		out, in := io.Pipe()
		timer := time.AfterFunc(patience, func() {
			cancel(errSilent)
			_ = in.CloseWithError(io.ErrUnexpectedEOF)
		})
		go func() {
			for range 5 {
				time.Sleep(patience - 1)
				_, _ = in.Write([]byte("x"))
			}
			_ = in.Close()
		}()
		body := &answer{out, ctx, timer}
		if text, err := io.ReadAll(body); err != nil || len(text) != 5 {
			t.Errorf("%q, %v", text, err)
		}
		_ = body.Close()
	})
}

// An answer that stalls, before or after its beginning, ends with an error, without the address's password.
func TestSilentAnswersEnd(t *testing.T) {
	was := patience
	patience = 100 * time.Millisecond
	defer func() { patience = was }()
	ended := make(chan struct{})
	port := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/begun" {
			_, _ = w.Write([]byte("{"))
			_ = http.NewResponseController(w).Flush()
		}
		select {
		case <-r.Context().Done():
		case <-ended:
		}
	}))
	defer port.Close()
	defer close(ended)
	at := strings.Replace(port.URL, "http://", "http://user:secret@", 1)
	for _, command := range [][]string{
		{"explain", at}, {"explain", at + "/begun"}, {"replay", at}, {"replay", at + "/begun"}, {"simulate", "--recording", at}, {"doctor", at},
	} {
		var stdout, stderr strings.Builder
		code := run(command, &stdout, &stderr)
		if code == 0 || !strings.Contains(stderr.String(), errSilent.Error()) || strings.Contains(stderr.String(), "secret") {
			t.Errorf("%v: code %d: %s%s", command, code, stdout.String(), stderr.String())
		}
	}
}
