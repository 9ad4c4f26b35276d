package request

import (
	"strings"
	"testing"

	"github.com/weir-epp/weir/pkg/fairqueue"
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
		s := sent{cfg: DefaultConfig(), headers: chat(test.headers...)}
		withPolicyClass(&s.cfg)
		got := s.must(t).Class
		if got == nil {
			got = &fairqueue.Path{}
		}
		if got.Class != test.want.Class || got.Strict != test.want.Strict || got.Priority != test.want.Priority {
			t.Errorf("%q: %+v, want %+v", test.headers, *got, test.want)
		}
	}
}

func withPolicyClass(c *Config) {
	c.PolicyClass = PolicyClass{
		Headers:        []string{"X-Dynamo-Meta-Policy-Class", "x-dynamo-policy-class"},
		PriorityHeader: "x-priority", StrictPriorityHeader: "x-strict", MaxStrictPriority: 3, MaxPriority: 1<<31 - 1,
	}
}
