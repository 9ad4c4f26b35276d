package extproc

import (
	"net/url"
	"path"
	"strings"
)

// api is the API whose client sent a request. It decides the shape of errors.
type api uint8

const (
	noAPI     api = iota // unknown
	openAI               // chat completions, completions, responses, embeddings and the like
	anthropic            // messages
)

// inferencePaths are the ends of the paths of requests that certainly run a model, here and in docs/envoy.md. They are a
// vLLM's; a gateway may put a prefix before them. They decide what is an error and what it looks like, not what queues:
// all requests queue that are not cheap.
var inferencePaths = []string{
	"/v1/chat/completions", "/v1/chat/completions/batch", "/v1/completions", messagesPath, responsesPath,
	"/v1/embeddings", "/v2/embed", "/rerank", "/score", "/classify", "/pooling", "/generative_scoring",
	"/v1/audio/transcriptions", "/v1/audio/translations", "/inference/v1/generate", "/invocations", "/cohere/v2/chat",
}

const (
	messagesPath  = "/v1/messages"
	responsesPath = "/v1/responses"
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
		requestPath = strings.TrimSuffix(decoded, "\n") // Starlette's routes match with a newline at the end
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

// promptOnly reports whether the requests at a path have no output: a model reads their prompts, and writes nothing. A path
// with what others may decode or cut off is none of these: it may be that of completions for them.
func promptOnly(requestPath string) bool {
	if sent, _, _ := strings.Cut(requestPath, "?"); strings.ContainsAny(sent, "%;#") {
		return false
	}
	switch inferencePath(requestPath) {
	case "/v1/embeddings", "/v2/embed", "/rerank", "/score", "/classify", "/pooling":
		return true
	default:
		return false
	}
}

func (st *mainStream) promptOnly() bool { return promptOnly(st.headers.values[slotPath]) }

// apiOf returns the API of a request that certainly runs a model: a POST to a known path, of any content type, since an
// engine may read the body as JSON whatever the client calls it. If such a request lacks a model where one is needed, that
// is an error. Any other request has the model that is found, or none.
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

// isResponses reports whether a path is one of OpenAI's responses API.
func isResponses(requestPath string) bool { return inferencePath(requestPath) == responsesPath }

// cheapPaths are the paths of requests that run no model, whatever their body says, here and in docs/envoy.md. They are
// compared with the path as it was sent, without the query: however others read a path, a list of what bypasses the queue
// can only let too little through.
var cheapPaths = []string{"/tokenize", "/detokenize", "/v1/messages/count_tokens"}

// cheap reports whether a request is known not to be inference: it is no upgrade, and it is at a cheap path or is a GET,
// HEAD, OPTIONS or DELETE without a body.
func (c *compiled) cheap(h *headers) bool {
	if h.upgrades() {
		return false
	}
	requestPath, _, _ := strings.Cut(h.values[slotPath], "?")
	if c.cheapPaths[requestPath] {
		return true
	}
	switch h.values[slotMethod] {
	case "GET", "HEAD", "OPTIONS", "DELETE":
		return h.bodyless()
	default:
		return false
	}
}

// upgrades reports whether a request may become a connection of another protocol, whose bytes are not a body: by CONNECT,
// by an upgrade header, or by HTTP/2's extended CONNECT, which Envoy shows as an upgrade and other proxies as :protocol. A
// connection header with any option but keep-alive and close counts as an upgrade.
func (h *headers) upgrades() bool {
	const said = 1<<slotUpgrade | 1<<slotProtocol
	if h.present&said != 0 || h.twice>>slotConnection&1 != 0 || h.values[slotMethod] == "CONNECT" {
		return true
	}
	switch strings.ToLower(h.values[slotConnection]) {
	case "", "keep-alive", "close":
		return false
	default:
		return true
	}
}

// bodyless reports whether a request has no body: it ends with its headers, in any mode of Envoy's, and they announce no
// body. A body that turns out to be empty is still a body, since only its end shows that.
func (h *headers) bodyless() bool {
	const announced = 1 << slotTransferEncoding
	length := h.values[slotContentLength]
	return h.end && h.present&announced == 0 && (length == "" || length == "0")
}
