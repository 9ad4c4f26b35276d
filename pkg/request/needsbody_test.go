package request

import "testing"

// The body is needed if and only if a part of it is, and Envoy shows it before the destination is named.
func TestNeedsBody(t *testing.T) {
	fair := func(c *Config) { c.FlowKey, c.RoutesByModel = []string{"header:x-team", "model"}, false }
	rewrite := func(c *Config) { c.Models = []Model{{Name: "m", Targets: []Target{{Name: "m-v1", Weight: 1}}}} }
	policy := func(p BodyPolicy) func(*Config) { return func(c *Config) { c.RequestBody = p } }
	routed := func(c *Config) { c.RoutesByModel = true }
	type changes []func(*Config)
	for _, test := range []struct {
		name    string
		changes changes
		headers []string
		want    bool
	}{
		{"the flow is the model", nil, nil, true},
		{"the model is in the trusted header", nil, headers("x-gateway-model-name", "m"), false},
		{"the flow is in a header, routing needs no model", changes{fair}, headers("x-team", "a"), false},
		{"the flow's header is missing: by model", changes{fair}, nil, true},
		{"routing needs the model", changes{fair, routed}, headers("x-team", "a"), true},
		{"a rewrite needs the body", changes{rewrite}, headers("x-gateway-model-name", "m"), true},
		{"a rewrite of all models", changes{fair, toOther}, headers("x-team", "a"), true},
		{"no rewrite of this model", changes{rewrite}, headers("x-gateway-model-name", "other"), false},
		{"always", changes{fair, policy(BodyAlways)}, headers("x-team", "a"), true},
		{"never", changes{policy(BodyNever)}, nil, false},
		{"not JSON", changes{policy(BodyAlways)}, headers("content-type", "multipart/form-data"), true},
		{"the flow of all without a tenant", changes{fair, func(c *Config) { c.Anonymous = AnonymousShared }}, nil, false},
		{"an upgrade has no body", changes{policy(BodyAlways)}, headers("upgrade", "websocket"), false},
		{"a cheap path passes on", changes{policy(BodyAlways), func(c *Config) { c.PassOnPaths = []string{"/prefix/v1/completions"} }}, nil, false},
	} {
		s := sent{cfg: DefaultConfig(), headers: append(headers(":method", "POST", ":path", "/prefix/v1/completions?x=y"), test.headers...)}
		for _, change := range test.changes {
			change(&s.cfg)
		}
		for mode, shown := range map[BodyMode]bool{None: false, Streamed: false, Buffered: true, Partial: true} {
			s.mode, s.body = mode, `{"model":"m"}`
			q, _ := s.read()
			if s.needed != (test.want && shown) {
				t.Errorf("%s, %s: needed %v", test.name, mode, s.needed)
			}
			if q.BodyHidden != (test.want && !shown) {
				t.Errorf("%s, %s: hidden %v", test.name, mode, q.BodyHidden)
			}
		}
		if s.end = true; test.want {
			if s.read(); s.needed {
				t.Errorf("%s: needed of a request that ends with its headers", test.name)
			}
		}
	}
}

// In FULL_DUPLEX_STREAMED the body comes anyway, and is read unless the policy forbids it.
func TestFullDuplexReadsBodies(t *testing.T) {
	for policy, want := range map[BodyPolicy]bool{BodyAuto: true, BodyAlways: true, BodyNever: false} {
		s := sent{cfg: DefaultConfig(), headers: chat("x-gateway-model-name", "m"), mode: FullDuplex, body: "{}"}
		s.cfg.RequestBody = policy
		if s.must(t); s.needed != want {
			t.Errorf("%s: needed %v", policy, s.needed)
		}
	}
}

// The body is needed to ask for the usage of a stream on behalf of its client, where that can be taken out again.
func TestAskingForUsageNeedsTheBody(t *testing.T) {
	const stream, plain = `{"model":"m","stream":true}`, `{"model":"m"}`
	for _, test := range []struct {
		name, path, body string
		mode             BodyMode
		ask              bool
		envoyRead        *EnvoyRead
		needed, asks     bool
	}{
		{"a stream", "/v1/chat/completions", stream, Buffered, true, nil, true, true},
		{"of completions", "/v1/completions", stream, Buffered, true, nil, true, true},
		{"not to be asked", "/v1/chat/completions", stream, Buffered, false, nil, false, false},
		{"no stream", "/v1/chat/completions", plain, Buffered, true, nil, true, false},
		{"no stream, says Envoy", "/v1/chat/completions", stream, Buffered, true, &EnvoyRead{Model: "m"}, false, false},
		{"a stream, says Envoy", "/v1/chat/completions", stream, Buffered, true, &EnvoyRead{Model: "m", Streams: true}, true, true},
		{"another API", "/v1/messages", stream, Buffered, true, nil, false, false},
		{"responses report it always", "/v1/responses", stream, Buffered, true, nil, false, false},
		{"a body that is hidden", "/v1/chat/completions", stream, Streamed, true, nil, false, false},
	} {
		s := sent{headers: headers(":method", "POST", ":path", test.path, "x-gateway-model-name", "m"), mode: test.mode, askUsage: test.ask, envoyRead: test.envoyRead, body: test.body}
		if q := s.must(t); s.needed != test.needed || q.AsksUsage != test.asks {
			t.Errorf("%s: needed %v, asks %v", test.name, s.needed, q.AsksUsage)
		}
	}
}
