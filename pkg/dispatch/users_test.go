package dispatch

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// benchOfUsers is a pool of n slots for tenants with users; each user may have one request in flight.
func benchOfUsers(t *testing.T, n int, changes ...func(*Config)) *bench {
	b := newBench(t, []int{n}, func(c *Config) {
		unable(c)
		perBackend(c, n, n)
		c.Queue.Levels = 2
		c.Queue.ByLevel = make([]fairqueue.LevelConfig, 2)
		c.Levels = []LevelCaps{{}, {MaxInFlight: 1}}
		for _, change := range changes {
			change(c)
		}
	})
	b.fleet.scene = &scene{lower: n, upper: n}
	return b
}

// user lets a request of a tenant's user come.
func (b *bench) user(tenant, user string) *Waiter {
	w := new(Waiter)
	b.event(func() {
		b.Arrive(b.clock, w, Arrival{Flow: tenant, Placement: reach(""), Path: &fairqueue.Path{Under: []string{user}}})
	})
	return w
}

// The state of a flow shows its users, and that of a request its own.
func TestStateOfUsers(t *testing.T) {
	b := benchOfUsers(t, 20)
	_, w := b.user("a", "u"), b.user("a", "u")
	s := b.FlowOf(b.clock, w)
	if s.Why != "cap" || s.Users != 1 || s.Capped != 1 {
		t.Errorf("%+v", s)
	}
	if u := s.User; u == nil || *u != (UserState{User: "u", Waiting: 1, InFlight: 1, Weight: 1, Entitled: 1, Capped: true}) {
		t.Errorf("%+v", s.User)
	}
	if all := b.Flows(b.clock, 9); len(all) != 1 || all[0].User != nil || all[0].Capped != 1 {
		t.Errorf("%+v", all)
	}
}

// A request whose TTL ends while its tenant or its user is at a cap names the cap, its value and its holder; any other one names
// the TTL.
func TestCapsAreNamed(t *testing.T) {
	ttl := Limit{Name: LimitQueueTTL, Value: 10_000}
	for name, test := range map[string]struct {
		change func(*Config)
		second string // user of the second request
		want   Limit
	}{
		"user":     {func(*Config) {}, "u", Limit{LimitUserInFlight, 1, []Holder{{Flow: "a", User: "u", Held: 1}}}},
		"flow":     {func(c *Config) { c.Levels[0].MaxInFlight = 1 }, "v", Limit{LimitFlowInFlight, 1, []Holder{{Flow: "a", Held: 1}}}},
		"tokens":   {func(c *Config) { c.Levels[0].MaxTokensInFlight = 3 }, "v", Limit{LimitFlowTokens, 3, []Holder{{Flow: "a", Held: 7}}}},
		"of users": {func(c *Config) { c.Levels[1] = LevelCaps{MaxTokensInFlight: 3} }, "u", Limit{LimitUserTokens, 3, []Holder{{Flow: "a", User: "u", Held: 7}}}},
		"neither":  {func(c *Config) { c.Levels[1].MaxInFlight = 2 }, "v", ttl},
	} {
		t.Run(name, func(t *testing.T) {
			slots := 20
			if test.want.Name == LimitQueueTTL {
				slots = 1
			}
			b := benchOfUsers(t, slots, func(c *Config) { c.Queue.QueueTTL = 10 * time.Second }, test.change)
			ask := func(user string) *Waiter {
				w := new(Waiter)
				b.event(func() {
					b.Arrive(b.clock, w, Arrival{Flow: "a", Path: &fairqueue.Path{Under: []string{user}}, Cost: 1, Tokens: 7, Placement: reach("")})
				})
				return w
			}
			first, second := ask("u"), ask(test.second)
			b.clock = b.clock.Add(time.Minute)
			b.event(func() { b.Advance(b.clock) })
			if first.Stage() != StageSent || second.Outcome() != OutcomeTTLExpired || !reflect.DeepEqual(second.Limit(), &test.want) {
				t.Errorf("%v, %v by %+v, want %+v", first.Stage(), second.Outcome(), second.Limit(), test.want)
			}
		})
	}
}

// A million users of one tenant leave as many accounts as a few.
func TestAccountsOfUsersAreBounded(t *testing.T) {
	b := benchOfUsers(t, 20)
	for i := range 10 * mostResting {
		b.complete(b.user("a", fmt.Sprint(i)))
	}
	if n := len(b.Machine.users.known); n > mostResting || len(b.flows.known) != 1 {
		t.Errorf("%d users and %d tenants are known", n, len(b.flows.known))
	}
	b.nothing("at the end")
}

// Users of two tenants have names of their own, whatever the names are.
func TestNamesOfUsersAreTheirOwn(t *testing.T) {
	m := &Machine{}
	m.config.Queue.Levels = 2
	seen := map[string]string{}
	for _, tenant := range []string{"", "a", "1:a", "a1:", "a1:b", ":"} {
		for _, user := range []string{"", "b", "1:b", "a1:b", ":", "1:"} {
			name := string(m.appendUser(nil, tenant, &fairqueue.Path{Under: []string{user}}))
			if other, known := seen[name]; known {
				t.Errorf("%q/%q is %s, as %s is", tenant, user, name, other)
			}
			seen[name] = tenant + "/" + user
		}
	}
	if a, b := m.appendUser(nil, "a", nil), m.appendUser(nil, "a", &fairqueue.Path{}); string(a) != string(b) {
		t.Errorf("without a path %s, without a user %s", a, b)
	}
}

// Renaming renames the keys of flows, and both names in the key of a user, whatever they consist of; nothing stays nothing.
func TestKeysAreRenamed(t *testing.T) {
	rename := Renaming(func(name string) string { return "<" + name + ">" })
	m := newBench(t, []int{1}, func(c *Config) { c.Queue.Levels = 2 }).Machine
	user := func(tenant, name string) string {
		return string(m.appendUser(nil, tenant, &fairqueue.Path{Under: []string{name}}))
	}
	for key, want := range map[string]string{
		"": "", "team-a": "<team-a>", "3": "<3>", "3:abc": "5:<abc>", "4:abc": "<4:abc>", "03:abc": "<03:abc>", "-1:": "<-1:>", ":": "<:>",
		user("team-a", "bob"): user("<team-a>", "<bob>"), user("1:x", ""): user("<1:x>", ""), user("", ""): user("", ""),
	} {
		if got := rename(key); got != want {
			t.Errorf("%q: %q, want %q", key, got, want)
		}
	}
}
