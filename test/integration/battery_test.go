package integration

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/modelsim"
)

// mode is a shipped Envoy configuration, with its differences on the wire.
type mode struct {
	config string
	// reads reports whether Weir gets the body before it names the destination. Otherwise it knows the model only from
	// a trusted header, does not rewrite it, and leaves bodies to the model server.
	reads bool
	// part reports whether Weir sees only part of a body that exceeds the buffer. It does not search such a body for a
	// model.
	part bool
	// overWeir and overEnvoy are the refusers of a body above Weir's limit, and above Envoy's buffer.
	overWeir, overEnvoy refuser
	// takesTrailers is false where Envoy 1.40 sends a request's body twice if trailers follow it: the router sends its
	// copy for retries again when the filter releases the trailers (envoyproxy/envoy pull request 46095).
	takesTrailers bool
}

// refuser is the process that refuses a large body.
type refuser int

const (
	nobody refuser = iota
	weir
	envoy
)

// The shipped configurations with Weir.
var modes = []mode{
	{"recommended", true, false, weir, envoy, true},
	{"fail-closed", true, false, weir, envoy, true},
	{"gate", true, false, weir, envoy, true},
	{"api-keys", true, false, weir, envoy, true},
	{"jwt", true, false, weir, envoy, true},
	{"usage", true, false, weir, envoy, true},
	{"full-duplex", true, false, weir, envoy, false},
	{"buffered-partial", true, true, nobody, nobody, false},
	{"header-only", false, false, nobody, envoy, true},
	{"streamed", false, false, nobody, envoy, true},
}

// battery is a scene of one mode: one model server with fixed answers and one request at a time, so that a second one
// waits.
type battery struct {
	*scene
	mode
	server *modelsim.Server
}

const (
	weirLimit  = 6 << 20
	envoyLimit = 33554432 // of the shipped files with the buffer filter
)

func startBattery(t *testing.T, m mode) *battery {
	t.Helper()
	server := modelsim.Instant()
	server.Records, server.RecordBodyBytes, server.TagHeader = 64, 8<<20, "x-tenant"
	s := start(t, setup{
		envoys: []string{m.config}, models: []modelsim.Config{server}, edit: withTrailers,
		config: single + `
fairRequestQueue: { totalCapacity: 1, flowCapacity: 1 }
limits: { maxBodyBytes: 6291456, maxBodyBytesTotal: 67108864 }
models: [ { name: chat, targets: [ { name: chat-large-v1, weight: 3 }, { name: v2, weight: 1 } ] } ]
`,
	})
	return &battery{scene: s, mode: m, server: s.models[0]}
}

// withTrailers enables trailers in both directions: the shipped files leave them off, since HTTP/1.1 clients do not
// expect any. This tests Weir's part.
func withTrailers(b envoyrun.Bootstrap) error {
	// An answer may come before all of a large body is sent. Envoy resets the connection after 1 s, and a client on a
	// busy machine would lose the answer.
	b.ConnectionManager()["delayed_close_timeout"] = "60s"
	b.ConnectionManager()["http_protocol_options"] = map[string]any{"enable_trailers": true}
	for _, o := range envoyrun.Object(b.Cluster(envoyrun.ModelServersCluster), "typed_extension_protocol_options") {
		envoyrun.Object(o)["explicit_http_config"] = map[string]any{
			"http_protocol_options": map[string]any{"enable_trailers": true},
		}
	}
	return nil
}

// last returns the newest request at the model server.
func (b *battery) last() modelsim.Record {
	b.t.Helper()
	records := b.server.Records()
	if len(records) == 0 {
		b.t.Fatal("nothing came to the model server")
	}
	return records[len(records)-1]
}

// straight sends a request directly to the model server.
func (b *battery) straight(a ask) answer {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return send(ctx, b.server.URL(), a)
}

// same checks that the answer through Envoy is the model server's own, byte by byte.
func (b *battery) same(what string, a ask) {
	b.t.Helper()
	got, want := b.send(a), b.straight(a)
	if got.err != nil || got.status != want.status || got.body != want.body ||
		got.header.Get("content-type") != want.header.Get("content-type") {
		b.t.Errorf("%s: got %d %v %q,\nwant %d %q", what, got.status, got.err, got.body, want.status, want.body)
	}
}

// streaming begins a streamed request and returns its answer after its headers.
func (b *battery) streaming() *http.Response {
	b.t.Helper()
	request, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.envoy().URL()+"/v1/chat/completions",
		strings.NewReader(chat("tiny", true)))
	if err != nil {
		b.t.Fatal(err)
	}
	request.Header.Set("content-type", "application/json")
	b.authorize(request)
	response, err := client.Do(request)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { response.Body.Close() })
	return response
}

// prompt returns a request with a body of the given size, and the body's digest.
func prompt(bytes int) (body, digest string) {
	const before, after = `{"model":"tiny","messages":[{"role":"user","content":"`, `"}],"max_tokens":1}`
	body = before + strings.Repeat("All work and no play. ", bytes/22+1)[:bytes-len(before)-len(after)] + after
	return body, fmt.Sprintf("%x", sha256.Sum256([]byte(body)))
}

// readAll reads a body to its end.
func readAll(t *testing.T, r io.Reader) string {
	t.Helper()
	all, err := io.ReadAll(r)
	if err != nil {
		t.Error(err)
	}
	return string(all)
}
