package request

import (
	"slices"
	"strings"
	"testing"
)

// affine is a chat request with a prompt long enough for blocks.
func affine(a Affinity, more ...string) *sent {
	s := &sent{cfg: DefaultConfig(), headers: chat(more...), mode: Buffered}
	s.body = `{"model":"m","prompt_cache_key":"k1","messages":[{"role":"user","content":"` + strings.Repeat("hello ", 1000) + `"}]}`
	s.cfg.FlowKey, s.cfg.RoutesByModel = []string{"header:x-team"}, false
	if a.Session == "" {
		a.Session = sessionBody
	}
	if a.Scope == "" {
		a.Scope = ScopeAll
	}
	s.cfg.Affinity = a
	return s
}

// Each mode reads only the parts that it compares, and needs the body only for parts in it.
func TestAffinityReads(t *testing.T) {
	for _, test := range []struct {
		name                      string
		affinity                  Affinity
		headers                   []string
		mode                      BodyMode
		body, prompt, session, no bool // the body is read; the blocks, the session is known; neither
	}{
		{"off", Affinity{Mode: AffinityOff}, headers("x-s", "1", "cookie", "s=1"), Buffered, false, false, false, false},
		{"prefix", Affinity{Mode: AffinityPrefix}, nil, Buffered, true, true, false, false},
		{"prefix, in full duplex", Affinity{Mode: AffinityPrefix}, nil, FullDuplex, true, true, false, false},
		{"prefix, and no body", Affinity{Mode: AffinityPrefix}, nil, None, false, false, false, true},
		{"prefix, and no body but a session", Affinity{Mode: AffinityPrefix, Session: "header:x-s"}, headers("x-s", "1"), None, false, false, true, false},
		{"prefix, a body and a session", Affinity{Mode: AffinityPrefix, Session: "header:x-s"}, headers("x-s", "1"), Buffered, true, true, false, false},
		{"a header", Affinity{Mode: AffinitySession, Session: "header:x-s"}, headers("x-s", "1"), Buffered, false, false, true, false},
		{"no such header", Affinity{Mode: AffinitySession, Session: "header:x-s"}, headers("x-t", "1"), Buffered, false, false, false, true},
		{"an empty header", Affinity{Mode: AffinitySession, Session: "header:x-s"}, headers("x-s", ""), Buffered, false, false, false, true},
		{"a cookie", Affinity{Mode: AffinitySession, Session: "cookie:s"}, headers("cookie", "xs=2; s=1;t=3"), Buffered, false, false, true, false},
		{"another cookie", Affinity{Mode: AffinitySession, Session: "cookie:s"}, headers("cookie", "xs=2; ss=1"), Buffered, false, false, false, true},
		{"the body", Affinity{Mode: AffinitySession}, nil, Buffered, true, false, true, false},
		{"no body", Affinity{Mode: AffinitySession}, nil, None, false, false, false, true},
	} {
		s := affine(test.affinity, append(headers("x-team", "a"), test.headers...)...)
		s.mode = test.mode
		q := s.must(t)
		if s.needed != test.body || (len(q.Prompt.Keys) > 0) != test.prompt || (q.Session != 0) != test.session || q.PromptUnknown != test.no {
			t.Errorf("%s: the body was read: %t; %d blocks, session %x, unknown: %t", test.name, s.needed, len(q.Prompt.Keys), q.Session, q.PromptUnknown)
		}
	}
}

// A request without inference has nothing to compare, and requestBody: never is respected.
func TestAffinityAsksNoMore(t *testing.T) {
	for name, change := range map[string]func(*sent){
		"no inference": func(s *sent) { s.headers = headers(":method", "POST", ":path", "/tokenize", "x-team", "a") },
		"a form":       func(s *sent) { s.headers[5], s.body = "multipart/form-data; boundary=b", "--b--\r\n" },
		"never":        func(s *sent) { s.cfg.RequestBody = BodyNever },
	} {
		s := affine(Affinity{Mode: AffinityPrefix}, "x-team", "a")
		change(s)
		if q := s.must(t); s.needed || len(q.Prompt.Keys) > 0 || q.PromptUnknown != (name == "never") {
			t.Errorf("%s: needed %t, %d blocks, unknown: %t", name, s.needed, len(q.Prompt.Keys), q.PromptUnknown)
		}
	}
}

// Keys are equal for one model, one seed and, with scope flow, one flow; otherwise they have nothing in common. So the
// speed at which its prompt is read tells a tenant nothing about others' prompts.
func TestAffinityScope(t *testing.T) {
	for _, mode := range []AffinityMode{AffinityPrefix, AffinitySession} {
		read := func(a Affinity, team, model string) []uint64 {
			a.Mode = mode
			s := affine(a, "x-team", team)
			s.body = strings.Replace(s.body, `"m"`, `"`+model+`"`, 1)
			q := s.must(t)
			return append(q.Prompt.Keys, q.Session)
		}
		base := read(Affinity{}, "a", "m")
		inCommon := func(keys []uint64) (n int) {
			for _, k := range keys {
				if k != 0 && slices.Contains(base, k) {
					n++
				}
			}
			return n
		}
		if n := inCommon(read(Affinity{}, "b", "m")); n == 0 || n != inCommon(base) {
			t.Errorf("%s: %d keys in common between flows", mode, n)
		}
		base = read(Affinity{Scope: ScopeFlow}, "a", "m")
		if n := inCommon(read(Affinity{Scope: ScopeFlow}, "a", "m")); n == 0 || n != inCommon(base) {
			t.Errorf("%s: %d keys in common within a flow", mode, n)
		}
		for name, keys := range map[string][]uint64{
			"another flow": read(Affinity{Scope: ScopeFlow}, "b", "m"), "another model": read(Affinity{Scope: ScopeFlow}, "a", "n"),
			"another seed": read(Affinity{Scope: ScopeFlow, Seed: "s"}, "a", "m"),
		} {
			if n := inCommon(keys); n > 0 {
				t.Errorf("%s, %s: %d keys in common", mode, name, n)
			}
		}
	}
}

// The seed is a secret: no print of the configuration shows it.
func TestAffinitySeedIsNotPrinted(t *testing.T) {
	if s := (Affinity{Mode: AffinityPrefix, Scope: ScopeAll, Session: sessionBody, Seed: "hush"}).String(); strings.Contains(s, "hush") {
		t.Error(s)
	}
}
