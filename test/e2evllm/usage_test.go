//go:build e2evllm

package e2evllm

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/weir-epp/weir/pkg/usage"
)

const usageTokens = 16 // of each answer

// usageCalls are one request for each API of the engine, and one for several answers at once.
var usageCalls = []struct {
	name, path string
	body       string // with one %s for more fields
	stream     string // the fields that make it a stream, with its usage
	answers    int64
}{
	{
		"chat completions", "/v1/chat/completions",
		`{"model":"tiny","max_tokens":16,"messages":[{"role":"user","content":"What is a weir?"}]%s}`, openAIStream, 1,
	},
	{"completions", "/v1/completions", `{"model":"tiny","max_tokens":16,"prompt":"What is a weir?"%s}`, openAIStream, 1},
	{
		"completions, 2 prompts, n = 2", "/v1/completions",
		`{"model":"tiny","max_tokens":16,"prompt":["What is a weir?","And a dam?"],"n":2%s}`, openAIStream, 4,
	},
	{
		"messages", "/v1/messages",
		`{"model":"tiny","max_tokens":16,"messages":[{"role":"user","content":"What is a weir?"}]%s}`, `,"stream":true`, 1,
	},
	{"responses", "/v1/responses", `{"model":"tiny","max_output_tokens":16,"input":"What is a weir?"%s}`, `,"stream":true`, 1},
}

const openAIStream = `,"stream":true,"stream_options":{"include_usage":true}`

// usageScene checks that Weir's reader finds the engine's usage, in whole answers and in streams, for any cuts.
func usageScene(t *testing.T, e *engine) section {
	set := before(t, e, "profile: wfq\nrequestQueueController: { "+bounds+" }\n")
	var text strings.Builder
	text.WriteString(`Weir's reader of usage gets the bytes that came through Envoy and Weir, whole, and in parts of 1 and of 7 bytes, and must
find the same. Every answer has 16 tokens; tokens in and out:

| API | JSON | stream |
|---|---|---|
`)
	for _, call := range usageCalls {
		whole := readUsage(t, set, call.path, fmt.Sprintf(call.body, ""), false)
		stream := readUsage(t, set, call.path, fmt.Sprintf(call.body, call.stream), true)
		if want := usageTokens * call.answers; whole.Output != want || stream.Output != want {
			t.Errorf("%s: %+v in JSON, %+v in the stream, want %d tokens out", call.name, whole, stream, want)
		}
		if whole.Input == 0 || whole.Input != stream.Input {
			t.Errorf("%s: %+v in JSON, %+v in the stream: want the same tokens in", call.name, whole, stream)
		}
		fmt.Fprintf(&text, "| %s | %d, %d | %d, %d |\n", call.name, whole.Input, whole.Output, stream.Input, stream.Output)
	}
	return section{"Usage, as the engine reports it", text.String()}
}

// readUsage sends a request and reads the usage in its answer.
func readUsage(t *testing.T, set *setting, path, body string, stream bool) usage.Tokens {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	got := post(ctx, set.weir.URL(), ask{path: path, body: body})
	if got.err != nil || got.status != http.StatusOK {
		t.Fatalf("%s: status %d, error %v: %.500s", path, got.status, got.err, got.body)
	}
	if kind := got.header.Get("content-type"); strings.HasPrefix(kind, "text/event-stream") != stream {
		t.Fatalf("%s: content-type %q", path, kind)
	}
	usage := usageIn(t, got.body, stream, len(got.body))
	for _, part := range []int{1, 7} {
		if cut := usageIn(t, got.body, stream, part); cut != usage {
			t.Errorf("%s: in parts of %d bytes the usage is %+v, not %+v", path, part, cut, usage)
		}
	}
	return usage
}

// usageIn gives the body to Weir's reader in parts of that size.
func usageIn(t *testing.T, body []byte, stream bool, part int) usage.Tokens {
	t.Helper()
	reader := usage.NewReader(stream)
	for rest := body; len(rest) > 0; {
		n := min(part, len(rest))
		reader.Write(rest[:n])
		rest = rest[n:]
	}
	counts := reader.Counts()
	found, ok := counts.Tokens(false)
	if !ok {
		t.Errorf("no usage in %.500q", body)
	}
	return found
}
