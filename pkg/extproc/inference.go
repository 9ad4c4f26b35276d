package extproc

import "strings"

// api is whose protocol a path speaks: it decides the shape of errors.
type api uint8

const (
	noAPI     api = iota // no inference: passed on
	openAI               // chat completions, completions, responses, embeddings and the like
	anthropic            // messages
)

// inferencePaths are the ends of the paths of requests that run a model; a gateway may put a prefix before them.
var inferencePaths = []struct {
	suffix string
	api    api
}{
	{"/v1/chat/completions", openAI},
	{"/v1/completions", openAI},
	{"/v1/messages", anthropic},
	{"/v1/responses", openAI},
	{"/v1/embeddings", openAI},
	{"/v1/rerank", openAI},
	{"/v1/score", openAI},
	{"/v1/classify", openAI},
	{"/v1/pooling", openAI},
}

// apiOf says what a request asks for: inference is a POST to a known path, and all else is passed on. The content type
// does not matter: an engine may read the body as JSON whatever the client calls it, and it must not be a way past the
// queue. A body that is not called JSON is not read, and the request is queued by what its headers say.
func apiOf(h *headers) api {
	if h.values[slotMethod] != "POST" {
		return noAPI
	}
	return apiOfPath(h.values[slotPath])
}

func apiOfPath(path string) api {
	path, _, _ = strings.Cut(path, "?")
	for i := range inferencePaths {
		if p := &inferencePaths[i]; strings.HasSuffix(path, p.suffix) {
			return p.api
		}
	}
	return noAPI
}

// isResponses says whether a path is OpenAI's responses API.
func isResponses(path string) bool {
	path, _, _ = strings.Cut(path, "?")
	return strings.HasSuffix(path, "/v1/responses")
}

// isJSON says whether a content type is JSON; none at all counts as JSON, as engines have it.
func isJSON(contentType string) bool {
	if contentType == "" || contentType == "application/json" {
		return true
	}
	mediaType, _, _ := strings.Cut(contentType, ";")
	mediaType = strings.ToLower(strings.TrimSpace(mediaType))
	return mediaType == "application/json" || strings.HasSuffix(mediaType, "+json")
}
