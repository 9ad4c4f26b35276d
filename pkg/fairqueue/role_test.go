package fairqueue

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// university has MindRouter's roles.
func university(d Discipline) Config {
	cfg := DefaultConfig()
	cfg.Discipline, cfg.CapacityMode, cfg.TotalCapacity, cfg.FlowCapacity = d, Shared, 100_000, 100_000
	cfg.Roles = map[string]RoleConfig{
		"student": {}, "staff": {Weight: 2 * WeightOne}, "faculty": {Weight: 3 * WeightOne}, "admin": {Weight: 10 * WeightOne},
	}
	return cfg
}

// in returns a request of a user in a role.
func in(role, user string) *Request { return &Request{Flow: user, Cost: 100, Path: &Path{Role: role}} }

// grants pops n requests and counts them by flow.
func grants(q *FairRequestQueue, n int) map[string]int {
	served := map[string]int{}
	for range n {
		served[popNext(q).Flow]++
	}
	return served
}

var byWeight = map[string]Discipline{"wfq": WFQ, "vtc": VTC, "fairshare": FairShare}

// Users who always wait are served by the weights of their roles; one without a role, or with an unknown one, has 1. A
// user's own weight goes before the role's.
func TestServedByRole(t *testing.T) {
	for name, d := range byWeight {
		t.Run(name, func(t *testing.T) {
			cfg := university(d)
			cfg.Weights = map[string]Weight{"dean": 4 * WeightOne}
			q := queue(t, cfg)
			for range 1000 {
				mustPush(t, q, in("student", "sue"))
				mustPush(t, q, in("staff", "tom"))
				mustPush(t, q, in("faculty", "ann"))
				mustPush(t, q, in("admin", "dean"))
				mustPush(t, q, in("guest", "gus"))
				mustPush(t, q, &Request{Flow: "nobody", Cost: 100})
			}
			got := grants(q, 1200)
			for user, want := range map[string]int{"sue": 100, "tom": 200, "ann": 300, "dean": 400, "gus": 100, "nobody": 100} {
				if n := got[user]; n < want-2 || n > want+2 {
					t.Errorf("%s: %d of 1200, want %d", user, n, want)
				}
			}
		})
	}
}

// A flow with requests of two roles gets the lesser share for all of them, whichever comes first, while any of it
// waits: a request lends its weight to no other. Without waiters the flow starts anew.
func TestTwoRolesOfOneFlow(t *testing.T) {
	for name, d := range byWeight {
		for _, order := range [][2]string{{"faculty", "student"}, {"student", "faculty"}} {
			t.Run(fmt.Sprint(name, " ", order), func(t *testing.T) {
				q := queue(t, university(d))
				for i := range 400 {
					mustPush(t, q, in(order[min(i, 1)], "mixed"))
					mustPush(t, q, in("student", "sue"))
				}
				if got := grants(q, 400); got["mixed"] < 198 || got["mixed"] > 202 {
					t.Errorf("%v, want the half", got)
				}
				for r := popNext(q); r != nil; r = popNext(q) {
					q.Completed(r)
				}
				for range 400 {
					mustPush(t, q, in("faculty", "mixed"))
					mustPush(t, q, in("student", "sue"))
				}
				if got := grants(q, 400); got["mixed"] < 297 || got["mixed"] > 303 {
					t.Errorf("%v, want three quarters", got)
				}
			})
		}
	}
}

// A flow that mixes roles gets no more service than with its least role alone, except by requests of a greater role
// while no others of it wait.
func TestMixingRolesGainsNothing(t *testing.T) {
	for name, d := range byWeight {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(20) {
				rng := rand.New(rand.NewPCG(seed, 1))
				q := queue(t, university(d))
				mustPush(t, q, in("student", "mixed"))
				push := func() {
					mustPush(t, q, in([]string{"student", "faculty", "admin"}[rng.IntN(3)], "mixed"))
					mustPush(t, q, in("student", "sue"))
				}
				for range 50 {
					push()
				}
				served := map[string]int{}
				for range 600 {
					push()
					served[popNext(q).Flow]++
				}
				if served["mixed"] > served["sue"]+2 {
					t.Fatalf("seed %d: %v", seed, served)
				}
				mustHold(t, q)
			}
		})
	}
}

// A request that does not wait is charged by its own role, unless its flow's waiting requests have a lesser one.
func TestBypassIsChargedByItsRole(t *testing.T) {
	charged := func(q *FairRequestQueue, role string) VirtualTime {
		r := in(role, "u")
		q.Bypassed(start, r)
		return r.paid.charged
	}
	q := queue(t, university(VTC))
	if admin, student := charged(q, "admin"), charged(q, "student"); admin*10 != student {
		t.Errorf("an admin's is charged %d, a student's %d", admin, student)
	}
	if student, admin := charged(q, "student"), charged(q, "admin"); admin*10 != student {
		t.Errorf("beside a student's in flight an admin's is charged %d, that %d", admin, student)
	}
	mustPush(t, q, in("student", "u"))
	if admin, student := charged(q, "admin"), charged(q, "student"); admin != student {
		t.Errorf("beside a student's that waits: %d and %d", admin, student)
	}
}

