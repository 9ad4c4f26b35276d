package integration

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"testing"
)

// reportedAnswer is an answer of an engine's API, with the sum of its usage.
type reportedAnswer struct {
	name, path, kind, body string
	input, cached, output  float64
}

const (
	jsonAnswer = "application/json"
	sseAnswer  = "text/event-stream"
)

// Each API reports the cached part of a prompt in its own way. Each way of reading gives the same: the input is the
// whole prompt, and the cached tokens are a part of it.
var cachedAnswers = []reportedAnswer{
	{
		name: "chat", path: "/v1/chat/completions", kind: jsonAnswer, input: 2104, cached: 2000, output: 7,
		body: `{"object":"chat.completion","choices":[],"usage":{"prompt_tokens":2104,"completion_tokens":7,"total_tokens":2111,"prompt_tokens_details":{"cached_tokens":2000}}}`,
	},
	{
		name: "responses", path: "/v1/responses", kind: jsonAnswer, input: 2104, cached: 2000, output: 7,
		body: `{"object":"response","output":[],"usage":{"input_tokens":2104,"input_tokens_details":{"cached_tokens":2000},"output_tokens":7,"output_tokens_details":{"reasoning_tokens":3},"total_tokens":2111}}`,
	},
	{
		name: "messages", path: "/v1/messages", kind: jsonAnswer, input: 2104, cached: 2000, output: 7,
		body: `{"type":"message","role":"assistant","content":[],"usage":{"input_tokens":4,"cache_creation_input_tokens":100,"cache_read_input_tokens":2000,"output_tokens":7}}`,
	},
	{
		name: "messages, nothing cached", path: "/v1/messages", kind: jsonAnswer, input: 104, output: 7,
		body: `{"type":"message","role":"assistant","content":[],"usage":{"input_tokens":104,"output_tokens":7}}`,
	},
	{
		name: "streamed messages", path: "/v1/messages", kind: sseAnswer, input: 2104, cached: 2000, output: 7,
		body: "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"type\":\"message\",\"role\":\"assistant\",\"usage\":{\"input_tokens\":4,\"cache_creation_input_tokens\":100,\"cache_read_input_tokens\":2000,\"output_tokens\":1}}}\n\n" +
			"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{},\"usage\":{\"output_tokens\":7}}\n\n" + messageStop,
	},
	{ // vLLM's first event does not have the cached tokens yet
		name: "streamed messages, corrected at the end", path: "/v1/messages", kind: sseAnswer, input: 2104, cached: 2000, output: 7,
		body: "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"type\":\"message\",\"role\":\"assistant\",\"usage\":{\"input_tokens\":2104,\"output_tokens\":0}}}\n\n" +
			"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{},\"usage\":{\"input_tokens\":104,\"cache_read_input_tokens\":2000,\"cache_creation_input_tokens\":0,\"output_tokens\":7}}\n\n" + messageStop,
	},
}

const messageStop = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"

// wantAlike sends each answer through a real Envoy in each way of reading its usage, and checks the counts and the
// charges, with a cached token at a tenth of the others.
func wantAlike(t *testing.T, answers []reportedAnswer) {
	for _, config := range []string{"usage", "streamed", "full-duplex"} {
		t.Run(config, func(t *testing.T) {
			t.Parallel()
			s := before(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				n, err := strconv.Atoi(r.Header.Get("x-answer"))
				if err != nil {
					panic(err)
				}
				w.Header().Set("content-type", answers[n].kind)
				_, _ = io.WriteString(w, answers[n].body)
			}), setup{envoys: []string{config}, config: inTokens + "tokens: { weights: { cachedInput: 0.1 } }\n"})
			var input, cached, output, cost float64
			for i, a := range answers {
				got := s.send(ask{path: a.path, header: []string{"x-answer", fmt.Sprint(i)}})
				if wantServed(t, a.name, got); got.body != a.body {
					t.Errorf("%s: the answer came as %q", a.name, got.body)
				}
				s.epp.settled()
				input, cached, output = input+a.input, cached+a.cached, output+a.output
				cost += a.input - 0.9*a.cached + 2*a.output
				if n := s.epp.value("weir_extproc_usage_unknown_total"); n != 0 {
					t.Fatalf("%s: its usage is unknown", a.name)
				}
				for _, w := range []struct {
					kind string
					want float64
				}{{"input", input}, {"cached", cached}, {"output", output}} {
					s.epp.waitFor(w.want, "weir_extproc_usage_tokens_total", "kind", w.kind)
				}
				s.epp.waitFor(cost, "weir_flow_actual_cost_total")
			}
		})
	}
}

func TestCachedTokensAreAPartOfTheInput(t *testing.T) {
	t.Parallel()
	wantAlike(t, cachedAnswers)
}

// Requests without an answer to produce report their prompts alone, and that is their whole usage.
var outputlessAnswers = []reportedAnswer{
	{
		name: "embeddings", path: "/v1/embeddings", kind: jsonAnswer, input: 120,
		body: `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.5,-0.25]}],"model":"m","usage":{"prompt_tokens":120,"total_tokens":120}}`,
	},
	{
		name: "embeddings of a vLLM", path: "/v1/embeddings", kind: jsonAnswer, input: 120,
		body: `{"object":"list","data":[],"model":"m","usage":{"prompt_tokens":120,"total_tokens":120,"completion_tokens":0,"prompt_tokens_details":null}}`,
	},
	{
		name: "rerank", path: "/v1/rerank", kind: jsonAnswer, input: 120,
		body: `{"id":"rerank-1","model":"m","usage":{"prompt_tokens":120,"total_tokens":120},"results":[{"index":0,"relevance_score":0.5}]}`,
	},
	{
		name: "score", path: "/score", kind: jsonAnswer, input: 120,
		body: `{"object":"list","data":[{"object":"score","index":0,"score":0.5}],"usage":{"prompt_tokens":120,"total_tokens":120}}`,
	},
	{
		name: "classify", path: "/classify", kind: jsonAnswer, input: 120,
		body: `{"object":"list","data":[],"usage":{"prompt_tokens":120,"total_tokens":120}}`,
	},
	{
		name: "pooling", path: "/pooling", kind: jsonAnswer, input: 120,
		body: `{"object":"list","data":[],"usage":{"prompt_tokens":120,"total_tokens":120}}`,
	},
}

func TestWhatHasNoOutputHasUsage(t *testing.T) {
	t.Parallel()
	wantAlike(t, outputlessAnswers)
}
