package body

import (
	"strings"
	"testing"
)

// Hints are read where Dynamo has them, and nowhere else; of two, the last counts.
func TestHints(t *testing.T) {
	a := Absent
	for _, c := range []struct {
		body string
		want Hints
	}{
		{`{"model":"m"}`, Hints{a, a, a, a}},
		{`{"nvext":{"agent_hints":{"priority":5,"strict_priority":1,"osl":1024,"latency_sensitivity":2}}}`, Hints{5, 1, 1024, 2}},
		{`{"nvext":{"agent_hints":{"latency_sensitivity":0.2,"speculative_prefill":true,"priority":null}}}`, Hints{a, a, a, 1}},
		{`{"nvext":{"agent_hints":{"latency_sensitivity":"1.5","priority":"7","osl":-3,"strict_priority":"many"}}}`, Hints{7, 0, 0, 2}},
		{`{"nvext":{"agent_hints":{"latency_sensitivity":-1.5,"priority":1e300}}}`, Hints{1 << 40, a, a, 0}},
		{`{"nvext":{"agent_hints":{"priority":5},"agent_hints":{"osl":7}}}`, Hints{a, a, 7, a}},
		{`{"nvext":{"agent_hints":{"priority":5}},"nvext":{}}`, Hints{a, a, a, a}},
		{`{"nvext":{"agent_hints":{"priority":5}},"nvext":null}`, Hints{a, a, a, a}},
		{`{"nvext":{"agent_hints":{"priority":{"a":5}}},"priority":9}`, Hints{0, a, a, a}},
		{`{"nvext":{"agent_hints":[{"priority":5}],"priority":5}}`, Hints{a, a, a, a}},
		{`{"nvext":"agent_hints","agent_hints":{"priority":5}}`, Hints{a, a, a, a}},
		{`{"metadata":{"nvext":{"agent_hints":{"priority":5}}}}`, Hints{a, a, a, a}},
		{`{"nv\u0065xt":{"agent\u005fhints":{"prior\u0069ty":5}}}`, Hints{5, a, a, a}},
	} {
		f, err := scan([]byte(c.body))
		if err != nil || f.Hints != c.want {
			t.Errorf("%s: %+v, %v", c.body, f.Hints, err)
		}
	}
}

// A body with hints is as valid as without: what is broken in them breaks it, and what nests too deeply.
func TestHintsAreJSON(t *testing.T) {
	for _, broken := range []string{
		`{"nvext":{"agent_hints":{"priority":}}}`, `{"nvext":{"agent_hints":{"priority":5}`, `{"nvext":{"a":[}}`,
		`{"nvext":{"agent_hints":{"x":` + strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth) + `}}}`,
	} {
		if _, err := scan([]byte(broken)); err == nil {
			t.Errorf("%.60s is valid", broken)
		}
	}
	// Engines may show fields that they do not know to the model, so the extension counts as before.
	with, _ := scan([]byte(`{"prompt":"x","nvext":{"agent_hints":{"priority":5}}}`))
	if with.Rest != int64(len(`{"agent_hints":{"priority":5}}`)) {
		t.Errorf("the rest has %d bytes", with.Rest)
	}
}
