package request

import (
	"testing"

	"github.com/weir-epp/weir/pkg/body"
)

// A request has the needs that its path and its body tell.
func TestNeeds(t *testing.T) {
	const image = `{"model":"m","messages":[{"content":[{"type":"image_url","image_url":{"url":"u"}}]}],"tools":[{"type":"function"}]}`
	for _, test := range []struct {
		name, path, body string
		want             Needs
	}{
		{"a chat", "/v1/chat/completions", `{"model":"m","messages":[{"content":"image"}]}`, Needs{}},
		{"an image and tools", "/v1/chat/completions", image, Needs{Needs: body.Needs{Image: true, Structured: true}}},
		{"embeddings", "/v1/embeddings", `{"model":"m","input":"a"}`, Needs{Embeddings: true}},
		{"embeddings behind a prefix, spelled otherwise", "/a/v1//embeddings?x", `{"model":"m","input":"a"}`, Needs{Embeddings: true}},
		{"embeddings of images", "/v2/embed", image, Needs{Needs: body.Needs{Image: true, Structured: true}, Embeddings: true}},
		{"a transcription", "/v1/audio/transcriptions", `{"model":"m"}`, Needs{Needs: body.Needs{Audio: true}}},
		{"another path", "/v1/anything", image, Needs{Needs: body.Needs{Image: true, Structured: true}}},
	} {
		s := sent{cfg: DefaultConfig(), headers: headers(":method", "POST", ":path", test.path), mode: Buffered, body: test.body}
		if q := s.must(t); q.Needs != test.want {
			t.Errorf("%s: %+v, want %+v", test.name, q.Needs, test.want)
		}
	}
	s := sent{cfg: DefaultConfig(), headers: headers(":method", "GET", ":path", "/v1/embeddings"), mode: Buffered, end: true}
	if q := s.must(t); q.Needs != (Needs{}) {
		t.Errorf("what passes on needs %+v", q.Needs)
	}
}

// The body is read for its needs only where some endpoint does not meet every need, and of requests that have a prompt.
func TestNeedsAskForTheBody(t *testing.T) {
	for _, test := range []struct {
		name   string
		routes bool
		policy BodyPolicy
		more   []string
		want   bool
	}{
		{"every endpoint meets all", false, BodyAuto, nil, false},
		{"one does not", true, BodyAuto, nil, true},
		{"never", true, BodyNever, nil, false},
		{"a form", true, BodyAuto, headers("content-type", "multipart/form-data; boundary=x"), false},
	} {
		s := sent{cfg: DefaultConfig(), headers: headers(append(test.more, ":method", "POST", ":path", "/v1/chat/completions", "x-gateway-model-name", "m")...), body: `{"model":"m"}`}
		s.cfg.RoutesByNeeds, s.cfg.RequestBody = test.routes, test.policy
		for _, mode := range []BodyMode{Buffered, Streamed} {
			s.mode = mode
			q, _ := s.read()
			if shown := mode == Buffered; s.needed != (test.want && shown) || q.BodyHidden != (test.want && !shown) {
				t.Errorf("%s, %s: needed %v, hidden %v", test.name, mode, s.needed, q.BodyHidden)
			}
		}
	}
}
