package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// ask is one request to Envoy.
type ask struct {
	method string   // default POST
	path   string   // default /v1/chat/completions
	body   string   // default: chat("m", false)
	header []string // name, value, …
	tenant string   // x-llm-d-inference-fairness-id

	unannounced bool // the body is chunked, without a content-length

	envoy  int          // index of the scene's Envoy to use
	client *http.Client // default: HTTP/1.1
}

// chat returns a chat completion request for a model.
func chat(model string, stream bool) string {
	return fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":"hello"}],"max_tokens":4,"stream":%v}`, model, stream)
}

// answer is a client's view of an answer.
type answer struct {
	status int
	header http.Header
	body   string
	err    error
}

// reason returns the x-weir-reason header.
func (a answer) reason() string { return a.header.Get("x-weir-reason") }

// failure is an OpenAI-shaped error body.
type failure struct {
	Error struct {
		Message, Type, Code string
		Param               any
	}
}

// failure decodes the error body.
func (a answer) failure(t *testing.T) failure {
	t.Helper()
	var f failure
	if err := json.Unmarshal([]byte(a.body), &f); err != nil {
		t.Fatalf("the error body is not JSON: %v: %q", err, a.body)
	}
	return f
}

// client uses a connection per request in flight, and has no timeout but the context's.
var client = &http.Client{
	Transport: &http.Transport{MaxIdleConnsPerHost: 1024, DisableCompression: true},
}

// client2 speaks HTTP/2 without TLS: requests share a connection, and a cancelled one resets only its stream.
var client2 = &http.Client{Transport: func() *http.Transport {
	t := &http.Transport{DisableCompression: true, Protocols: new(http.Protocols)}
	t.Protocols.SetUnencryptedHTTP2(true)
	return t
}()}

// send sends one request to an Envoy and reads the whole answer.
func send(ctx context.Context, url string, a ask) answer {
	if a.method == "" {
		a.method = http.MethodPost
	}
	if a.path == "" {
		a.path = "/v1/chat/completions"
	}
	if a.body == "" && a.method == http.MethodPost {
		a.body = chat("tiny", false)
	}
	var body io.Reader = strings.NewReader(a.body)
	if a.unannounced {
		body = io.MultiReader(body) // whose length net/http cannot see
	}
	request, err := http.NewRequestWithContext(ctx, a.method, url+a.path, body)
	if err != nil {
		return answer{err: err}
	}
	if a.method == http.MethodPost {
		request.Header.Set("content-type", "application/json")
	}
	if a.tenant != "" {
		request.Header.Set("x-llm-d-inference-fairness-id", a.tenant)
	}
	for i := 0; i+1 < len(a.header); i += 2 {
		if a.header[i] == "content-type" {
			request.Header.Del(a.header[i])
		}
		request.Header.Add(a.header[i], a.header[i+1])
	}
	if a.client == nil {
		a.client = client
	}
	response, err := a.client.Do(request)
	if err != nil {
		return answer{err: err}
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return answer{status: response.StatusCode, header: response.Header, body: string(text), err: err}
}

// send sends one request to the scene's Envoy.
func (s *scene) send(a ask) answer {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	return send(ctx, s.envoys[a.envoy].URL(), s.authorized(a))
}

// pending is a request in progress.
type pending struct {
	done   chan struct{}
	cancel context.CancelFunc
	answer answer // valid after done
}

// begin sends a request to the scene's Envoy without waiting for the answer.
func (s *scene) begin(a ask) *pending {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	p := &pending{done: make(chan struct{}), cancel: cancel}
	a = s.authorized(a)
	go func() {
		defer cancel()
		p.answer = send(ctx, s.envoys[a.envoy].URL(), a)
		close(p.done)
	}()
	s.t.Cleanup(func() { cancel(); <-p.done })
	return p
}

// wait waits for the answer.
func (p *pending) wait() answer {
	<-p.done
	return p.answer
}
