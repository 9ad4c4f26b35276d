package extproc

import (
	"testing"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/request"
)

// A trusted header comes from the gateway. If it comes twice, one of the two may be the client's, and nobody can tell
// which, so the request is refused with the header's name. Of the class headers of SMG and Dynamo the first value
// counts, as in those systems.
func TestTwoHeadersAreRefused(t *testing.T) {
	change := func(c *Config) {
		c.FlowKey = []string{"header:x-tenant", "header:x-gateway-inference-fairness-id", "model"}
		c.Criticality.ObjectiveHeaders = []string{"x-objective"}
		c.Criticality.Header = "x-class"
		c.TrustedHeaders = request.TrustedHeaders{Model: "x-model", Cost: "x-cost"}
		c.DeadlineHeaders = []string{"x-deadline-ms"}
	}
	for _, test := range []struct {
		refused string // the header; "" is none
		headers []string
	}{
		{"x-tenant", []string{"x-tenant", "a", "x-tenant", "b"}},
		{"x-tenant", []string{"x-tenant", "a", "x-tenant", "a"}},
		{"x-tenant", []string{"x-tenant", "", "x-tenant", "a"}},
		{"x-gateway-inference-fairness-id", []string{"x-gateway-inference-fairness-id", "a", "x-gateway-inference-fairness-id", "b"}},
		{"x-objective", []string{"x-objective", "a", "x-objective", "b"}},
		{"x-class", []string{"x-class", "critical", "x-class", "default"}},
		{"x-model", []string{"x-model", "a", "x-model", "b"}},
		{"x-model", []string{"x-model", "a,b"}},
		{"x-cost", []string{"x-cost", "1", "x-cost", "9"}},
		{"x-cost", []string{"x-cost", "1, 9"}},
		{"x-deadline-ms", []string{"x-deadline-ms", "1", "x-deadline-ms", "9"}},
		{"x-deadline-ms", []string{"x-deadline-ms", "1,9"}},
		{"", []string{"x-tenant", "CN=a,O=b", "x-class", "default", "x-cost", "2", "x-model", "m", "x-deadline-ms", "5"}},
		{"", []string{"accept", "a", "accept", "b", "x-llm-d-inference-fairness-id", "a", "x-llm-d-inference-fairness-id", "b"}},
	} {
		inBubble(t, "NONE/NONE", change, func(c *conversation) {
			c.say(chat(test.headers...))
			answer := c.stream.take()[0].GetImmediateResponse()
			if test.refused == "" {
				if answer != nil {
					t.Errorf("%q: got %s", test.headers, answer.GetBody())
				}
				return
			}
			want := `"code":"bad-request","param":"` + test.refused + `"`
			if answer.GetStatus().GetCode() != 400 || !containsText(answer.GetBody(), want) {
				t.Errorf("%q: got %v", test.headers, answer)
			}
			c.settled(1)
		})
	}
	for _, header := range []string{"x-smg-priority", "X-Dynamo-Meta-Policy-Class"} {
		inBubble(t, "NONE/NONE", func(c *Config) { c.Criticality.Header = header }, func(c *conversation) {
			name := map[bool]string{true: "x-smg-priority", false: "x-dynamo-meta-policy-class"}[header == "x-smg-priority"]
			c.say(chat(name, "sheddable", name, "critical"))
			c.heard()
			if got := c.controller.requests[0].Tier; got != 2 {
				t.Errorf("%s: tier %d, want the first value's", header, got)
			}
		})
	}
}

// A caller that is rejected because a flow is full is told whose flow it is: one that asks for the first time has no
// requests waiting.
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
				if body := c.stream.take()[0].GetImmediateResponse().GetBody(); !containsText(body, test.want) ||
					!containsText(body, `"code":"flow-full"`) {
					t.Errorf("got %s", body)
				}
			})
		})
	}
}
