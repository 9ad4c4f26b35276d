package extproc

import (
	"strings"
	"testing"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/weir-epp/weir/pkg/request"
)

// No content type leads around the queue or to another flow. An engine may read any body as JSON, so Weir does too.
func TestOtherContentTypesAreJSON(t *testing.T) {
	for _, mode := range []string{"BUFFERED/NONE", "BUFFERED_PARTIAL/NONE", "FULL_DUPLEX/NONE"} {
		for _, contentType := range []string{
			"", "text/plain", "application/x-www-form-urlencoded", "application/octet-stream", "multipart/mixed; boundary=b", "garbage",
			"application/json, multipart/form-data; boundary=b",
		} {
			inBubble(t, mode, nil, func(c *conversation) {
				m := chat()
				m.GetRequestHeaders().GetHeaders().GetHeaders()[2].RawValue = []byte(contentType)
				c.say(m)
				c.say(requestBodyOf(`{"model":"m"}`, true))
				if got := c.heard(); !strings.Contains(got, dest) || len(c.controller.requests) != 1 {
					t.Fatalf("%s, %q: %s", mode, contentType, got)
				}
				if r := c.controller.requests[0]; r.Model != "m" || r.Flow != "m/m" || c.controller.passedOn != 0 {
					t.Errorf("%s, %q: %+v", mode, contentType, r)
				}
				c.settled(1)
			})
			inBubble(t, mode, nil, func(c *conversation) {
				m := chat()
				m.GetRequestHeaders().GetHeaders().GetHeaders()[2].RawValue = []byte(contentType)
				c.say(m)
				c.say(requestBodyOf(`model=m`, true))
				if got := c.heard(); !strings.HasSuffix(got, "immediate 400 bad-request") {
					t.Errorf("%s, %q, no JSON: %s", mode, contentType, got)
				}
				c.settled(1)
			})
		}
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
		inBubble(t, "BUFFERED/NONE", nil, func(c *conversation) {
			c.say(requestHeaders(false, ":method", "POST", ":path", "/llm/chat/completions", "content-type", test.contentType))
			c.say(requestBodyOf(test.body, true))
			got := c.heard()
			if refused := strings.HasSuffix(got, "immediate 400 bad-request"); refused != test.refused {
				t.Errorf("%s: %s", name, got)
			}
			c.settled(1)
		})
		// If nothing depends on the model, the body may be anything.
		inBubble(t, "BUFFERED/NONE", func(cfg *Config) {
			cfg.FlowKey, cfg.RequestBody = []string{"header:x-tenant"}, request.BodyAlways
			cfg.Models, cfg.RoutesByModel = nil, false
		}, func(c *conversation) {
			c.say(requestHeaders(false, ":method", "POST", ":path", "/llm/chat/completions", "content-type", test.contentType))
			c.say(requestBodyOf(test.body, true))
			if got := c.heard(); strings.Contains(got, "immediate") {
				t.Errorf("%s, without models: %s", name, got)
			}
			c.settled(1)
		})
	}
}

// A form's model names the flow, the tier and the target like a JSON body's, and is replaced in place. Every other byte
// stays.
func TestModelOfAForm(t *testing.T) {
	const before = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\nContent-Type: audio/wav\r\n\r\n" +
		"RI\x00\xffFF\r\n--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\n"
	const after = "\r\n--b--\r\n"
	tiered := func(c *Config) {
		c.Models = []request.Model{{Name: "m", Criticality: "Sheddable", Targets: []request.Target{{Name: "m-v1", Weight: 1}}}}
	}
	form := func(pairs ...string) *extprocv3.ProcessingRequest {
		return requestHeaders(false, append([]string{
			":method", "POST", ":path", "/v1/audio/transcriptions", "content-type", "multipart/form-data; boundary=b",
		}, pairs...)...)
	}
	for _, test := range []struct{ mode, want string }{
		{"BUFFERED/NONE", "headers; body " + dest + " +content-length=169 body=" + before + "m-v1" + after + " " + meta},
		{"FULL_DUPLEX/NONE", "headers " + dest + " -content-length " + meta + "; body chunk=(169 bytes) end"},
	} {
		inBubble(t, test.mode, tiered, func(c *conversation) {
			c.say(form("content-length", "166"))
			c.say(requestBodyOf(before+"m"+after, true))
			if got := c.heard(); got != test.want {
				t.Errorf("%s: got  %q\nwant %q", test.mode, got, test.want)
			}
			if r := c.controller.requests[0]; r.Model != "m" || r.TargetModel != "m-v1" || r.Flow != "m/m-v1" || r.TierName != "sheddable" {
				t.Errorf("%s: %+v", test.mode, r)
			}
			c.settled(1)
		})
	}
	for body, want := range map[string]string{
		"--b--\r\n":                       "invalid multipart form: it has no part",
		before + "m":                      "invalid multipart form, part 2: it does not end with the form's boundary",
		before + after:                    `The field \"model\" is empty.`,
		strings.Repeat("--b\r\n", 10_000): "invalid multipart form, part 1",
		strings.Replace(before, "name=\"model\"", "name=\"x\"", 1) + "m" + after:                     `The field \"model\" is missing.`,
		strings.Replace(before, "name=\"model\"", "name=\"model\"; filename=\"x\"", 1) + "m" + after: `The field \"model\" is not a string.`,
		before + strings.Repeat("m", 1<<20) + after:                                                  `The field \"model\" is longer than 1024 bytes.`,
	} {
		inBubble(t, "BUFFERED/NONE", nil, func(c *conversation) {
			c.say(form())
			c.say(requestBodyOf(body, true))
			if got := c.heardBody(); !strings.Contains(got, want) {
				t.Errorf("%.60q: got %s", body, got)
			}
			c.settled(1)
		})
	}
}

// A part of a body names no model: an engine reads the last of two models, which may come after the part.
func TestAPartSaysNothing(t *testing.T) {
	inBubble(t, "BUFFERED_PARTIAL/NONE", nil, func(c *conversation) {
		c.say(chat())
		c.say(requestBodyOf(`{"model":"cheap","messages":[`, false))
		const want = `The body is too long for its field \"model\" to be known: only its first 29 bytes are read here, and the ` +
			`field may come again after them.","type":"invalid_request_error","code":"bad-request","param":"model"`
		if got := c.heardBody(); !strings.Contains(got, want) {
			t.Errorf("got %s", got)
		}
		c.settled(1)
	})
	// The part names no model either if none is needed or a trusted header has it.
	inBubble(t, "BUFFERED_PARTIAL/NONE", func(c *Config) { c.RequestBody = request.BodyAlways }, func(c *conversation) {
		c.say(chat("x-gateway-model-name", "m"))
		c.say(requestBodyOf(`{"model":"cheap","messages":[`, false))
		c.heard()
		if r := c.controller.requests[0]; r.Model != "m" || r.Flow != "m/m" {
			t.Errorf("%+v", r)
		}
		c.settled(1)
	})
}
