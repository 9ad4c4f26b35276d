package request

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// A POST at a known path certainly runs a model, in any spelling and with any content type.
func TestInferencePaths(t *testing.T) {
	tests := []struct {
		method, path, contentType string
		want                      API
	}{
		{"POST", "/v1/chat/completions", "application/json", OpenAI},
		{"POST", "/gw/v1/chat/completions?a=b", "application/json; charset=utf-8", OpenAI},
		{"POST", "/v1/messages", "", Anthropic},
		{"POST", "/v1/responses", "application/vnd.x+json", OpenAI},
		{"POST", "/v1/messages/count_tokens", "application/json", NoAPI},
		{"GET", "/v1/chat/completions", "application/json", NoAPI},
		{"POST", "/v1/audio/transcriptions", "multipart/form-data; boundary=json", OpenAI},
		{"POST", "/v1/chat/%63ompletions", "application/json", OpenAI},
		{"POST", "/gw/v1/chat%2Fcompletions?a=%", "application/json", OpenAI},
		{"POST", "//v1/./chat//completions/#a", "application/json", OpenAI},
		{"POST", "/v1%2fmess%61ges", "application/json", Anthropic},
		{"POST", "/v1/chat/completions%3Fa", "application/json", NoAPI}, // a path that ends in ?a
		{"POST", "/v1/completions%", "application/json", NoAPI},
		{"POST", "/v1/completions%0A", "application/json", OpenAI}, // Starlette serves it
		{"POST", "/v1/completions%0A%0A", "application/json", NoAPI},
		{"POST", "?a=/v1/completions", "application/json", NoAPI}, // a query without a path
		{"POST", "/v2/rerank", "application/json", OpenAI},
		{"POST", "/v1/chat/completions/render", "application/json", NoAPI},
		{"POST", "/v1/completions", "text/plain", OpenAI}, // queued, and its body not read
		{"POST", "/tokenize", "application/json", NoAPI},
	}
	for _, test := range tests {
		q, _ := (&sent{headers: headers(":method", test.method, ":path", test.path, "content-type", test.contentType)}).read()
		if q.API != test.want {
			t.Errorf("%+v: %d", test, q.API)
		}
	}
}

// Operators must know which requests queue.
func TestDocsListTheInferencePaths(t *testing.T) {
	page, err := os.ReadFile("../../docs/envoy.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, known := range slices.Concat(inferencePaths, cheapPaths) {
		if !strings.Contains(string(page), "`"+known+"`") {
			t.Errorf("docs/envoy.md does not name %s", known)
		}
	}
}
