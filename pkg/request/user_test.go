package request

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// org has tenants with users, by a claim or by a header that the gateway sets.
func org(c *Config) {
	c.FlowKey = nil
	c.Levels = []Level{{Key: []string{"header:x-org", "model"}}, {Key: []string{"metadata:jwt/sub", "header:x-user"}}}
}

// The first source of the second level that has a value names the user, which goes to the queue under the flow of the
// first level. A request without a user has the user "anonymous". A user called so, or with a name too long to keep, is
// known by a hash.
func TestUser(t *testing.T) {
	for _, test := range []struct {
		name  string
		pass  []string
		claim string
		hash  bool
		flow  string
		user  string
	}{
		{"a header", []string{"x-org", "a", "x-user", "u"}, "", false, "a", "u"},
		{"a claim goes before", []string{"x-org", "a", "x-user", "u"}, "v", false, "a", "v"},
		{"nobody", []string{"x-org", "a"}, "", false, "a", Anonymous},
		{"without a tenant", []string{"x-user", "u"}, "", false, Anonymous, "u"},
		{"called anonymous", []string{"x-org", "a"}, Anonymous, false, "a", hashedFlow(Anonymous)},
		{"called like its tenant", []string{"x-org", "a", "x-user", "a"}, "", false, "a", "a"},
		{"too long", []string{"x-org", "a"}, strings.Repeat("u", maxIdentityBytes+1), false, "a", bounded(strings.Repeat("u", maxIdentityBytes+1))},
		{"hashed", []string{"x-org", "a", "x-user", "u"}, "", true, hashedFlow("a"), hashedFlow("u")},
	} {
		s := sent{cfg: DefaultConfig(), headers: chat(test.pass...), context: told{"jwt/sub": test.claim}}
		org(&s.cfg)
		s.cfg.HashFlowKeys = test.hash
		q := s.must(t)
		if q.Flow != test.flow || q.User != test.user || q.Class == nil || !slices.Equal(q.Class.Under, []string{test.user}) {
			t.Errorf("%s: flow %q, user %q, path %+v", test.name, q.Flow, q.User, q.Class)
		}
	}
}

// A request with two headers that name its user is refused: one may be the client's own.
func TestTwoUsersAreRefused(t *testing.T) {
	s := sent{cfg: DefaultConfig(), headers: chat("x-org", "a", "x-user", "u", "x-user", "v")}
	org(&s.cfg)
	if _, err := s.read(); err == nil || !strings.Contains(err.Error(), `"x-user"`) {
		t.Errorf("got %v", err)
	}
}

// One level names flows like FlowKey, and nothing goes to the queue under them.
func TestOneLevel(t *testing.T) {
	s := sent{cfg: DefaultConfig(), headers: chat("x-org", "a", "x-user", "u")}
	org(&s.cfg)
	s.cfg.Levels = s.cfg.Levels[:1]
	if q := s.must(t); q.Flow != "a" || q.User != "" || q.Class != nil {
		t.Errorf("flow %q, user %q, path %+v", q.Flow, q.User, q.Class)
	}
}

// The sources of both levels and of roles have as many headers as a request has places for.
func TestHeadersOfLevels(t *testing.T) {
	headers := func(from, to int) (key []string) {
		for i := from; i < to; i++ {
			key = append(key, fmt.Sprint("header:x-", i))
		}
		return key
	}
	for n, fits := range map[int]bool{maxSources: true, maxSources + 1: false} {
		cfg := DefaultConfig()
		cfg.FlowKey, cfg.Levels = nil, []Level{{Key: headers(0, 8)}, {Key: headers(8, n)}}
		if err := cfg.Validate(); (err == nil) != fits {
			t.Errorf("%d headers: %v", n, err)
		}
		cfg.Levels[1].Key, cfg.RoleSources = headers(8, 12), headers(12, n)
		if err := cfg.Validate(); (err == nil) != fits {
			t.Errorf("%d headers, with roles: %v", n, err)
		}
	}
}
