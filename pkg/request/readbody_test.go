package request

import (
	"errors"
	"strings"
	"testing"

	"github.com/weir-epp/weir/pkg/body"
	"github.com/weir-epp/weir/pkg/estimate"
)

// refusedWith reads a request and checks that it is refused with a message.
func (s *sent) refusedWith(t *testing.T, kind error, field, message string) {
	t.Helper()
	_, err := s.read()
	if e := new(Error); !errors.As(err, &e) || !errors.Is(err, kind) || e.Field != field || !strings.Contains(e.Message, message) {
		t.Errorf("%q, %.60q: %v, want %q of %q", s.headers, s.body, err, message, field)
	}
}

// No content type leads around the queue or to another flow. An engine may read any body as JSON, so Weir does too.
func TestOtherContentTypesAreJSON(t *testing.T) {
	for _, contentType := range []string{
		"", "text/plain", "application/x-www-form-urlencoded", "application/octet-stream", "multipart/mixed; boundary=b", "garbage",
		"application/json, multipart/form-data; boundary=b",
	} {
		s := sent{headers: headers(":method", "POST", ":path", "/v1/completions", "content-type", contentType), mode: Buffered, body: `{"model":"m"}`}
		if q := s.must(t); q.Model != "m" || q.Flow != "m/m" || q.PassesOn {
			t.Errorf("%q: %+v", contentType, q)
		}
		s.body = `model=m`
		s.refusedWith(t, ErrMalformed, "", "The request body is not valid: ")
	}
}

// A request that certainly runs a model names it, where the model is needed.
func TestMissingModels(t *testing.T) {
	for content, why := range map[string]string{
		`{"model":7}`: "not a string", `{"model":""}`: "empty", `{}`: "missing", `{"model":"m","model":null}`: "not a string",
	} {
		s := sent{headers: chat(), mode: Buffered, body: content}
		s.refusedWith(t, ErrMalformed, "model", `The field "model" is `+why+".")
		s.headers = headers(":method", "POST", ":path", "/generate") // unknown paths have the model that is found, or none
		if q := s.must(t); q.Model != "" || q.Flow != Anonymous {
			t.Errorf("%s: model %q, flow %q", content, q.Model, q.Flow)
		}
	}
	s := sent{headers: chat(), end: true}
	s.refusedWith(t, ErrMalformed, "model", `The request has no body, so the field "model" is missing.`)
}

// A trusted header's model wins over the body's.
func TestTrustedModelWins(t *testing.T) {
	s := sent{headers: chat("x-gateway-model-name", "trusted"), mode: FullDuplex, body: `{"model":"m"}`}
	if q := s.must(t); q.Model != "trusted" || q.Flow != "trusted/trusted" {
		t.Errorf("%q in %q", q.Model, q.Flow)
	}
}

