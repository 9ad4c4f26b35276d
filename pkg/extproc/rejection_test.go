package extproc

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/golden"
	"github.com/weir-epp/weir/pkg/body"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/request"
)

// TestRejectionTable has the client's answer for every outcome, in every preset and in both APIs' shapes.
func TestRejectionTable(t *testing.T) {
	var w strings.Builder
	for _, name := range []string{"seed", "gateway", "smg", "dynamo"} {
		r := newRejections(Responses{Preset: name})
		for o := flowcontrol.OutcomeFlowFull; o < flowcontrol.NumOutcomes; o++ {
			for _, shape := range []request.API{request.OpenAI, request.Anthropic} {
				rej := &flowcontrol.Rejection{Err: fmt.Errorf("inner: %s", o), Outcome: o, RetryAfter: 2345 * time.Millisecond}
				if hopeless(o) {
					rej.RetryAfter = 0
				}
				m := r.reply(rej, shape).GetImmediateResponse()
				fmt.Fprintf(&w, "%s %s: %d, details %s", name, o, m.GetStatus().GetCode(), m.GetDetails())
				for _, h := range m.GetHeaders().GetSetHeaders() {
					fmt.Fprintf(&w, ", %s: %s", h.GetHeader().GetKey(), headerValue(h.GetHeader()))
				}
				fmt.Fprintf(&w, "\n    %s\n", m.GetBody())
			}
		}
	}
	limit := &fairqueue.LimitError{Class: "std-cached", Current: 2, Most: 2}
	for limit.Limit = range fairqueue.LimitKind(fairqueue.NumLimits) {
		for _, name := range []string{"seed", "gateway", "smg", "dynamo"} {
			r := newRejections(Responses{Preset: name})
			for _, shape := range []request.API{request.OpenAI, request.Anthropic} {
				rej := &flowcontrol.Rejection{Err: limit, Outcome: flowcontrol.OutcomeOf(limit), RetryAfter: 2345 * time.Millisecond}
				m := r.reply(rej, shape).GetImmediateResponse()
				fmt.Fprintf(&w, "%s %s, limit of %s: %d\n    %s\n", name, m.GetDetails(), limit.Limit, m.GetStatus().GetCode(), m.GetBody())
			}
		}
	}
	golden.Check(t, "testdata/rejections.txt", w.String())
}

// Every outcome has a status, a message and a reason, also one that is added later.
func TestEveryOutcomeHasAnAnswer(t *testing.T) {
	if len(presetNames) != len(presets) {
		t.Errorf("%d names of %d presets", len(presetNames), len(presets))
	}
	for _, name := range presetNames {
		p := presets[name]
		for o := flowcontrol.OutcomeFlowFull; o < flowcontrol.NumOutcomes; o++ {
			if p.status[o] < 400 || messages[o] == "" {
				t.Errorf("%s: %s has status %d, message %q", name, o, p.status[o], messages[o])
			}
			if back, ok := outcomeByReason(o.String()); !ok || back != o {
				t.Errorf("%s is not found by its reason", o)
			}
		}
	}
}

func TestStatusOverride(t *testing.T) {
	r := newRejections(Responses{Preset: "gateway", Status: map[string]int{"ttl-expired": 408}})
	if r.status[flowcontrol.OutcomeTTLExpired] != 408 || r.status[flowcontrol.OutcomeQueueFull] != 429 {
		t.Errorf("%v", r.status)
	}
	if presets["gateway"].status[flowcontrol.OutcomeTTLExpired] != 503 {
		t.Error("the preset itself was changed")
	}
}

