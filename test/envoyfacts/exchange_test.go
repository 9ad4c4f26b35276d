package envoyfacts

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/weir-epp/weir/internal/envoyrun"
)

// A test may leave no goroutine and no connection to Envoy behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// proxy is a running Envoy in its clients' view.
type proxy struct{ *envoyrun.Envoy }

// start starts a shipped configuration, with a message timeout that even a loaded machine does not reach. If Envoy
// crashes, the test fails.
func start(t *testing.T, config string, p *processor, edit func(envoyrun.Bootstrap) error, modelServers ...string) *proxy {
	t.Helper()
	envoy, err := envoyrun.Start(context.Background(), envoyrun.Options{
		Config: config, Weir: p.address, ModelServers: modelServers,
		Edit: func(b envoyrun.Bootstrap) error {
			_ = messageTimeout(2 * patience)(b)
			if edit == nil {
				return nil
			}
			return edit(b)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			lines, _ := envoy.AccessLog()
			log, _ := os.ReadFile(envoy.Log())
			t.Logf("access log:\n%s\nEnvoy's log:\n%s", strings.Join(lines, "\n"), log)
		}
		if err := envoy.Stop(); err != nil {
			t.Error(err)
		}
	})
	return &proxy{envoy}
}

// modelServer serves handler on a port of its own until the test ends, and returns its ip:port.
func modelServer(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.Listener.Addr().String()
}

// answering reads every request and answers it with a name.
func answering(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, name)
	}
}

// exchange is one request of a client and its answer.
type exchange struct {
	t      *testing.T
	hangUp context.CancelFunc
	answer chan *http.Response // one, once its headers are there; closed if there is none
	err    error               // the reason for a missing answer
}

// post sends a request on a connection of its own and does not wait for the answer. pairs are headers.
func (e *proxy) post(t *testing.T, body string, pairs ...string) *exchange {
	t.Helper()
	return e.send(t, strings.NewReader(body), pairs...)
}

// postTo is post to another path.
func (e *proxy) postTo(t *testing.T, path, body string, pairs ...string) *exchange {
	t.Helper()
	return e.sendTo(t, path, strings.NewReader(body), pairs...)
}

func (e *proxy) send(t *testing.T, body io.Reader, pairs ...string) *exchange {
	t.Helper()
	return e.sendTo(t, "/v1/completions", body, pairs...)
}

func (e *proxy) sendTo(t *testing.T, path string, body io.Reader, pairs ...string) *exchange {
	t.Helper()
	ctx, hangUp := context.WithCancel(context.Background())
	t.Cleanup(hangUp)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL()+path, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(pairs); i += 2 {
		req.Header.Set(pairs[i], pairs[i+1])
	}
	x := &exchange{t: t, hangUp: hangUp, answer: make(chan *http.Response, 1)}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}}
	go func() {
		defer close(x.answer)
		var resp *http.Response
		if resp, x.err = client.Do(req); x.err == nil {
			x.answer <- resp
		}
	}()
	return x
}

// headers waits for the answer's headers.
func (x *exchange) headers() *http.Response {
	x.t.Helper()
	resp := receive(x.t, "the answer's headers", x.answer)
	x.t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

// wantUnanswered checks that the client does not have the answer's headers yet.
func (x *exchange) wantUnanswered() {
	x.t.Helper()
	if len(x.answer) > 0 {
		x.t.Fatal("the client has an answer already")
	}
}

// want waits for the whole answer, which must have this status and this body.
func (x *exchange) want(status int, body string) *http.Response {
	x.t.Helper()
	resp := x.headers()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		x.t.Fatalf("reading the answer: %v", err)
	}
	if resp.StatusCode != status || string(got) != body {
		x.t.Fatalf("answer is %d %q, want %d %q", resp.StatusCode, shorten(got), status, shorten([]byte(body)))
	}
	return resp
}

// wantError waits for the whole answer, which must be an error of Envoy's own in the form of OpenAI's API.
func (x *exchange) wantError(status int, code string) {
	x.t.Helper()
	resp := x.headers()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		x.t.Fatalf("reading the answer: %v", err)
	}
	wantErrorShape(x.t, resp.StatusCode, resp.Header, got, status, code)
}

// wantErrorShape checks that the body is an error with this code in the form of OpenAI's API.
func wantErrorShape(t *testing.T, got int, header http.Header, body []byte, status int, code string) {
	t.Helper()
	var e struct {
		Error struct {
			Message, Type, Code string
			Param               *string
		}
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&e); err != nil || got != status || header.Get("content-type") != "application/json" ||
		e.Error.Code != code || e.Error.Message == "" || e.Error.Type == "" || !bytes.Contains(body, []byte(`"param":null`)) {
		t.Errorf("answer is %d %s %q (%v), want %d with the code %q in OpenAI's shape",
			got, header.Get("content-type"), shorten(body), err, status, code)
	}
}

func shorten(b []byte) string {
	if len(b) > 200 {
		return string(b[:200]) + "…"
	}
	return string(b)
}

// wantRead reads exactly the wanted bytes from an answer that continues.
func wantRead(t *testing.T, from io.Reader, wanted string) {
	t.Helper()
	got := make([]byte, len(wanted))
	if _, err := io.ReadFull(from, got); err != nil || string(got) != wanted {
		t.Fatalf("read %q, %v; want %q", got, err, wanted)
	}
}
