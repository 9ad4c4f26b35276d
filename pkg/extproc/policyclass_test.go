package extproc

import (
	"strings"
	"testing"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/request"
)

// The class and the priorities of a request are those of the named headers, and of no others: the first class header that
// is present, trimmed; whole numbers of at least 0; a strict priority up to what is allowed.
func TestPolicyClass(t *testing.T) {
	for _, test := range []struct {
		headers []string
		want    fairqueue.Path
	}{
		{[]string{}, fairqueue.Path{}},
		{[]string{"x-other-class", "gold", "priority", "9"}, fairqueue.Path{}},
		{[]string{"x-dynamo-policy-class", " gold "}, fairqueue.Path{Class: "gold"}},
		{[]string{"x-dynamo-policy-class", "iron", "x-dynamo-meta-policy-class", "gold"}, fairqueue.Path{Class: "gold"}},
		{[]string{"x-dynamo-policy-class", "gold", "x-dynamo-policy-class", "iron"}, fairqueue.Path{Class: "gold"}},
		{[]string{"x-dynamo-policy-class", strings.Repeat("g", 257)}, fairqueue.Path{}}, // nobody keeps what clients make up
		{[]string{"x-priority", "50", "x-strict", "2"}, fairqueue.Path{Priority: 50, Strict: 2}},
		{[]string{"x-priority", "-50", "x-strict", "4"}, fairqueue.Path{Strict: 3}},
		{[]string{"x-priority", "1.5", "x-strict", "-1"}, fairqueue.Path{}},
		{[]string{"x-priority", "99999999999999999999", "x-strict", "many"}, fairqueue.Path{Priority: 1<<31 - 1}},
	} {
		inBubble(t, "NONE/NONE", withPolicyClass, func(c *conversation) {
			c.say(chat(test.headers...))
			c.heard()
			got := c.controller.requests[0].Path
			if got == nil {
				got = &fairqueue.Path{}
			}
			if got.Class != test.want.Class || got.Strict != test.want.Strict || got.Priority != test.want.Priority {
				t.Errorf("%q: %+v, want %+v", test.headers, *got, test.want)
			}
		})
	}
}

// A priority that somebody appended to the gateway's is refused; Dynamo's own headers keep the first value.
func TestPriorityTwice(t *testing.T) {
	inBubble(t, "NONE/NONE", withPolicyClass, func(c *conversation) {
		c.say(chat("x-strict", "1", "x-strict", "3"))
		answer := c.stream.take()[0].GetImmediateResponse()
		if answer.GetStatus().GetCode() != 400 || !containsText(answer.GetBody(), `"param":"x-strict"`) {
			t.Errorf("got %v", answer)
		}
		c.settled(1)
	})
}

func withPolicyClass(c *Config) {
	c.PolicyClass = request.PolicyClass{
		Headers:        []string{"X-Dynamo-Meta-Policy-Class", "x-dynamo-policy-class"},
		PriorityHeader: "x-priority", StrictPriorityHeader: "x-strict", MaxStrictPriority: 3,
	}
}