// The sender of a malformed request learns the wrong field, and the mistake.
func TestBadRequestNamesTheField(t *testing.T) {
	for body, want := range map[string]string{
		`{"messages":[]}`: `"message":"The field \"model\" is missing.","type":"invalid_request_error","code":"bad-request","param":"model"`,
		`{"model":7}`:     `"message":"The field \"model\" is not a string."`,
		`{"model":""}`:    `"message":"The field \"model\" is empty."`,
		`model=m`:         `"message":"The request body is not valid: invalid JSON at byte 0: the body is not a JSON object."`,
		`{"model":"m",}`:  `invalid JSON at byte 13: expected a key.`,
		``:                `invalid JSON at byte 0: unexpected end.`,
	} {
		inBubble(t, "BUFFERED/NONE", nil, func(c *conversation) {
			c.say(chat())
			c.say(requestBodyOf(body, true))
			got := c.heardBody()
			if !strings.Contains(got, want) {
				t.Errorf("%s: got %s", body, got)
			}
			c.settled(1)
		})
	}
}

// A model that no endpoint serves is the sender's mistake. Weir names, counts and logs the model, and marks the
// rejection as not retryable.
func TestUnknownModel(t *testing.T) {
	for path, want := range map[string]string{
		"/v1/chat/completions": `{"error":{"message":"No model server serves the model \"nobody's\".",` +
			`"type":"invalid_request_error","code":"unknown-model","param":"model"}}`,
		"/v1/messages": `{"type":"error","error":{"type":"not_found_error",` +
			`"message":"No model server serves the model \"nobody's\".","code":"unknown-model"}}`,
	} {
		inBubble(t, "BUFFERED/NONE", nil, func(c *conversation) {
			c.picker.err = fmt.Errorf("inner: %w", flowcontrol.ErrUnknownModel)
			c.say(requestHeaders(false, ":method", "POST", ":path", path))
			c.say(requestBodyOf(`{"model":"nobody's"}`, true))
			if got := c.heardBody(); got != want {
				t.Errorf("%s: got %s, want %s", path, got, want)
			}
			c.settled(1)
		})
	}
}

