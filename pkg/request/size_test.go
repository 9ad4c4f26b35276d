package request

import (
	"strings"
	"testing"

	"github.com/weir-epp/weir/pkg/estimate"
	"github.com/weir-epp/weir/pkg/fairqueue"
)

// The gateway may state the cost: a whole number of at least 1. Anything else states none.
func TestStatedCost(t *testing.T) {
	for value, want := range map[string]fairqueue.Cost{"17": 17, "0": 0, "-3": 0, "many": 0, "": 0, "9999999999999": fairqueue.MaxCost} {
		s := sent{cfg: DefaultConfig(), headers: chat("x-cost", value, "x-gateway-model-name", "m")}
		s.cfg.TrustedHeaders.Cost = "x-cost"
		if got := s.must(t).StatedCost; got != want {
			t.Errorf("%q: cost %d", value, got)
		}
	}
}

// The cost in tokens is estimated from the prompt and the longest answers, by the most exact that is known: the gateway's
// count, Envoy's, the text in the body, or the body's length.
func TestSize(t *testing.T) {
	const unknown = estimate.Unknown
	text := strings.Repeat("abcd", 100)
	size := func(tokens, text, length, answers, most int64) estimate.Request {
		return estimate.Request{Tokens: tokens, Text: text, Length: length, Answers: answers, MaxOutput: most}
	}
	framed := func(tokens int64, r estimate.Request) estimate.Request { r.Numbers = tokens; return r }
	envoy := &EnvoyRead{Model: "m", Input: 200, Most: 50}
	for _, test := range []struct {
		name, path, body string
		headers          []string
		envoyRead        *EnvoyRead
		want             estimate.Request
		loose            bool
	}{
		{"the text", "/v1/completions", `{"prompt":"` + text + `"}`, nil, nil, size(unknown, 400, unknown, 1, unknown), false},
		{"the length as well", "/v1/completions", `{"prompt":"hi"}`, headers("content-length", "15"), nil, size(unknown, 2, 15, 1, unknown), false},
		{"a limit", "/v1/completions", `{"prompt":"hi","max_tokens":10,"n":3,"best_of":5}`, nil, nil, size(unknown, 2, unknown, 5, 10), false},
		{"the larger of two, since engines differ", "/v1/chat/completions", `{"max_tokens":10,"max_completion_tokens":30}`, nil, nil, size(unknown, 0, unknown, 1, 30), false},
		{"another API's limit", "/v1/chat/completions", `{"max_output_tokens":10}`, nil, nil, size(unknown, 0, unknown, 1, unknown), false},
		{"of responses", "/v1/responses", `{"max_output_tokens":10}`, nil, nil, size(unknown, 0, unknown, 1, 10), false},
		{"of messages", "/v1/messages", `{"max_tokens":10}`, nil, nil, size(unknown, 0, unknown, 1, 10), false},
		{"0 says none", "/v1/chat/completions", `{"max_tokens":0,"max_completion_tokens":9}`, nil, nil, size(unknown, 0, unknown, 1, unknown), false},
		{"two prompts", "/v1/completions", `{"prompt":["` + text + `","` + text + `"],"n":16}`, nil, nil, size(unknown, 800, unknown, 32, unknown), false},
		{"so many answers that they do not overflow", "/v1/completions", `{"prompt":["",""],"n":1e300}`, nil, nil, size(unknown, 0, unknown, 2*estimate.MaxTokens, unknown), false},
		{"no output", "/v1/embeddings", `{"input":"` + text + `","max_tokens":9}`, nil, nil, size(unknown, 400, unknown, 1, 0), false},
		{"pairs", "/rerank", `{"query":"` + text + `","documents":["` + text + `","` + text + `"]}`, nil, nil, framed(4, size(unknown, 1600, unknown, 1, 0)), false},
		{"messages", "/v1/chat/completions", `{"messages":[{},{"role":"user","content":"hi"}],"max_tokens":10}`, nil, nil, framed(8, size(unknown, 6, unknown, 1, 10)), false},
		{"texts to embed", "/v1/embeddings", `{"input":["",""]}`, nil, nil, framed(4, size(unknown, 0, unknown, 1, 0)), false},
		{"a path that others cut off elsewhere", "/v1/completions%3f/v1/embeddings", `{"input":"hi"}`, nil, nil, size(unknown, 2, unknown, 1, unknown), false},
		{"the gateway's count", "/v1/completions", `{"prompt":"hi"}`, headers("x-input", "77"), envoy, size(77, 2, unknown, 1, 50), true},
		{"no number is no count", "/v1/completions", `{"prompt":"hi"}`, headers("x-input", "-5"), nil, size(unknown, 2, unknown, 1, unknown), false},
		{"Envoy's", "/v1/completions", `{"prompt":"hi","max_tokens":500}`, nil, envoy, size(200, 2, unknown, 1, 50), true},
		{"Envoy's, without output", "/v1/embeddings", `{"input":"hi"}`, nil, envoy, size(200, 2, unknown, 1, 0), false},
		{"Envoy's, without a limit", "/v1/completions", `{"prompt":"hi","max_tokens":9}`, nil, &EnvoyRead{Input: 3, Most: unknown}, size(3, 2, unknown, 1, 9), false},
		{"a form's files are no text", "/v1/audio/transcriptions", "", headers("content-type", "multipart/form-data", "content-length", "99"), nil, size(unknown, unknown, unknown, 1, unknown), false},
		{"of a query", "/v1/audio/translations?a=b", "", headers("content-type", "multipart/form-data", "content-length", "99"), nil, size(unknown, unknown, unknown, 1, unknown), false},
		{"images", "/v1/images/edits", "", headers("content-type", "multipart/form-data", "content-length", "99"), nil, size(unknown, unknown, unknown, 1, unknown), false},
		{"what claims to be a form, where none is taken", "/v1/completions", "", headers("content-type", "multipart/form-data", "content-length", "99"), nil, size(unknown, unknown, 99, 1, unknown), false},
		{"or is none", "/v1/audio/transcriptions", "", headers("content-type", "application/json", "content-length", "99"), nil, size(unknown, unknown, 99, 1, unknown), false},
		{"at a path that others cut off elsewhere", "/v1/completions%3f/v1/audio/transcriptions", "", headers("content-type", "multipart/form-data", "content-length", "99"), nil, size(unknown, unknown, 99, 1, unknown), false},
	} {
		s := sent{cfg: DefaultConfig(), mode: FullDuplex, body: test.body, envoyRead: test.envoyRead, end: test.body == ""}
		s.cfg.TrustedHeaders.InputTokens = "x-input"
		s.headers = append(headers(":method", "POST", ":path", test.path, "x-gateway-model-name", "m"), test.headers...)
		q := s.must(t)
		test.want.Flow, test.want.Model = "m/m", "m"
		if q.Size != test.want || q.LooseLimit != test.loose {
			t.Errorf("%s: %+v, %v\nwant %+v", test.name, q.Size, q.LooseLimit, test.want)
		}
	}
}

