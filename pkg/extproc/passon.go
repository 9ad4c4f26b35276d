package extproc

import "strings"

// cheapPaths are the paths of requests that run no model whatever their body says, here and in docs/envoy.md. They are
// compared as they are sent, without the query: whatever else reads a path in a way of its own, a list of what passes
// only ever lets too little through.
var cheapPaths = []string{"/tokenize", "/detokenize", "/v1/messages/count_tokens"}

// cheap reports whether a request is known to be no inference: no upgrade, and either without a body and a GET, HEAD,
// OPTIONS or DELETE, or at a path of the list.
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

// upgrades reports whether a request may become a connection of another protocol, whose bytes are no body: by CONNECT,
// by an upgrade header, or by HTTP/2's extended CONNECT, which Envoy shows as an upgrade and others as :protocol. A
// connection header that says anything but how long it lives counts as an upgrade.
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

// bodyless reports whether a request has no body: its headers are its end, in any mode of Envoy's, and do not announce
// one. A body that turns out to be empty is one: only its end shows that.
func (h *headers) bodyless() bool {
	const announced = 1 << slotTransferEncoding
	length := h.values[slotContentLength]
	return h.end && h.present&announced == 0 && (length == "" || length == "0")
}
