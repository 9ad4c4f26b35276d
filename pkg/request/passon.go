package request

import "strings"

// cheapPaths are the paths of requests that run no model, whatever their body, here and in docs/envoy.md. They are
// compared with the path as sent, without the query, so other spellings of a path can only pass too few requests.
var cheapPaths = []string{"/tokenize", "/detokenize", "/v1/messages/count_tokens"}

// cheap reports whether a request is known not to be inference: it is not an upgrade, and it is at a cheap path or is a
// GET, HEAD, OPTIONS or DELETE without a body.
func (r *Rules) cheap(h *Headers, end bool) bool {
	if h.upgrades() {
		return false
	}
	requestPath, _, _ := strings.Cut(h.values[slotPath], "?")
	if r.cheapPaths[requestPath] {
		return true
	}
	switch h.values[slotMethod] {
	case "GET", "HEAD", "OPTIONS", "DELETE":
		return end && h.announcesNone()
	default:
		return false
	}
}

// upgrades reports whether a request may become a connection of another protocol, without a body: by CONNECT, by an
// upgrade header, or by HTTP/2's extended CONNECT (an upgrade in Envoy, :protocol in other proxies). A connection
// header with any option but keep-alive and close counts as an upgrade.
func (h *Headers) upgrades() bool {
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

// announcesNone reports whether the headers announce no body. A request without a body announces none and ends with its
// headers, in any mode of Envoy. An empty body is still a body, since only its end shows that it is empty.
func (h *Headers) announcesNone() bool {
	const announced = 1 << slotTransferEncoding
	length := h.values[slotContentLength]
	return h.present&announced == 0 && (length == "" || length == "0")
}
