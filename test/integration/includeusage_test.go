package integration

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/modelsim"
)

// asking configures Weir to request the usage that clients do not request.
const asking = wide + `cost: tokens
tokens: { includeUsage: true }
`

// buffering makes an Envoy collect the request's body, unlike streamed.yaml.
func buffering(b envoyrun.Bootstrap) error {
	envoyrun.Object(b.Filter("envoy.filters.http.ext_proc"), "processing_mode")["request_body_mode"] = "BUFFERED"
	return nil
}

// showing are the ways in which an Envoy shows the bodies of requests and answers.
var showing = []struct {
	name, envoy string
	edit        func(envoyrun.Bootstrap) error
}{{"full-duplex", "full-duplex", nil}, {"buffered, then streamed", "streamed", buffering}}

// engine is a model server that reports usage on request, as a vLLM does, and records the bodies.
type engineThatReports struct {
	mu   sync.Mutex
	sent map[string]string // body by x-case
	cut  atomic.Int64      // bytes of a piece
	// length has it announce the length of its streams.
	length bool
}

func (e *engineThatReports) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	e.mu.Lock()
	e.sent[r.Header.Get("x-case")] = string(body)
	e.mu.Unlock()
	if n := r.Header.Get("content-length"); n != "" && n != strconv.Itoa(len(body)) {
		http.Error(w, "content-length", http.StatusBadRequest)
		return
	}
	var asked struct {
		Stream  bool
		Options *struct {
			IncludeUsage bool `json:"include_usage"`
		} `json:"stream_options"`
	}
	if err := json.Unmarshal(body, &asked); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if !asked.Stream {
		w.Header().Set("content-type", "application/json")
		_, _ = io.WriteString(w, `{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":5}}`)
		return
	}
	w.Header().Set("content-type", "text/event-stream; charset=utf-8")
	answer := streamed(asked.Options != nil && asked.Options.IncludeUsage)
	if e.length {
		w.Header().Set("content-length", strconv.Itoa(len(answer)))
	}
	size := int(e.cut.Load())
	for rest := answer; rest != ""; {
		n := min(size, len(rest))
		_, _ = io.WriteString(w, rest[:n])
		_ = http.NewResponseController(w).Flush()
		rest = rest[n:]
		time.Sleep(200 * time.Microsecond)
	}
}

// streamed is a streamed answer, with its usage or without.
func streamed(usage bool) string {
	const chunk = `data: {"id":"x","object":"chat.completion.chunk","choices":[%s]%s}` + "\n\n"
	text := ": hello\n\n"
	for _, word := range []string{"one", `\"choices\":[],\"usage\":{}`, "three"} {
		text += fmt.Sprintf(chunk, `{"index":0,"delta":{"content":"`+word+`"}}`, "")
	}
	text += fmt.Sprintf(chunk, "", `,"prompt_filter_results":[]`)
	if usage {
		text += fmt.Sprintf(chunk, "", `,"usage":{"prompt_tokens":7,"total_tokens":12,"completion_tokens":5}`)
	}
	return text + "data: [DONE]\n\n"
}

