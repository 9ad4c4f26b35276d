package modelsim

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-epp/weir/internal/memnet"
)

// bubble is a model server and a client of it in virtual time.
type bubble struct {
	*Server
	t      *testing.T
	client *http.Client
}

// inBubble runs the test in virtual time against a server with an in-memory listener. Everything must have ended when
// it returns.
func inBubble(t *testing.T, cfg Config, test func(t *testing.T, b *bubble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		listener := memnet.Listen()
		s, err := Serve(listener, cfg)
		if err != nil {
			t.Fatal(err)
		}
		transport := &http.Transport{
			DialContext:         listener.Dial,
			MaxIdleConnsPerHost: 100,
		}
		defer s.Close()
		defer transport.CloseIdleConnections()
		test(t, &bubble{Server: s, t: t, client: &http.Client{Transport: transport}})
	})
}

// send posts a body and returns the answer with its headers. The test's end closes the answer's body.
func (b *bubble) send(ctx context.Context, path, body string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://memory"+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("X-Request-Id", "id-"+path)
	return b.client.Do(req)
}

// post posts a body and returns the whole answer.
func (b *bubble) post(path, body string) (status int, answer string) {
	b.t.Helper()
	resp, err := b.send(b.t.Context(), path, body)
	if err != nil {
		b.t.Errorf("POST %s: %v", path, err)
		return 0, ""
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Errorf("POST %s: reading the answer: %v", path, err)
	}
	return resp.StatusCode, string(data)
}

// moment is one event of a stream, and its time.
type moment struct {
	after time.Duration
	data  string // the data line's
}

// readEvents reads a stream to its end.
func readEvents(t *testing.T, body io.Reader, start time.Time) []moment {
	t.Helper()
	var moments []moment
	scanner := bufio.NewScanner(body)
	for scanner.Scan() {
		if data, ok := bytes.CutPrefix(scanner.Bytes(), []byte("data: ")); ok {
			moments = append(moments, moment{time.Since(start), string(data)})
		}
	}
	if err := scanner.Err(); err != nil {
		t.Errorf("reading the stream: %v", err)
	}
	return moments
}
