package request

import (
	"testing"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// Hints of a body count if configured, up to the allowed values; any header goes before them.
func TestHints(t *testing.T) {
	const body = `{"model":"m","messages":[],"nvext":{"agent_hints":{"priority":50,"strict_priority":7,"osl":300,"latency_sensitivity":2.5}}}`
	all := []string{"priority", "strict_priority", "osl", "latency_sensitivity"}
	for _, c := range []struct {
		why      string
		hints    []string
		headers  []string
		most     int
		want     fairqueue.Path
		expected int64
	}{
		{"none is named", nil, nil, 1000, fairqueue.Path{}, 0},
		{"all are", all, nil, 1000, fairqueue.Path{Priority: 50, Strict: 3}, 300},
		{"the priority is capped", all, nil, 20, fairqueue.Path{Priority: 20, Strict: 3}, 300},
		{"headers go before", all, []string{"x-priority", "4", "x-strict", "1"}, 1000, fairqueue.Path{Priority: 4, Strict: 1}, 300},
		{"also if they say nothing that counts", all, []string{"x-priority", "low", "x-strict", "-1"}, 1000, fairqueue.Path{}, 300},
		{"the priority alone", all[:1], nil, 1000, fairqueue.Path{Priority: 50}, 0},
		{"the strict priority alone", all[1:2], nil, 1000, fairqueue.Path{Strict: 3}, 0},
		{"the latency alone is a priority in seconds", all[3:], nil, 1000, fairqueue.Path{Priority: 3}, 0},
		{"which a header states too", all[3:], []string{"x-priority", "0"}, 1000, fairqueue.Path{}, 0},
	} {
		s := sent{cfg: DefaultConfig(), headers: chat(c.headers...), mode: Buffered, body: body}
		withPolicyClass(&s.cfg)
		s.cfg.PolicyClass.Hints, s.cfg.PolicyClass.MaxPriority = c.hints, c.most
		r := s.must(t)
		got := fairqueue.Path{}
		if r.Class != nil {
			got = *r.Class
		}
		if got.Priority != c.want.Priority || got.Strict != c.want.Strict || r.Size.Expected != c.expected {
			t.Errorf("%s: %+v, %d tokens expected", c.why, got, r.Size.Expected)
		}
	}
	capped := sent{cfg: DefaultConfig(), headers: chat("x-priority", "50")}
	withPolicyClass(&capped.cfg)
	capped.cfg.PolicyClass.MaxPriority = 20
	if r := capped.must(t); r.Class.Priority != 20 {
		t.Errorf("a header's priority is %d", r.Class.Priority)
	}
}

// The body is read for a counting hint without a header; the body of a request without a prompt is not.
func TestHintsNeedTheBody(t *testing.T) {
	for _, c := range []struct {
		hints   []string
		headers []string
		needed  bool
	}{
		{nil, chat(), false},
		{[]string{"priority"}, chat(), true},
		{[]string{"priority", "strict_priority"}, chat("x-priority", "1"), true},
		{[]string{"priority", "strict_priority"}, chat("x-priority", "1", "x-strict", "0"), false},
		{[]string{"osl"}, chat("x-priority", "1", "x-strict", "0"), true},
		{[]string{"priority"}, headers(":method", "POST", ":path", "/v1/files", "content-type", "multipart/form-data; boundary=b"), false},
	} {
		s := sent{cfg: DefaultConfig(), headers: append(c.headers, "x-gateway-model-name", "m"), mode: Buffered, body: `{"model":"m"}`}
		withPolicyClass(&s.cfg)
		s.cfg.PolicyClass.Hints = c.hints
		if s.must(t); s.needed != c.needed {
			t.Errorf("%v, %v: needed %t", c.hints, c.headers, s.needed)
		}
	}
}
