package request

import "github.com/weir-epp/weir/pkg/body"

// Needs are a request's needs besides its model.
type Needs struct {
	// Image, Audio, Video and Structured are as in its body. Audio is set for transcriptions as well.
	body.Needs
	// Embeddings is set if it asks for embeddings.
	Embeddings bool
}

// needByPath derives needs from the path.
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

// needByBody adds the needs of the body.
func (q *Request) needByBody(f *body.Fields) {
	n := f.Needs
	n.Audio = n.Audio || q.Needs.Audio
	q.Needs.Needs = n
}

// asksForNeeds reports whether the placement depends on needs in the body.
func (q *Request) asksForNeeds() bool { return q.rules.cfg.RoutesByNeeds && q.hasPrompt() }
