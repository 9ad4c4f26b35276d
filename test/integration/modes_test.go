package integration

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/modelsim"
)

// Every shipped configuration serves the same requests, in every mode of bodies.
func TestEveryMode(t *testing.T) {
	t.Parallel()
	var configs []string
	for _, m := range modes {
		configs = append(configs, m.config)
		t.Run(m.config, func(t *testing.T) {
			t.Parallel()
			b := startBattery(t, m)
			for _, part := range []struct {
				name string
				test func(*testing.T, *battery)
			}{
				{"bypass", bypasses},
				{"queue, then grant", queuesThenGrants},
				{"reject", rejects},
				{"rewrite", rewrites},
				{"malformed", refusesMalformed},
				{"streamed answer", streamsAnswer},
				{"streamed answer in odd chunks", streamsOddChunks},
				{"trailers", passesTrailers},
				{"204", passesNoContent},
				{"no inference", passesOn},
				{"large body", passesLargeBody},
				{"large body, rewritten", rewritesLargeBody},
				{"body of unknown length", passesChunkedBody},
				{"too large a body", refusesTooLarge},
			} {
				t.Run(part.name, func(t *testing.T) {
					scene := *b.scene
					scene.t = t
					part.test(t, &battery{scene: &scene, mode: m, server: b.server})
					b.epp.settled()
				})
			}
			if n := b.epp.value("weir_extproc_panics_total"); n != 0 {
				t.Errorf("%v panics", n)
			}
			if n := b.epp.value("weir_extproc_body_bytes"); n != 0 {
				t.Errorf("%v bytes of bodies are still held", n)
			}
			// The gate's own streams begin with response headers by design.
			if n := b.epp.value("weir_extproc_unexpected_messages_total"); n != 0 && m.config != "gate" {
				t.Errorf("%v messages were not expected in their state", n)
			}
		})
	}
	shipped := slices.DeleteFunc(envoyrun.Shipped(), func(name string) bool { return name == "direct" })
	slices.Sort(configs)
	if !slices.Equal(configs, shipped) {
		t.Errorf("tested are %v, shipped %v", configs, shipped)
	}
}

func bypasses(t *testing.T, b *battery) {
	before := b.epp.value("weir_bypass_total")
	got := b.send(ask{})
	wantServed(t, "an uncontended request", got)
	if want := b.straight(ask{}); got.body != want.body {
		t.Errorf("the answer is %q, want %q", got.body, want.body)
	}
	b.epp.waitFor(before+1, "weir_bypass_total")
}

// plug holds the only slot until it is cancelled.
func (b *battery) plug() *pending {
	b.server.Inject(1, modelsim.Quirk{HeaderDelay: time.Hour})
	p := b.begin(ask{})
	b.epp.waitFor(1, "weir_stock_level")
	expect.True(b.t, "the plug is at the model server", func() bool { return b.server.Stats().InFlight != 0 })
	return p
}

func queuesThenGrants(t *testing.T, b *battery) {
	plug := b.plug()
	waiting := b.begin(ask{})
	b.epp.waitFor(1, "weir_queue_length")
	plug.cancel()
	wantServed(t, "the request that waited", waiting.wait())
	if got := string(b.last().Body); got != chat("tiny", false) {
		t.Errorf("the model server got %q", got)
	}
}

func rejects(t *testing.T, b *battery) {
	plug := b.plug()
	waiting := b.begin(ask{})
	b.epp.waitFor(1, "weir_queue_length")
	before := b.server.Stats().Started
	wantRejection(t, b.send(ask{}), rejection{status: 503, reason: "flow-full"})
	b.logged("status", 503.0, "details", "flow-full")
	if n := b.server.Stats().Started; n != before {
		t.Error("the rejected request came to the model server")
	}
	plug.cancel()
	wantServed(t, "the request that waited", waiting.wait())
}