// A reload that changes a role's or a user's weight applies to waiting flows.
func TestRolesChange(t *testing.T) {
	for name, d := range byWeight {
		t.Run(name, func(t *testing.T) {
			cfg := university(d)
			q := queue(t, cfg)
			for range 2000 {
				mustPush(t, q, in("faculty", "ann"))
				mustPush(t, q, in("student", "sue"))
			}
			change := func(want int) {
				t.Helper()
				reconfigure(t, q, cfg)
				mustHold(t, q)
				if got := grants(q, 400)["ann"]; got < want-3 || got > want+3 {
					t.Errorf("%d of 400, want %d", got, want)
				}
			}
			cfg.Roles = map[string]RoleConfig{"faculty": {Weight: 7 * WeightOne}}
			change(350)
			cfg.Weights = map[string]Weight{"ann": WeightOne}
			change(200)
			cfg.Weights, cfg.Roles = nil, map[string]RoleConfig{"faculty": {Weight: 3 * WeightOne}}
			change(300)
		})
	}
}

// A full queue takes a place from the flow with the most places over its role's weight.
func TestPlacesByRole(t *testing.T) {
	cfg := university(WFQ)
	cfg.TotalCapacity, cfg.FlowCapacity = 8, 8
	q := queue(t, cfg)
	for range 5 {
		mustPush(t, q, in("faculty", "ann"))
	}
	for range 3 {
		mustPush(t, q, in("student", "sue"))
	}
	for _, c := range []struct{ role, user, gone string }{
		{"faculty", "ann", "sue"}, {"faculty", "ann", ""}, {"student", "sue", ""}, {"student", "new", "ann"}, // as many as sue over her weight, and there first
	} {
		displaced, err := q.Push(start, in(c.role, c.user))
		if (displaced != nil) != (c.gone != "") || displaced != nil && displaced.Flow != c.gone {
			t.Errorf("%s of %s: displaced %v, %v, want %q", c.user, c.role, displaced, err, c.gone)
		}
	}
	// A request of a greater role gets no place for which its flow, with a lesser one among its requests, is too large.
	q = queue(t, cfg)
	for i := range 4 {
		mustPush(t, q, in([]string{"student", "faculty"}[min(i, 1)], "mixed"))
		mustPush(t, q, in("student", "sue"))
	}
	if displaced, err := q.Push(start, in("faculty", "mixed")); displaced != nil || err == nil {
		t.Errorf("a fifth of two roles: displaced %v, %v", displaced, err)
	}
}

// With users under tenants a role is the user's: the tenant's weight stays.
func TestRoleUnderATenant(t *testing.T) {
	cfg := university(WFQ)
	cfg.Levels = 2
	q := queue(t, cfg)
	for range 400 {
		mustPush(t, q, &Request{Flow: "physics", Cost: 100, Path: &Path{Role: "faculty", Under: []string{"ann"}}})
		mustPush(t, q, &Request{Flow: "physics", Cost: 100, Path: &Path{Role: "student", Under: []string{"sue"}}})
		mustPush(t, q, &Request{Flow: "history", Cost: 100, Path: &Path{Role: "student", Under: []string{"hal"}}})
	}
	served := map[string]int{}
	for range 400 {
		served[popNext(q).Path.Under[0]]++
	}
	if a, s, h := served["ann"], served["sue"], served["hal"]; a < 149 || a > 151 || s < 49 || s > 51 || h < 199 || h > 201 {
		t.Errorf("%v, want 150, 50 and 200", served)
	}
	mustHold(t, q)
}

// After a reload, too, the least role of all waiting requests counts where they do not go in the order of their arrival.
func TestLeastRoleOfASortedLine(t *testing.T) {
	for name, d := range byWeight {
		t.Run(name, func(t *testing.T) {
			cfg := university(d)
			cfg.Order = WSPT
			q := queue(t, cfg)
			for i := range 400 {
				mustPush(t, q, in([]string{"faculty", "student"}[min(i, 1)], "mixed"))
				mustPush(t, q, in("student", "sue"))
			}
			reconfigure(t, q, cfg)
			if got := grants(q, 400); got["mixed"] < 198 || got["mixed"] > 202 {
				t.Errorf("%v, want the half", got)
			}
			mustHold(t, q)
		})
	}
}