// At a path that Weir does not know, a body that it cannot read has no model only if no other reader could find one.
// Otherwise a more lenient engine could serve another model, in another tier, than the one the request was counted for.
func TestUnreadableBodiesThatMayNameAModel(t *testing.T) {
	const object = `{"model":"m"`
	for name, test := range map[string]struct {
		body, contentType string
		refused           bool
	}{
		"NaN":                   {object + `,"x":NaN}`, "application/json", true},
		"nested too deep":       {object + `,"x":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + "}", "application/json", true},
		"a byte order mark":     {"\xef\xbb\xbf" + object + "}", "application/json", true},
		"UTF-16":                {"{\x00\"\x00m\x00", "application/json", true},
		"UTF-32, big endian":    {"\x00\x00\xfe\xff\x00\x00\x00{", "application/json", true},
		"something after it":    {object + "} x", "application/json", true},
		"not called JSON":       {object + `,"x":NaN}`, "application/octet-stream", true},
		"blanks first":          {"\r\n\t " + object + `,"x":NaN}`, "", true},
		"a form that is broken": {"--b\r\n", "multipart/form-data; boundary=b", true},
		"an array":              {`[{"model":"m"}]`, "application/json", false},
		"text":                  {"model=m", "application/json", false},
		"a picture":             {"\x89PNG\r\n{", "image/png", false},
	} {
		s := sent{
			cfg: DefaultConfig(), mode: Buffered, body: test.body,
			headers: headers(":method", "POST", ":path", "/llm/chat/completions", "content-type", test.contentType),
		}
		if q, err := s.read(); (err != nil) != test.refused || err == nil && q.Size.Text != estimate.Unknown {
			t.Errorf("%s: %v, of size %+v", name, err, q.Size)
		}
		// If nothing depends on the model, the body may be anything.
		s.cfg.FlowKey, s.cfg.RequestBody, s.cfg.Models, s.cfg.RoutesByModel = []string{"header:x-tenant"}, BodyAlways, nil, false
		if _, err := s.read(); err != nil {
			t.Errorf("%s, without models: %v", name, err)
		}
	}
}

// A form's model names the flow, the tier and the target like a JSON body's, and is replaced in place. Every other byte
// stays.
func TestModelOfAForm(t *testing.T) {
	const before = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\nContent-Type: audio/wav\r\n\r\n" +
		"RI\x00\xffFF\r\n--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\n"
	const after = "\r\n--b--\r\n"
	form := func(content string) *sent {
		s := &sent{cfg: DefaultConfig(), mode: Buffered, body: content, headers: headers(
			":method", "POST", ":path", "/v1/audio/transcriptions", "content-type", "multipart/form-data; boundary=b",
		)}
		s.cfg.Models = []Model{{Name: "m", Criticality: "Sheddable", Targets: []Target{{Name: "m-v1", Weight: 1}}}}
		return s
	}
	s := form(before + "m" + after)
	q := s.must(t)
	if q.Model != "m" || q.Target != "m-v1" || q.Flow != "m/m-v1" || q.Tier != 2 {
		t.Errorf("%+v", q)
	}
	if got := string(body.Apply([]byte(s.body), q.Edits...)); got != before+"m-v1"+after {
		t.Errorf("%q", got)
	}
	for content, want := range map[string]string{
		"--b--\r\n":                       "invalid multipart form: it has no part",
		before + "m":                      "invalid multipart form, part 2: it does not end with the form's boundary",
		before + after:                    `The field "model" is empty.`,
		strings.Repeat("--b\r\n", 10_000): "invalid multipart form, part 1",
		strings.Replace(before, "name=\"model\"", "name=\"x\"", 1) + "m" + after:                     `The field "model" is missing.`,
		strings.Replace(before, "name=\"model\"", "name=\"model\"; filename=\"x\"", 1) + "m" + after: `The field "model" is not a string.`,
		before + strings.Repeat("m", 1<<20) + after:                                                  `The field "model" is longer than 1024 bytes.`,
	} {
		field := "model"
		if strings.Contains(want, "invalid") {
			field = ""
		}
		form(content).refusedWith(t, ErrMalformed, field, want)
	}
}

// A part of a body names no model: an engine reads the last of two models, which may come after the part. Nor is a model
// replaced in it.
func TestAPartSaysNothing(t *testing.T) {
	s := sent{headers: chat(), mode: Partial, part: true, body: `{"model":"cheap","messages":[`}
	s.refusedWith(t, ErrMalformed, "model", `The body is too long for its field "model" to be known: only its first 29 bytes are `+
		`read here, and the field may come again after them.`)
	s = sent{cfg: DefaultConfig(), headers: chat("x-gateway-model-name", "m"), mode: Partial, part: true, body: s.body}
	s.cfg.RequestBody = BodyAlways
	if q := s.must(t); q.Model != "m" || q.Flow != "m/m" || q.PartNotRewritten {
		t.Errorf("%+v", q)
	}
	s.cfg.Models = []Model{{Name: "m", Targets: []Target{{Name: "m-v1", Weight: 1}}}}
	if q := s.must(t); q.Target != "m-v1" || len(q.Edits) != 0 || !q.PartNotRewritten {
		t.Errorf("%+v", q)
	}
}

// The edits replace the model by its target, and ask for usage: both, one or none.
func TestEdits(t *testing.T) {
	for _, test := range []struct{ body, want string }{
		{`{"model":"m","x":1}`, `{"model":"m-v1","x":1}`},
		{`{"model":"m","stream":true}`, `{"stream_options":{"include_usage":true},"model":"m-v1","stream":true}`},
		{`{"model":"m-v1","stream":true,"stream_options":{"include_usage":true}}`, ``},
		{`{"model":"m-v1","stream":false}`, ``},
	} {
		s := sent{cfg: DefaultConfig(), headers: chat("x-gateway-model-name", "m"), mode: FullDuplex, askUsage: true, body: test.body}
		s.cfg.Models = []Model{{Name: "m", Targets: []Target{{Name: "m-v1", Weight: 1}}}}
		q := s.must(t)
		got := ""
		if len(q.Edits) > 0 {
			got = string(body.Apply([]byte(test.body), q.Edits...))
		}
		if got != test.want {
			t.Errorf("%s: %s", test.body, got)
		}
	}
}
