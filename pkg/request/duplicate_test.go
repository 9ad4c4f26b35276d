package request

import (
	"errors"
	"strings"
	"testing"
)

// A trusted header comes from the gateway. If it comes twice, one of the two may be the client's, so the request is
// refused with the header's name. Of the class headers of SMG and Dynamo the first value counts, as in those systems.
func TestTwoHeadersAreRefused(t *testing.T) {
	cfg := DefaultConfig()
	cfg.FlowKey = []string{"header:x-tenant", "header:x-gateway-inference-fairness-id", "model"}
	cfg.Criticality.ObjectiveHeaders = []string{"x-objective"}
	cfg.Criticality.Header = "x-class"
	cfg.TrustedHeaders = TrustedHeaders{Model: "x-model", Cost: "x-cost", InputTokens: "x-input"}
	cfg.DeadlineHeaders = []string{"x-deadline-ms"}
	cfg.PolicyClass = PolicyClass{Headers: []string{"x-policy"}, PriorityHeader: "x-priority", StrictPriorityHeader: "x-strict"}
	for _, test := range []struct {
		refused string // the header; "" is none
		headers string // separated by semicolons
	}{
		{"x-tenant", "x-tenant;a;x-tenant;b"},
		{"x-tenant", "x-tenant;a;x-tenant;a"},
		{"x-tenant", "x-tenant;;x-tenant;a"},
		{"x-gateway-inference-fairness-id", "x-gateway-inference-fairness-id;a;x-gateway-inference-fairness-id;b"},
		{"x-objective", "x-objective;a;x-objective;b"},
		{"x-class", "x-class;critical;x-class;default"},
		{"x-policy", "x-policy;a;x-policy;b"},
		{"x-priority", "x-priority;1;x-priority;3"},
		{"x-strict", "x-strict;1;x-strict;3"},
		{"x-model", "x-model;a;x-model;b"},
		{"x-model", "x-model;a,b"},
		{"x-cost", "x-cost;1;x-cost;9"},
		{"x-cost", "x-cost;1, 9"},
		{"x-input", "x-input;1,9"},
		{"x-deadline-ms", "x-deadline-ms;1;x-deadline-ms;9"},
		{"x-deadline-ms", "x-deadline-ms;1,9"},
		{"", "x-tenant;CN=a,O=b;x-class;default;x-cost;2;x-model;m;x-deadline-ms;5"},
		{"", "accept;a;accept;b;x-llm-d-inference-fairness-id;a;x-llm-d-inference-fairness-id;b"},
	} {
		s := sent{cfg: cfg, headers: chat(strings.Split(test.headers, ";")...)}
		_, err := s.read()
		e := new(Error)
		switch {
		case test.refused == "" && err != nil:
			t.Errorf("%s: %v", test.headers, err)
		case test.refused != "" && (!errors.As(err, &e) || !errors.Is(err, ErrMalformed) || e.Field != test.refused || !strings.Contains(e.Message, test.refused)):
			t.Errorf("%s: %v", test.headers, err)
		}
	}
	for _, header := range []string{"x-smg-priority", "X-Dynamo-Meta-Policy-Class"} {
		name := strings.ToLower(header)
		s := sent{cfg: DefaultConfig(), headers: chat(name, "sheddable", name, "critical")}
		s.cfg.Criticality.Header = header
		if got := s.must(t).Tier; got != 2 {
			t.Errorf("%s: tier %d, want the first value's", header, got)
		}
	}
}