// Weir requests the usage that clients do not request, without a visible effect for them: neither in their answers, for
// any cuts, nor in other fields of the request. Clients that request it get it.
func TestIncludeUsage(t *testing.T) {
	t.Parallel()
	const options = `{"include_usage":true}`
	requests := []struct {
		path, body, sent string // sent is the model server's body
		asks             bool
	}{
		{
			path: "/v1/chat/completions", body: "{ \"model\":\"m\",\"stream\" : true,\"x\":1e3 }\r\n",
			sent: "{\"stream_options\":" + options + ", \"model\":\"m\",\"stream\" : true,\"x\":1e3 }\r\n",
		},
		{
			path: "/v1/completions", body: `{"model":"m","stream":true,"stream_options":null}`,
			sent: `{"model":"m","stream":true,"stream_options":` + options + `}`,
		},
		{
			path: "/v1/chat/completions", body: `{"model":"m","stream":true,"stream_options":{"include_usage": false, "x":"\u00fc"}}`,
			sent: `{"model":"m","stream":true,"stream_options":{"include_usage": true, "x":"\u00fc"}}`,
		},
		{
			path: "/v1/chat/completions", body: `{"model":"m","stream":true,"stream\u005foptions":{}}`,
			sent: `{"model":"m","stream":true,"stream\u005foptions":` + options + `}`,
		},
		{
			path: "/v1/chat/completions", body: `{"model":"m","stream":true,"stream_options":{"include_usage":true},"stream_options":{"x":{"include_usage":true}}}`,
			sent: `{"model":"m","stream":true,"stream_options":{"include_usage":true},"stream_options":{"include_usage":true,"x":{"include_usage":true}}}`,
		},
		{path: "/v1/chat/completions", body: `{"model":"m","stream":true,"stream_options":{"include_usage":true}}`, asks: true},
		{path: "/v1/chat/completions", body: `{"model":"m","stream":false}`},
		{path: "/v1/chat/completions", body: `{"model":"m"}`},
	}
	for _, way := range showing {
		for _, length := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, announced length %v", way.name, length), func(t *testing.T) {
				t.Parallel()
				server := &engineThatReports{sent: map[string]string{}, length: length}
				s := before(t, server, setup{envoys: []string{way.envoy}, config: asking, edit: way.edit})
				answers := 0
				for _, size := range []int64{1, 2, 7, 64, 1 << 20} {
					server.cut.Store(size)
					var clients sync.WaitGroup
					for i, r := range requests {
						answers++
						clients.Go(func() {
							name := fmt.Sprint(i)
							got := s.send(ask{path: r.path, body: r.body, header: []string{"x-case", name, "accept-encoding", "gzip"}})
							want := streamed(r.asks)
							if !strings.Contains(r.body, `true`) {
								want = `{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":5}}`
							}
							if got.err != nil || got.status != 200 || got.body != want {
								t.Errorf("%s in pieces of %d: %d %v\n got %q\nwant %q", r.body, size, got.status, got.err, got.body, want)
							}
							sent := r.sent
							if sent == "" {
								sent = r.body
							}
							server.mu.Lock()
							defer server.mu.Unlock()
							if server.sent[name] != sent {
								t.Errorf("the model server got %q\n                   want %q", server.sent[name], sent)
							}
						})
					}
					clients.Wait()
				}
				s.epp.settled()
				s.epp.waitFor(float64(7*answers), "weir_extproc_usage_tokens_total", "kind", "input")
				s.epp.waitFor(0, "weir_extproc_usage_unknown_total")
				if n := s.epp.value("weir_extproc_body_bytes") + s.epp.value("weir_extproc_panics_total"); n != 0 {
					t.Errorf("%v bytes are held, or panics", n)
				}
			})
		}
	}
}

// If Envoy does not show Weir both bodies, Weir requests nothing, and a warning has the reason.
func TestIncludeUsageNeedsBothBodies(t *testing.T) {
	t.Parallel()
	for _, envoy := range []string{"recommended", "streamed"} {
		t.Run(envoy, func(t *testing.T) {
			t.Parallel()
			server := &engineThatReports{sent: map[string]string{}}
			server.cut.Store(1 << 20)
			s := before(t, server, setup{envoys: []string{envoy}, config: asking})
			const body = `{"model":"m","stream":true}`
			if got := s.send(ask{body: body}); got.body != streamed(false) || server.sent[""] != body {
				t.Errorf("got %q; the model server got %q", got.body, server.sent[""])
			}
			s.epp.told(1, "tokens.includeUsage cannot ask")
		})
	}
}

// The real client sees the same chunks, whether Weir asks for the usage or not.
func TestRealClientSeesNoUsage(t *testing.T) {
	t.Parallel()
	const streams = "chat_unasked,chat_declined,completions_unasked,chat_asked"
	model := modelsim.Instant()
	models := []modelsim.Config{model}
	want := <-start(t, setup{models: models}).python(streams)
	for _, way := range showing {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, setup{envoys: []string{way.envoy}, models: models, config: asking, edit: way.edit})
			got := <-s.python(streams)
			for name, w := range want {
				g := got[name]
				if w.Exception != "" || w.Tokens == 0 || g.Exception != "" || g.Text != w.Text {
					t.Errorf("%s: got %+v\nwant %+v", name, g, w)
				}
			}
			if !strings.Contains(got["chat_asked"].Text, "completion_tokens") || strings.Contains(got["chat_unasked"].Text, "completion_tokens") {
				t.Errorf("asked: %s\nunasked: %s", got["chat_asked"].Text, got["chat_unasked"].Text)
			}
			s.epp.waitFor(float64(4*model.DefaultOutputTokens), "weir_extproc_usage_tokens_total", "kind", "output")
		})
	}
}
