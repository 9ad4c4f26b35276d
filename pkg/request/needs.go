package request

import "github.com/weir-epp/weir/pkg/extproc/body"

// Needs are a request's demands on an engine besides its model.
type Needs struct {
	// Image, Audio, Video and Structured are as in its body. Audio is set for transcriptions as well.
	body.Needs
	// Embeddings is set if it asks for embeddings.
	Embeddings bool
}

// needByPath reads the needs that the path tells.
func (q *Request) needByPath() {
	if q.API == NoAPI {
		return
	}
	switch q.path {
	case "/v1/embeddings", "/v2/embed":
		q.Needs.Embeddings = true
	case "/v1/audio/transcriptions", "/v1/audio/translations":
		q.Needs.Audio = true
	}
}

// needByBody adds the needs that a body tells.
func (q *Request) needByBody(f *body.Fields) {
	n := f.Needs
	n.Audio = n.Audio || q.Needs.Audio
	q.Needs.Needs = n
}

// asksForNeeds reports whether the placement depends on needs that only the body tells.
func (q *Request) asksForNeeds() bool { return q.rules.cfg.RoutesByNeeds && q.hasPrompt() }
