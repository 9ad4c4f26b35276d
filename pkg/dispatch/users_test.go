package dispatch

import (
	"fmt"
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/quota"
	"github.com/weir-epp/weir/pkg/stock"
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
func (b *bench) user(tenant, user string, tier int) *Waiter {
	return b.inRole("", tenant, user, tier)
}

func (b *bench) inRole(role, tenant, user string, tier int) *Waiter {
	w := new(Waiter)
	b.event(func() {
		b.Arrive(b.clock, w, Arrival{
			Flow: tenant, Tenant: tenant, Uses: 10, Tier: tier, Placement: reach(""), Path: &fairqueue.Path{Role: role, Under: []string{user}},
		})
	})
	return w
}

// users lets n requests of a tenant's user come, of all tiers.
func (b *bench) users(tenant, user string, n int) (all []*Waiter) {
	for i := range n {
		all = append(all, b.user(tenant, user, i%3))
	}
	return all
}

// inOrder completes the requests in flight until all have gone, with at most so many at a time.
func (b *bench) inOrder(all []*Waiter, most int) {
	b.t.Helper()
	for left := len(all); left > 0; left-- {
		if n := inFlight(all); n != min(most, left) {
			b.t.Fatalf("%d of %d in flight, want %d", n, left, min(most, left))
		}
		for _, w := range all {
			if w.Stage() == StageSent || w.Stage() == StageGranted {
				b.complete(w)
				break
			}
		}
	}
}

// A user has as many requests in flight as it may, in all tiers together. Neither the other users of its tenant nor other
// tenants wait for it, nor does an arrival: as one of its requests ends, its next goes.
func TestCapOfAUserBlocksNobody(t *testing.T) {
	b := benchOfUsers(t, 20)
	noisy := b.users("a", "noisy", 9)
	for _, c := range []struct{ tenant, user string }{{"a", "quiet"}, {"a", ""}, {"b", "noisy"}, {"b", "quiet"}} {
		w := b.user(c.tenant, c.user, 2)
		b.want(w, StageSent)
		b.complete(w)
	}
	b.inOrder(noisy, 1)
	b.nothing("at the end")
}

// The cap of a tenant counts all its users, and blocks all of them.
func TestCapOfATenantBlocksItsUsers(t *testing.T) {
	for name, cap := range map[string]func(*Config){
		"of all":       func(c *Config) { c.MaxInFlightPerFlow = 3 },
		"of the level": func(c *Config) { c.MaxInFlightPerFlow, c.Levels[0].MaxInFlight = 9, 3 },
		"per backend":  func(c *Config) { c.MaxInFlightPerFlowPerBackend = 3 },
	} {
		t.Run(name, func(t *testing.T) {
			b := benchOfUsers(t, 20, cap)
			var all []*Waiter
			for user := range 6 {
				all = append(all, b.users("a", fmt.Sprint(user), 3)...)
			}
			if n := inFlight(all); n != 3 {
				t.Errorf("%d in flight, want 3", n)
			}
			if w := b.user("a", "new", 0); w.Stage() != StageWaiting {
				t.Errorf("a new user of a tenant at its cap: stage %d", w.Stage())
			} else {
				all = append(all, w)
			}
			other := b.user("b", "u", 2)
			b.want(other, StageSent)
			b.complete(other)
			left := len(all)
			for range 4 * left {
				for _, w := range all {
					if w.Stage() == StageSent || w.Stage() == StageGranted {
						b.complete(w)
						left--
						break
					}
				}
				if n := inFlight(all); n > 3 || n == 0 && left > 0 {
					t.Fatalf("%d of %d in flight", n, left)
				}
			}
			b.nothing("at the end")
		})
	}
}

// A user's cap in tokens counts what its requests turn out to have.
func TestTokensOfAUser(t *testing.T) {
	b := benchOfUsers(t, 20, func(c *Config) { c.Levels[1] = LevelCaps{MaxTokensInFlight: 50} })
	b.unsized()
	first := b.user("a", "u", 0)
	b.event(func() { b.Raise(b.clock, first.Granted(), 60, 60) })
	second := b.user("a", "u", 0)
	b.want(second, StageWaiting)
	b.want(b.user("a", "v", 0), StageSent)
	b.event(func() { b.TrueUp(b.clock, first.Granted(), 40, 40) })
	b.want(second, StageGranted)
}

// A request at its user's cap, whose tier may preempt, takes over a lease of the same user, of no other one of its tenant.
func TestUserAtItsCapPreemptsItsOwn(t *testing.T) {
	for name, capped := range map[string]func(*Config){
		"":                        func(*Config) {},
		"its tenant at a cap too": func(c *Config) { c.MaxInFlightPerFlow = 2 },
	} {
		t.Run(name, func(t *testing.T) {
			b := benchOfUsers(t, 20, func(c *Config) { c.Tiers[0].CanPreempt = true }, capped)
			own := b.user("a", "u", 2)
			others := b.user("a", "v", 2) // newer
			urgent := b.user("a", "u", 0)
			b.want(urgent, StageSent)
			b.want(own, StageEnded)
			b.want(others, StageSent)
			if own.Outcome() != OutcomePreempted {
				t.Errorf("%v", own.Outcome())
			}
			second := b.user("a", "u", 0)
			b.want(second, StageWaiting)
			b.complete(urgent)
			b.want(second, StageGranted)
			b.complete(second)
			b.complete(others)
			b.nothing("at the end")
		})
	}
}

// It does so also as a waiter, when its user's lease becomes a possible victim: here it was kept by a pool over its capacity.
func TestWaitingUserPreemptsItsOwn(t *testing.T) {
	b := benchOfUsers(t, 2, func(c *Config) { c.Tiers[0].CanPreempt = true })
	own, other := b.user("a", "u", 2), b.user("b", "u", 0)
	b.fleet.scene = &scene{lower: 1, upper: 1}
	shrink := b.Config()
	perBackend(&shrink, 1, 1)
	b.event(func() { b.SetBackends(b.clock, []stock.Backend{{ID: 0, Slots: 1}}, nil) })
	urgent := b.user("a", "u", 0)
	b.want(urgent, StageWaiting)
	b.complete(other)
	b.want(urgent, StageGranted)
	if own.Outcome() != OutcomePreempted {
		t.Errorf("%v", own.Outcome())
	}
}

// A role's cap is that of each user; the tenant's is another one.
func TestCapsOfUsersByRole(t *testing.T) {
	b := benchOfUsers(t, 20, func(c *Config) { c.Roles = map[string]RoleConfig{"admin": {MaxInFlight: 4}, "staff": {}} })
	for _, c := range []struct {
		role string
		want int
	}{{"admin", 4}, {"staff", 1}, {"", 1}} {
		var all []*Waiter
		for i := range 8 {
			all = append(all, b.inRole(c.role, "a", "user of "+c.role, i%3))
		}
		b.inOrder(all, c.want)
	}
	b.nothing("at the end")
}

// A reload changes the caps of users for those who wait, begins and ends them.
func TestCapsOfUsersChange(t *testing.T) {
	b := benchOfUsers(t, 20)
	all := b.users("a", "u", 12)
	for _, c := range []struct{ cap, want int }{{1, 1}, {4, 4}, {2, 4}, {0, 12}} {
		cfg := b.Config()
		cfg.Levels = []LevelCaps{{}, {MaxInFlight: c.cap}}
		b.configures(cfg)
		if n := inFlight(all); n != c.want {
			t.Errorf("with a cap of %d: %d in flight, want %d", c.cap, n, c.want)
		}
	}
	for _, w := range all {
		b.complete(w)
	}
	b.nothing("at the end")
}

// A role's quota is that of each user of its tenant, alone; a tenant's own is for all its users together.
func TestQuotaOfUsers(t *testing.T) {
	b := benchOfUsers(t, 20, func(c *Config) {
		c.Levels = nil
		c.Quotas.Roles = map[string]quota.Limit{"student": {Tokens: 20, Window: time.Minute}}
		c.Quotas.Tenants = map[string]quota.Limit{"whole": {Tokens: 30, Window: time.Minute}}
	})
	for _, c := range []struct {
		tenant, user string
		want         int
	}{{"a", "u", 2}, {"a", "v", 2}, {"a", "u", 0}, {"b", "u", 2}, {"whole", "u", 3}, {"whole", "v", 0}} {
		served := 0
		for served < 5 && b.inRole("student", c.tenant, c.user, 0).Outcome() != OutcomeQuotaExceeded {
			served++
		}
		if served != c.want {
			t.Errorf("%s/%s: %d served, want %d", c.tenant, c.user, served, c.want)
		}
	}
}

// A user whose queue is full is told when its own queue has a place, whatever others of its tenant wait for.
func TestRetryAfterOfAFullUser(t *testing.T) {
	b := benchOfUsers(t, 20, func(c *Config) { c.Queue.ByLevel[1].Capacity = 2 })
	all := []*Waiter{b.user("a", "u", 0), b.user("a", "u", 0), b.user("a", "u", 0)}
	full := b.user("a", "u", 0)
	if full.Outcome() != OutcomeFlowFull || full.RetryAfter() < time.Second || full.RetryAfter() > 5*time.Second {
		t.Errorf("%v, retry after %v", full.Outcome(), full.RetryAfter())
	}
	others := []*Waiter{b.user("a", "v", 0), b.user("a", "v", 0), b.user("a", "v", 0)} // they have queues of their own
	if n := inFlight(append(all, others...)); n != 2 || b.Waiting() != 4 {
		t.Errorf("%d in flight, %d wait", n, b.Waiting())
	}
}

// When the last endpoint goes and nobody is to be held, those go who wait for their user's cap as well.
func TestCappedUsersDoNotOutliveThePool(t *testing.T) {
	b := benchOfUsers(t, 20, func(c *Config) { c.HoldWhenEmpty = false })
	all := append(b.users("a", "u", 6), b.users("b", "v", 3)...)
	b.fleet.set([]int{0})
	b.event(func() { b.SetBackends(b.clock, nil, nil) })
	ended := 0
	for _, w := range all {
		if w.Outcome() == OutcomeNoEndpoint && w.Stage() == StageEnded {
			ended++
		}
	}
	if ended != 7 || b.Waiting() != 0 {
		t.Errorf("%d have ended, %d wait", ended, b.Waiting())
	}
}

// The state of a flow shows its users, and that of a request its own.
func TestStateOfUsers(t *testing.T) {
	b := benchOfUsers(t, 20)
	_, w := b.user("a", "u", 0), b.user("a", "u", 0)
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

// A million users of one tenant leave as many accounts as a few.
func TestAccountsOfUsersAreBounded(t *testing.T) {
	b := benchOfUsers(t, 20)
	for i := range 10 * mostResting {
		b.complete(b.user("a", fmt.Sprint(i), 0))
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