// A need that no engine meets is named, with its tag as the code, and is not retryable.
func TestUnsupported(t *testing.T) {
	inBubble(t, "BUFFERED/NONE", nil, func(c *conversation) {
		c.picker.err = &UnsupportedError{Needs: []string{"image", "audio"}, Tag: "modality_not_supported"}
		c.say(requestHeaders(false, ":method", "POST", ":path", "/v1/chat/completions"))
		c.say(requestBodyOf(`{"model":"m","messages":[{"content":[{"type":"image_url"},{"type":"input_audio"}]}]}`, true))
		const want = `{"error":{"message":"No model server that serves the model supports image and audio.",` +
			`"type":"invalid_request_error","code":"modality_not_supported","param":null}}`
		if got := c.heardBody(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if n := c.picker.needs; n != (request.Needs{Needs: body.Needs{Image: true, Audio: true}}) {
			t.Errorf("asked for %+v", n)
		}
		c.settled(1)
	})
}

// A model that the configuration names is not unknown, by its own name or a target's: its engines may come, so a retry
// makes sense.
func TestNamedModelsAreNotUnknown(t *testing.T) {
	named := func(c *Config) {
		c.Models = []request.Model{{Name: "chat", Targets: []request.Target{{Name: "v1", Weight: 1}, {Name: "v2", Weight: 1}}}, {Name: "plain"}}
	}
	toDefault := func(c *Config) { named(c); c.OtherTargets = []request.Target{{Name: "default", Weight: 1}} }
	for _, test := range []struct {
		model  string
		config func(*Config)
		want   flowcontrol.Outcome
	}{
		{"chat", named, flowcontrol.OutcomeNoEndpoint},
		{"v2", named, flowcontrol.OutcomeNoEndpoint},
		{"plain", named, flowcontrol.OutcomeNoEndpoint},
		{"other", named, flowcontrol.OutcomeUnknownModel},
		{"Chat", named, flowcontrol.OutcomeUnknownModel},
		{"default", named, flowcontrol.OutcomeUnknownModel},
		{"default", toDefault, flowcontrol.OutcomeNoEndpoint},
		{"whatever it is, default", toDefault, flowcontrol.OutcomeNoEndpoint},
	} {
		inBubble(t, "BUFFERED/NONE", test.config, func(c *conversation) {
			c.picker.err = fmt.Errorf("inner: %w", flowcontrol.ErrUnknownModel)
			c.say(requestHeaders(false, ":method", "POST", ":path", "/v1/chat/completions"))
			c.say(requestBodyOf(`{"model":"`+test.model+`"}`, true))
			if got := c.heardBody(); !strings.Contains(got, `"code":"`+test.want.String()+`"`) {
				t.Errorf("%s: got %s, want %s", test.model, got, test.want)
			}
			c.settled(1)
		})
	}
}

// Anthropic's clients get errors in Anthropic's form, on other paths of that API too.
func TestErrorShapeFollowsThePath(t *testing.T) {
	for path, want := range map[string]string{
		"/v1/messages":            `{"type":"error"`,
		"/gateway/v1/messages?x=": `{"type":"error"`,
		"/v1/chat/completions":    `{"error":{"message"`,
		"/whatever":               `{"error":{"message"`,
	} {
		inBubble(t, "NONE/NONE", nil, func(c *conversation) {
			c.controller.reject = flowcontrol.ErrNoEndpoint
			c.say(requestHeaders(true, ":method", "GET", ":path", path))
			if got := c.heardBody(); !strings.HasPrefix(got, want) {
				t.Errorf("%s: got %s", path, got)
			}
		})
	}
}

// heardBody returns the body of the ImmediateResponse.
func (c *conversation) heardBody() string {
	messages := c.stream.take()
	i := slices.IndexFunc(messages, isImmediate)
	if i < 0 {
		return "no ImmediateResponse"
	}
	return string(messages[i].GetImmediateResponse().GetBody())
}

// A rejection by a full flow names that flow: a client's first request may be rejected without any of its own waiting.
func TestFlowFullSaysWhoseFlow(t *testing.T) {
	for _, test := range []struct {
		name, want string
		change     func(*Config)
		headers    []string
	}{
		{"the caller's own", "Too many of your requests are waiting.", nil, []string{"x-tenant", "a"}},
		{"the model's", "Too many requests without a tenant are waiting for this model.", nil, nil},
		{
			"the model's, of all tenants", "Too many requests are waiting for this model.",
			func(c *Config) { c.FlowKey = []string{"model", "header:x-tenant"} },
			[]string{"x-tenant", "a"},
		},
		{
			"nobody's", "Too many requests without a tenant are waiting.",
			func(c *Config) { c.FlowKey = []string{"header:x-tenant"} }, nil,
		},
		{
			"the only one", "Too many requests from all callers are waiting.", func(c *Config) { c.OneFlow = true },
			[]string{"x-tenant", "a"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			change := func(c *Config) {
				c.FlowKey = []string{"header:x-tenant", "model"}
				if test.change != nil {
					test.change(c)
				}
			}
			inBubble(t, "NONE/NONE", change, func(c *conversation) {
				c.controller.reject = fairqueue.ErrInsufficientFlowCapacity
				c.say(chat(append(test.headers, "x-gateway-model-name", "m")...))
				if body := c.stream.take()[0].GetImmediateResponse().GetBody(); !strings.Contains(string(body), test.want) ||
					!strings.Contains(string(body), `"code":"flow-full"`) {
					t.Errorf("got %s", body)
				}
			})
		})
	}
}

// A request that expired while no model server was ready gets that reason: with wrong addresses it would look like a
// full queue.
func TestTTLWithoutModelServers(t *testing.T) {
	for away, want := range map[bool]string{
		false: `"message":"The request waited too long in the queue. Please retry later."`,
		true:  `"message":"The request waited too long in the queue, and no model server is ready. Please retry later."`,
	} {
		inBubble(t, "NONE/NONE", nil, func(c *conversation) {
			c.controller.reject, c.controller.away = flowcontrol.ErrExpiredTTL, away
			c.say(chat("x-gateway-model-name", "m"))
			if body := c.heardBody(); !strings.Contains(body, want) || !strings.Contains(body, `"code":"ttl-expired"`) {
				t.Errorf("away %v: %s", away, body)
			}
		})
	}
}
