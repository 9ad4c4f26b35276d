package extproc

import (
	"net/url"
	"path"
	"strings"
)

// api is whose protocol a path speaks: it decides the shape of errors.
type api uint8

const (
	noAPI     api = iota // not known
	openAI               // chat completions, completions, responses, embeddings and the like
	anthropic            // messages
)

// inferencePaths are the ends of the paths of requests that surely run a model, here and in docs/envoy.md; a gateway may
// put a prefix before them. They are those of a vLLM. They decide what is an error and how it looks, not what queues:
// that is all but what passon.go lets through.
var inferencePaths = []string{
	"/v1/chat/completions", "/v1/chat/completions/batch", "/v1/completions", messagesPath, responsesPath,
	"/v1/embeddings", "/v2/embed", "/rerank", "/score", "/classify", "/pooling", "/generative_scoring",
	"/v1/audio/transcriptions", "/v1/audio/translations", "/inference/v1/generate", "/invocations", "/cohere/v2/chat",
}

const (
	messagesPath  = "/v1/messages"
	responsesPath = "/v1/responses"
)

// inferencePath is the end of the path, if that is one of inference; "" otherwise. However the path is spelled: who has
// the request served decodes it too.
func inferencePath(requestPath string) string {
	if i := strings.IndexAny(requestPath, "?#"); i >= 0 {
		requestPath = requestPath[:i]
	}
	if known := knownEnd(requestPath); known != "" {
		return known
	}
	if decoded, err := url.PathUnescape(requestPath); err == nil {
		requestPath = strings.TrimSuffix(decoded, "\n") // before which Starlette's paths may end
	}
	return knownEnd(path.Clean(requestPath))
}

func knownEnd(requestPath string) string {
	for _, known := range inferencePaths {
		if strings.HasSuffix(requestPath, known) {
			return known
		}
	}
	return ""
}

// apiOf is the API that a request is surely of: a POST to a known path, of whatever content type, since an engine may read
// the body as JSON whatever the client calls it. Such a request without a model, where one is needed, is an error; any
// other has the model that is found, or none.
func apiOf(h *headers) api {
	if h.values[slotMethod] != "POST" {
		return noAPI
	}
	return apiOfPath(h.values[slotPath])
}

func apiOfPath(requestPath string) api {
	switch inferencePath(requestPath) {
	case "":
		return noAPI
	case messagesPath:
		return anthropic
	default:
		return openAI
	}
}

// isResponses says whether a path is OpenAI's responses API.
func isResponses(requestPath string) bool { return inferencePath(requestPath) == responsesPath }
