package request

import "testing"

// The model that Envoy has read counts after a trusted header's, and before the body's, which is not needed then.
func TestReadByEnvoy(t *testing.T) {
	for _, test := range []struct {
		name      string
		headers   []string
		envoyRead *EnvoyRead
		needed    bool
		model     string
	}{
		{"the model", nil, &EnvoyRead{Model: "read"}, false, "read"},
		{"a trusted header wins", headers("x-gateway-model-name", "trusted"), &EnvoyRead{Model: "read"}, false, "trusted"},
		{"no model", nil, &EnvoyRead{Input: 200, Most: 50}, true, "body"},
		{"nothing", nil, nil, true, "body"},
	} {
		s := sent{headers: chat(test.headers...), mode: Buffered, envoyRead: test.envoyRead, body: `{"model":"body"}`}
		if q := s.must(t); s.needed != test.needed || q.Model != test.model {
			t.Errorf("%s: needed %v, model %q", test.name, s.needed, q.Model)
		}
	}
}