// The model's name is replaced by its target's if Weir sees the body, and nothing else changes.
func rewrites(t *testing.T, b *battery) {
	body := "{ \"messages\":[{\"content\":\"say \\\"model\\\":\\\"chat\\\" \u00fc\\u00fc\"}],\n\t\"model\" : \"chat\" ,\"x\":1e3}\r\n"
	replaced := func(target string) string { return strings.Replace(body, `"chat" ,`, `"`+target+`" ,`, 1) }
	drawn := map[string]int{}
	for range 60 {
		wantServed(t, "a request with targets", b.send(ask{body: body}))
		r := b.last()
		drawn[string(r.Body)]++
		if n := r.Header.Get("content-length"); n != "" && n != fmt.Sprint(r.BodyBytes) {
			t.Errorf("content-length is %s of %d", n, r.BodyBytes)
		}
	}
	want := []string{replaced("chat-large-v1"), replaced("v2")}
	if !b.reads {
		want = []string{body}
	}
	for got, n := range drawn {
		if !slices.Contains(want, got) {
			t.Errorf("the model server got %q (%d times), want one of %q", got, n, want)
		}
	}
	// Three to one: in 60 draws the rarer target is the more frequent one once in 100,000 runs.
	if len(drawn) != len(want) || b.reads && drawn[want[0]] < drawn[want[1]] {
		t.Errorf("drawn: %v", drawn)
	}
}

func refusesMalformed(t *testing.T, b *battery) {
	for _, test := range []struct{ name, body, param string }{
		{"no model", `{"messages":[]}`, "model"},
		{"an empty model", `{"model":""}`, "model"},
		{"a model that is no text", `{"model":7}`, "model"},
		{"not JSON", `hello`, ""},
		{"cut off", `{"model":"tiny","messages":[`, ""},
	} {
		got := b.send(ask{body: test.body})
		if !b.reads {
			// The model server, which parses nothing here, got the body unchanged.
			wantServed(t, test.name, got)
			if got := string(b.last().Body); got != test.body {
				t.Errorf("%s: the model server got %q", test.name, got)
			}
			continue
		}
		wantRejection(t, got, rejection{
			status: 400, reason: "bad-request", kind: "invalid_request_error", param: test.param, final: true,
		})
	}
	// A request without a body has no model, which the headers show in every mode.
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.envoy().URL()+"/v1/chat/completions", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	b.authorize(request)
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	wantRejection(t, answer{status: response.StatusCode, header: response.Header, body: readAll(t, response.Body)},
		rejection{status: 400, reason: "bad-request", kind: "invalid_request_error", param: "model", final: true})
}

func streamsAnswer(_ *testing.T, b *battery) {
	b.same("a streamed answer", ask{body: chat("tiny", true)})
	b.same("a streamed answer with usage",
		ask{body: `{"model":"tiny","stream":true,"stream_options":{"include_usage":true},"messages":[]}`})
}

// In pieces of 1, 7 and 1,000 bytes with pauses, which split events and characters anywhere.
func streamsOddChunks(t *testing.T, b *battery) {
	want := b.straight(ask{body: chat("tiny", true)})
	b.server.Inject(1, modelsim.Quirk{ChunkSizes: []int{1, 7, 1000}, ChunkPause: 2 * time.Millisecond})
	got := b.send(ask{body: chat("tiny", true)})
	if got.err != nil || got.body != want.body {
		t.Errorf("got %d %v %q,\nwant %q", got.status, got.err, got.body, want.body)
	}
}

func passesTrailers(t *testing.T, b *battery) {
	b.server.Inject(1, modelsim.Quirk{Trailer: http.Header{"X-Checksum": {"abc"}}})
	response := b.streaming()
	body := readAll(t, response.Body)
	if response.StatusCode != 200 || !strings.HasSuffix(body, "data: [DONE]\n\n") {
		t.Errorf("got %d %q", response.StatusCode, body)
	}
	if got := response.Trailer.Get("x-checksum"); got != "abc" {
		t.Errorf("the trailers are %v", response.Trailer)
	}
}

func passesNoContent(t *testing.T, b *battery) {
	b.server.Inject(1, modelsim.Quirk{Status: 204})
	if got := b.send(ask{}); got.err != nil || got.status != 204 || got.body != "" {
		t.Errorf("got %d %v %q, want 204", got.status, got.err, got.body)
	}
}

// Requests that are known not to be inference pass without queueing, even while others wait. All others queue and are
// served.
func passesOn(_ *testing.T, b *battery) {
	plug := b.plug()
	b.same("GET", ask{method: http.MethodGet, path: "/v1/models"})
	b.same("GET with a query", ask{method: http.MethodGet, path: "/health?verbose=1"})
	b.same("HEAD", ask{method: http.MethodHead, path: "/v1/models"})
	b.same("an unknown path", ask{method: http.MethodDelete, path: "/v1/files/1"})
	b.same("POST to a listed path", ask{path: "/tokenize", body: "not JSON"})
	b.same("OPTIONS", ask{method: http.MethodOptions, path: "/v1/chat/completions"})
	plug.cancel()
	plug.wait()
	b.same("POST to an unknown path", ask{path: "/v1/files", body: "not JSON"})
	b.same("a multipart form",
		ask{path: "/v1/audio/transcriptions", header: []string{"content-type", "multipart/form-data; boundary=b"}, body: "--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\ntiny\r\n--b--\r\n"})
}