// Parts of a prompt that cannot be measured are counted, and so are the bytes of fields that an engine may show to the
// model: documents are pairs of a request without output, and rest of any other.
func TestSizeOfTheUnmeasured(t *testing.T) {
	const image = `{"url":"https://x"}`
	for _, test := range []struct {
		name, path, body string
		rest, media      int64
	}{
		{"nothing", "/v1/chat/completions", `{"messages":[{"content":"a"}],"user":"b"}`, 0, 0},
		{"a field that only the engine knows", "/v1/chat/completions", `{"messages":[],"response_format":{"a":1}}`, 7, 0},
		{"a field of a message that only the engine knows", "/v1/chat/completions", `{"messages":[{"x":1}],"response_format":{"a":1}}`, 5 + 7, 0},
		{"numbers to rank", "/rerank", `{"query":"a","documents":[12]}`, 2, 0},
		{"documents", "/v1/chat/completions", `{"messages":[],"documents":["abcd"]}`, 8, 0},
		{"documents to rank", "/rerank", `{"query":"a","documents":["abcd"]}`, 0, 0},
		{"an image", "/v1/chat/completions", `{"messages":[` + image + `]}`, 0, 1},
		{"an image to rank", "/rerank", `{"query":"a","documents":[` + image + `]}`, 0, 1},
	} {
		s := sent{cfg: DefaultConfig(), headers: headers(":method", "POST", ":path", test.path, "x-gateway-model-name", "m"), mode: FullDuplex, body: test.body}
		s.cfg.RequestBody = BodyAlways
		if got := s.must(t).Size; got.Rest != test.rest || got.Media != test.media {
			t.Errorf("%s: rest %d, media %d; want %d and %d", test.name, got.Rest, got.Media, test.rest, test.media)
		}
	}
}
