package dispatch

import (
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/quota"
)

// as lets a request of a tenant in a role come.
func (b *bench) as(role, tenant string, tier int) *Waiter {
	w := new(Waiter)
	b.event(func() {
		b.Arrive(b.clock, w, Arrival{
			Flow: tenant, Tenant: tenant, Uses: 10, Tier: tier, Placement: reach(""), Path: &fairqueue.Path{Role: role},
		})
	})
	return w
}

// inFlight counts requests in flight.
func inFlight(all []*Waiter) (n int) {
	for _, w := range all {
		if w.Stage() == StageSent || w.Stage() == StageGranted {
			n++
		}
	}
	return n
}

// capsByRole lets each tenant have 3 in flight, a student 1, an admin 5.
func capsByRole(c *Config) {
	unable(c)
	perBackend(c, 20, 20)
	c.MaxInFlightPerFlow = 3
	c.Roles = map[string]RoleConfig{"student": {MaxInFlight: 1}, "staff": {}, "admin": {MaxInFlight: 5}}
}

func benchOfRoles(t *testing.T, change func(*Config)) *bench {
	b := newBench(t, []int{20}, change)
	b.fleet.scene = &scene{lower: 20, upper: 20}
	return b
}

// A tenant has as many requests in flight as its role may, in all tiers together; without a cap of the role as many as every
// tenant. As one ends, the next goes.
func TestCapsByRole(t *testing.T) {
	b := benchOfRoles(t, capsByRole)
	for _, c := range []struct {
		role string
		want int
	}{{"student", 1}, {"staff", 3}, {"admin", 5}, {"", 3}, {"unknown", 3}} {
		var all []*Waiter
		for i := range 8 {
			all = append(all, b.as(c.role, "tenant of "+c.role, i%3))
		}
		if n := inFlight(all); n != c.want {
			t.Errorf("%s: %d in flight, want %d", c.role, n, c.want)
		}
		for len(all) > 0 {
			for i, w := range all {
				if w.Stage() != StageWaiting {
					b.complete(w)
					all = append(all[:i:i], all[i+1:]...)
					break
				}
			}
			if n := inFlight(all); n != min(c.want, len(all)) {
				t.Fatalf("%s: %d of %d in flight", c.role, n, len(all))
			}
		}
	}
	b.nothing("at the end")
}

// A tenant whose requests have two roles has the lesser cap, whichever comes first, until it has nothing here any more.
func TestCapOfTwoRoles(t *testing.T) {
	for _, roles := range [][2]string{{"student", "admin"}, {"admin", "student"}} {
		b := benchOfRoles(t, capsByRole)
		var all []*Waiter
		for i := range 8 {
			all = append(all, b.as(roles[min(i, 1)], "mixed", 0))
		}
		if n := inFlight(all); n != 1 {
			t.Errorf("%v: %d in flight", roles, n)
		}
		for range all {
			for _, w := range all {
				if w.Stage() == StageSent || w.Stage() == StageGranted {
					b.complete(w)
				}
			}
		}
		all = nil
		for range 8 {
			all = append(all, b.as("admin", "mixed", 0))
		}
		if n := inFlight(all); n != 5 {
			t.Errorf("%v: %d in flight of an admin alone", roles, n)
		}
	}
}

// A reload changes the caps of roles for who waits.
func TestCapsByRoleChange(t *testing.T) {
	b := benchOfRoles(t, capsByRole)
	var all []*Waiter
	for range 8 {
		all = append(all, b.as("student", "sue", 0))
	}
	for _, c := range []struct{ cap, want int }{{4, 4}, {0, 4}, {6, 6}} {
		cfg := b.Config()
		cfg.Roles = map[string]RoleConfig{"student": {MaxInFlight: c.cap}}
		b.event(func() { _ = b.Configure(b.clock, cfg) })
		if n := inFlight(all); n != c.want {
			t.Errorf("with a cap of %d: %d in flight, want %d", c.cap, n, c.want)
		}
	}
}

// A reload that turns round which of a tenant's roles has the least cap gives it the least of the new ones, also if the request
// that came with that role has gone.
func TestLeastRoleTurnsRound(t *testing.T) {
	b := benchOfRoles(t, capsByRole)
	all := []*Waiter{b.as("student", "mixed", 0)}
	gone := b.as("admin", "mixed", 0)
	for range 8 {
		all = append(all, b.as("student", "mixed", 0))
	}
	b.want(gone, StageWaiting)
	b.event(func() { b.Cancel(b.clock, gone, OutcomeClientCancelled) })
	for _, c := range []struct{ student, admin, want int }{{6, 2, 2}, {3, 5, 3}, {0, 4, 3}, {0, 0, 3}, {7, 5, 5}} {
		cfg := b.Config()
		cfg.Roles = map[string]RoleConfig{"student": {MaxInFlight: c.student}, "admin": {MaxInFlight: c.admin}}
		b.event(func() { _ = b.Configure(b.clock, cfg) })
		if n := inFlight(all); n != c.want {
			t.Errorf("%+v: %d in flight", c, n)
		}
	}
}

// Each tenant of a role has the role's quota alone; one with a quota of its own has that.
func TestQuotaByRole(t *testing.T) {
	b := benchOfRoles(t, func(c *Config) {
		perBackend(c, 20, 20)
		c.Quotas.Roles = map[string]quota.Limit{"student": {Tokens: 20, Window: time.Minute}}
		c.Quotas.Tenants = map[string]quota.Limit{"tom": {Tokens: 30, Window: time.Minute}}
	})
	for _, c := range []struct {
		role, tenant string
	}{{"student", "sue"}, {"student", "sam"}, {"student", "tom"}, {"staff", "tom"}, {"staff", "ann"}} {
		served := 0
		for b.as(c.role, c.tenant, 0).Outcome() != OutcomeQuotaExceeded && served < 4 {
			served++
		}
		want := map[string]int{"sue": 2, "sam": 2, "tom": 3, "ann": 4}[c.tenant]
		if c.role == "staff" && c.tenant == "tom" {
			want = 0 // it is his own, and used up
		}
		if served != want {
			t.Errorf("%s, a %s: %d served, want %d", c.tenant, c.role, served, want)
		}
	}
}
