package request

import (
	"net/url"
	"path"
	"slices"
	"strings"
)

// API is the API of a request. It decides the shape of errors.
type API uint8

// The APIs.
const (
	NoAPI     API = iota // unknown
	OpenAI               // chat completions, completions, responses, embeddings and the like
	Anthropic            // messages
)

// inferencePaths are the suffixes of paths that certainly run a model, here and in docs/envoy.md. They are vLLM's
// paths; a gateway may add a prefix. They decide whether a missing model is an error, and the shape of errors. They do
// not decide about queueing: all requests queue that are not cheap.
var inferencePaths = []string{
	chatPath, batchPath, completionsPath, messagesPath, responsesPath,
	"/v1/embeddings", "/v2/embed", "/rerank", "/score", "/classify", "/pooling", "/generative_scoring",
	"/v1/audio/transcriptions", "/v1/audio/translations", "/inference/v1/generate", "/invocations", "/cohere/v2/chat",
}

const (
	chatPath        = "/v1/chat/completions"
	batchPath       = "/v1/chat/completions/batch"
	completionsPath = "/v1/completions"
	messagesPath    = "/v1/messages"
	responsesPath   = "/v1/responses"
)

// inferencePath returns the entry of inferencePaths that the path ends with, or "". It recognises other spellings of the
// path as well, because model servers decode it too.
func inferencePath(requestPath string) string {
	if i := strings.IndexAny(requestPath, "?#"); i >= 0 {
		requestPath = requestPath[:i]
	}
	if known := knownEnd(requestPath); known != "" {
		return known
	}
	if decoded, err := url.PathUnescape(requestPath); err == nil {
		requestPath = strings.TrimSuffix(decoded, "\n") // Starlette's routes also match a trailing newline
	}
	return knownEnd(path.Clean(requestPath))
}

// IsInference reports whether requests at a path certainly run a model.
func IsInference(requestPath string) bool { return inferencePath(requestPath) != "" }

func knownEnd(requestPath string) string {
	for _, known := range inferencePaths {
		if strings.HasSuffix(requestPath, known) {
			return known
		}
	}
	return ""
}

// readPath reads the path.
func (q *Request) readPath(h *Headers) {
	q.path = inferencePath(h.values[slotPath])
	q.PromptOnly = promptOnly(q.path, h.values[slotPath])
	if h.values[slotMethod] == "POST" {
		q.API = q.ErrorShape()
	}
}

// promptOnly reports whether requests at a known path, as sent, have no output, such as embeddings. It is false for a
// path with characters that a server may decode or cut off: the server may read a completions path in it.
func promptOnly(known, requestPath string) bool {
	switch known {
	case "/v1/embeddings", "/v2/embed", "/rerank", "/score", "/classify", "/pooling":
		sent, _, _ := strings.Cut(requestPath, "?")
		return !strings.ContainsAny(sent, "%;#")
	default:
		return false
	}
}

// filePaths are the suffixes of paths for forms with files.
var filePaths = []string{"/v1/audio/transcriptions", "/v1/audio/translations", "/v1/images/edits", "/v1/images/variations"}

// takesFiles reports whether requests at a path, as sent, are forms with files. At other paths an engine may read the
// body as JSON, whatever its content type.
func takesFiles(requestPath string) bool {
	sent, _, _ := strings.Cut(requestPath, "?")
	return !strings.ContainsAny(sent, "%;#") && slices.ContainsFunc(filePaths, func(known string) bool { return strings.HasSuffix(sent, known) })
}

// ErrorShape returns the API for the shape of errors, by the path alone.
func (q *Request) ErrorShape() API {
	switch q.path {
	case "":
		return NoAPI
	case messagesPath:
		return Anthropic
	default:
		return OpenAI
	}
}

// IsResponses reports whether the request is one of OpenAI's responses API.
func (q *Request) IsResponses() bool { return q.path == responsesPath }

// mayReportUsage reports whether the response may be a stream that reports usage on request.
func (q *Request) mayReportUsage() bool {
	return q.API == OpenAI && (q.path == chatPath || q.path == completionsPath) && (q.envoyRead == nil || q.envoyRead.Streams)
}