func passesLargeBody(t *testing.T, b *battery) {
	body, digest := prompt(5 << 20)
	got := b.send(ask{body: body})
	if b.part {
		wantUnknownModel(t, got)
		return
	}
	wantServed(t, "a body of 5 MB", got)
	r := b.last()
	if got := fmt.Sprintf("%x", sha256.Sum256(r.Body)); got != digest || r.BodyBytes != len(body) {
		t.Errorf("the model server got another body, of %d bytes", r.BodyBytes)
	}
}

// wantUnknownModel checks the answer to a body of which Weir sees only part: the rest may name another model.
func wantUnknownModel(t *testing.T, got answer) {
	t.Helper()
	if got.status != 400 || got.reason() != "bad-request" || !strings.Contains(got.body, "too long for its field") {
		t.Errorf("got %d %q %v, want 400 and why", got.status, got.body, got.err)
	}
}

// The same with another model's name in the body.
func rewritesLargeBody(t *testing.T, b *battery) {
	body, _ := prompt(5 << 20)
	body = strings.Replace(body, `"tiny"`, `"chat"`, 1)
	if b.part {
		wantUnknownModel(t, b.send(ask{body: body}))
		return
	}
	wantServed(t, "a body of 5 MB with a model to rewrite", b.send(ask{body: body}))
	got := string(b.last().Body)
	v1, v2 := strings.Replace(body, "chat", "chat-large-v1", 1), strings.Replace(body, "chat", "v2", 1)
	if b.reads && got != v1 && got != v2 || !b.reads && got != body {
		t.Errorf("the model server got another body, of %d bytes: %.80q … %q", b.last().BodyBytes, got, got[max(0, len(got)-40):])
	}
}

// The client does not announce the length of its body and, where Envoy supports it, sends trailers after it.
func passesChunkedBody(t *testing.T, b *battery) {
	for _, model := range []string{"tiny", "chat"} {
		pipe, writer := io.Pipe()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.envoy().URL()+"/v1/chat/completions", pipe)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("content-type", "application/json")
		if b.takesTrailers {
			request.Trailer = http.Header{"X-Digest": {"1"}}
		}
		body := chat(model, false)
		go func() {
			for i := range len(body) { // a byte a chunk
				if _, err := io.WriteString(writer, body[i:i+1]); err != nil {
					return
				}
			}
			writer.Close()
		}()
		b.authorize(request)
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text := readAll(t, response.Body)
		response.Body.Close()
		wantServed(t, "a chunked body", answer{status: response.StatusCode, header: response.Header, body: text})
		want := []string{body}
		if model == "chat" && b.reads {
			want = []string{strings.Replace(body, "chat", "chat-large-v1", 1), strings.Replace(body, "chat", "v2", 1)}
		}
		if got := string(b.last().Body); !slices.Contains(want, got) {
			t.Errorf("the model server got %q, want one of %q", got, want)
		}
	}
}

// If Weir takes bodies, it refuses those above its limit by the length that Envoy reports at their end. Envoy refuses a
// body that exceeds its buffer, without Weir.
func refusesTooLarge(t *testing.T, b *battery) {
	for _, test := range []struct {
		bytes int
		by    refuser

		unannounced bool
	}{
		{weirLimit + 1, b.overWeir, false},
		{weirLimit + 1, b.overWeir, true},
		{2 * weirLimit, b.overWeir, true}, // in one message, where it is buffered
		{envoyLimit + 1, b.overEnvoy, false},
		{envoyLimit + 1, b.overEnvoy, true},
	} {
		body, _ := prompt(test.bytes)
		before := b.epp.outcomes()["too-large"]
		got := b.send(ask{body: body, unannounced: test.unannounced})
		switch test.by {
		case nobody:
			if b.part {
				wantUnknownModel(t, got)
				continue
			}
			wantServed(t, "a large body", got)
			continue
		case weir:
			wantRejection(t, got, rejection{status: 413, reason: "too-large", kind: "invalid_request_error", final: true})
		case envoy:
			wantEnvoysError(t, got, 413, "too-large")
			continue
		}
		b.epp.waitFor(float64(before+1), "weir_requests_total", "outcome", "too-large")
	}
}
