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

// mode is a shipped Envoy configuration, with what differs between them on the wire.
type mode struct {
	config string
	// reads says that Weir gets the body before it names the destination. Otherwise it knows the model from a trusted
	// header only, does not rewrite it, and a body is the model server's to judge.
	reads bool
	// part says that of a body over the buffer Weir sees a part, which says nothing of the model.
	part bool
	// overWeir and overEnvoy are who refuses a body that is over Weir's limit, and over Envoy's buffer.
	overWeir, overEnvoy refuser
	// takesTrailers is false where Envoy 1.40 sends a request's body twice when trailers follow it: the router's copy for
	// retries is sent again when the filter lets the trailers go (envoyproxy/envoy pull request 46095).
	takesTrailers bool
}

// refuser is who refuses a large body.
type refuser int

const (
	nobody refuser = iota
	weir
	envoy
)

// The shipped configurations before Weir: all but the one without it.
var modes = []mode{
	{"recommended", true, false, weir, envoy, true},
	{"fail-closed", true, false, weir, envoy, true},
	{"gate", true, false, weir, envoy, true},
	{"api-keys", true, false, weir, envoy, true},
	{"jwt", true, false, weir, envoy, true},
	{"full-duplex", true, false, weir, envoy, false},
	{"buffered-partial", true, true, nobody, nobody, false},
	{"header-only", false, false, nobody, envoy, true},
	{"streamed", false, false, nobody, envoy, true},
}

// battery is a scene of one mode: one model server with prepared answers, which are the same bytes each time, and one
// request at a time, so that what comes second waits.
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

// withTrailers lets trailers through on both sides: the shipped files leave them off, as HTTP/1.1 clients do not expect
// any. What is tested here is Weir's part.
func withTrailers(b envoyrun.Bootstrap) error {
	b.ConnectionManager()["http_protocol_options"] = map[string]any{"enable_trailers": true}
	for _, o := range envoyrun.Object(b.Cluster(envoyrun.ModelServersCluster), "typed_extension_protocol_options") {
		envoyrun.Object(o)["explicit_http_config"] = map[string]any{
			"http_protocol_options": map[string]any{"enable_trailers": true},
		}
	}
	return nil
}

// last is the newest request that came to the model server.
func (b *battery) last() modelsim.Record {
	b.t.Helper()
	records := b.server.Records()
	if len(records) == 0 {
		b.t.Fatal("nothing came to the model server")
	}
	return records[len(records)-1]
}

// straight sends a request to the model server itself.
func (b *battery) straight(a ask) answer {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return send(ctx, b.server.URL(), a)
}

// same fails the test unless the answer through Envoy is the model server's own, byte by byte.
func (b *battery) same(what string, a ask) {
	b.t.Helper()
	got, want := b.send(a), b.straight(a)
	if got.err != nil || got.status != want.status || got.body != want.body ||
		got.header.Get("content-type") != want.header.Get("content-type") {
		b.t.Errorf("%s: got %d %v %q,\nwant %d %q", what, got.status, got.err, got.body, want.status, want.body)
	}
}

// streaming begins a streamed request and returns its answer, of which only the headers were read.
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

// prompt is a request with a prompt that makes the body so many bytes large, and its digest.
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
