package fairqueue

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// roles are MindRouter's weights.
var roles = map[string]Weight{"student": WeightOne, "staff": 2 * WeightOne, "faculty": 3 * WeightOne, "admin": 10 * WeightOne}

// cluster is a queue of discipline FairShare, with a clock.
type cluster struct {
	*FairRequestQueue
	t   testing.TB
	now time.Time
}

// newCluster returns one without limits, whose users have the weights of their roles: the role of "staff-7" is staff.
func newCluster(t testing.TB, change ...func(*Config)) *cluster {
	t.Helper()
	return &cluster{truingUp(t, FairShare, ByArrival, change...), t, start}
}

// users gives these users the weights of their roles.
func users(names ...string) func(*Config) {
	return func(c *Config) {
		c.Weights = map[string]Weight{}
		for _, name := range names {
			role, _, _ := strings.Cut(name, "-")
			if w, ok := roles[role]; ok {
				c.Weights[name] = w
			}
		}
	}
}

// waits queues n requests of a user.
func (c *cluster) waits(user string, cost Cost, n int) {
	c.t.Helper()
	for range n {
		if _, err := c.Push(c.now, &Request{Flow: user, Cost: cost}); err != nil {
			c.t.Fatal(err)
		}
	}
}

// uses makes n requests of a user go and end without waiting.
func (c *cluster) uses(user string, cost Cost, n int) {
	for range n {
		r := &Request{Flow: user, Cost: cost}
		c.Bypassed(c.now, r)
		c.CompletedAt(c.now, r)
	}
}

// grants grants the next n requests, each of which ends at once, and returns their users.
func (c *cluster) grants(n int) (users []string) {
	c.t.Helper()
	for range n {
		r := c.grant()
		users = append(users, r.Flow)
		c.CompletedAt(c.now, r)
	}
	return users
}

// grant grants the next request.
func (c *cluster) grant() *Request {
	c.t.Helper()
	next := c.Peek(c.now, Allowed{Tiers: AllTiers})
	if next.Request == nil {
		c.t.Fatal("nobody goes")
	}
	c.Pop(next)
	return next.Request
}

func (c *cluster) advance(d time.Duration) { c.now = c.now.Add(d) }

// user returns the state of a user.
func (c *cluster) user(name string) UserShare {
	c.t.Helper()
	v, _ := c.Shares(c.now, 1000)
	for _, u := range v.Users {
		if u.Flow == name {
			return u
		}
	}
	c.t.Fatalf("user %q is not known", name)
	return UserShare{}
}

// count returns how often each user is in a list.
func count(users []string) map[string]int {
	n := map[string]int{}
	for _, u := range users {
		n[u]++
	}
	return n
}

// "Faculty 50 %, staff 33 %, student 17 %": of the first 6,000 grants of 100 tokens, while all three always wait.
func TestFairShareThreeToTwoToOne(t *testing.T) {
	c := newCluster(t, users("faculty", "staff", "student"))
	for user := range roles {
		if user != "admin" {
			c.waits(user, 100, 4000)
		}
	}
	served := count(c.grants(6000))
	for user, want := range map[string]int{"faculty": 3000, "staff": 2000, "student": 1000} {
		if got := served[user]; got < want-60 || got > want+60 {
			t.Errorf("%s got %d of 6000, want %d ± 60", user, got, want)
		}
	}
}

// "Allow bursting: a single user can use the full cluster when idle."
func TestFairShareAloneUsesAll(t *testing.T) {
	c := newCluster(t)
	c.uses("alone", 1000, 500) // far above the threshold
	if u := c.user("alone"); u.Recent != 500_000 || u.Factor != millionth {
		t.Errorf("alone: %+v", u)
	}
	c.waits("alone", 1000, 500)
	for _, user := range c.grants(500) {
		if user != "alone" {
			t.Fatal("another one goes")
		}
	}
	if may, _ := c.MayBypass(c.now, &Request{Flow: "alone"}, true); !may {
		t.Error("it may not go at once though nobody waits")
	}
}

// "Heavy user, light user arrives: the student's request gets served quickly": next, whatever it costs, whether the light
// user has been here before, and whoever is more important.
func TestFairShareLightUserIsNext(t *testing.T) {
	for _, cost := range []Cost{1, 10, 100, 1000, 100_000} {
		for _, known := range []bool{false, true} {
			for _, heavy := range []string{"student-1", "faculty-1"} {
				c := newCluster(t, users(heavy, "student"))
				if known {
					c.uses("student", 50, 1)
				}
				c.waits(heavy, 100, 2000)
				c.grants(1000)
				c.advance(5 * time.Second)
				c.waits("student", cost, 1)
				if got := c.grants(1)[0]; got != "student" {
					t.Errorf("cost %d, known %t: %s goes, want the light one", cost, known, got)
				}
			}
		}
	}
}

// The factor at shares of the recent tokens: .6 → .8, .75 → .5, from .95 on .1; none at half and below. An entitled
// share above half raises the threshold to that share.
func TestFairShareFactor(t *testing.T) {
	for _, x := range []struct {
		share     Cost // of 1000
		weight    int64
		threshold int64
		want      int64
	}{
		{0, 1, 0, 1_000_000},
		{100, 1, 0, 1_000_000},
		{500, 1, 0, 1_000_000},
		{510, 1, 0, 980_000},
		{600, 1, 0, 800_000},
		{750, 1, 0, 500_000},
		{949, 1, 0, 102_000},
		{950, 1, 0, 100_000},
		{951, 1, 0, 100_000},
		{999, 1, 0, 100_000},
		{600, 3, 0, 1_000_000},
		{750, 3, 0, 1_000_000},
		{760, 3, 0, 480_000},
		{900, 9, 0, 1_000_000},
		{901, 9, 0, 198_000},
		{700, 1, 700_000, 1_000_000},
		{701, 1, 700_000, 598_000},
		{999, 1, 1_000_000, 1_000_000},
	} {
		c := newCluster(t, func(c *Config) {
			c.Weights = map[string]Weight{"heavy": Weight(x.weight) * WeightOne}
			if x.threshold > 0 {
				c.FairShare.Threshold = x.threshold
			}
		})
		if x.share > 0 {
			c.uses("heavy", x.share, 1)
		}
		c.uses("other", 1000-x.share, 1)
		c.waits("heavy", 10, 1)
		c.waits("other", 10, 1)
		if got := c.user("heavy").Factor; got != x.want {
			t.Errorf("share %d ‰, weight %d, threshold %d: factor %d, want %d", x.share, x.weight, x.threshold, got, x.want)
		}
		if got := c.user("other").Factor; x.share >= 500 && got != millionth {
			t.Errorf("share %d ‰: the other one has factor %d", x.share, got)
		}
	}
	c := newCluster(t) // no recent tokens
	c.waits("a", 10, 1)
	if got := c.user("a"); got.Factor != millionth || got.Recent != 0 {
		t.Errorf("without any use: %+v", got)
	}
}

// A priority above 0 is multiplied by the factor and one below 0 divided, so a factor always lowers it.
func TestFairShareFactorAlwaysLowers(t *testing.T) {
	const virtual = 1 << 40
	for _, of := range []penalty{{kept: 8, in: 10}, {kept: 5, in: 10}, {kept: 1, in: 10}, {kept: 999_999, in: 1_000_000}} {
		f := float64(of.kept) / float64(of.in)
		for _, p := range []float64{-1e9, -5000, -1, 0, 1, 5000, 1e9} { // priority, after the charge for its head
			const cost = 3000
			counter := VirtualTime(int64(virtual - p - cost))
			key := counter + of.raise(virtual, counter, counter+cost)
			want := p * f
			if p < 0 {
				want = p / f
			}
			if got := virtual - float64(key) - cost; math.Abs(got-want) > 1 {
				t.Errorf("factor %.6f: priority %.0f becomes %.0f, want %.0f", f, p, got, want)
			}
			if key.before(counter) {
				t.Errorf("factor %.6f raises priority %.0f", f, p)
			}
		}
	}
	most := penalty{kept: 1, in: 10}
	for _, ahead := range []VirtualTime{0, 1, 1 << 58, largestLead - 1, largestLead} {
		if raise := most.raise(0, ahead, ahead+largestStep); (ahead + raise).before(ahead) || largestLead.before(ahead+raise) {
			t.Errorf("a counter that is %d ahead gets a key that is %d later", ahead, raise)
		}
	}
}

// Recent use is the charge of the last 300 s, to within a thirtieth, at the actual cost.
func TestFairShareWindow(t *testing.T) {
	c := newCluster(t)
	c.uses("a", 500, 1)
	if got := c.user("a").Recent; got != 500 {
		t.Fatalf("%d, want 500", got)
	}
	c.advance(150 * time.Second)
	c.uses("a", 70, 1)
	late := &Request{Flow: "a", Cost: 1000}
	c.Bypassed(c.now, late)
	for _, x := range []struct {
		after time.Duration
		want  int64
	}{{0, 1570}, {139 * time.Second, 1570}, {11 * time.Second, 1070}} {
		if c.advance(x.after); c.user("a").Recent != x.want {
			t.Errorf("%v after: %d, want %d", c.now.Sub(start), c.user("a").Recent, x.want)
		}
	}
	c.TrueUp(c.now, late, 400) // 600 less in the period in which it went
	c.uses("b", 30, 1)
	if v, _ := c.Shares(c.now, 10); c.user("a").Recent != 470 || v.Recent != 500 {
		t.Errorf("%d of %d, want 470 of 500", c.user("a").Recent, v.Recent)
	}
	c.advance(150 * time.Second)
	if v, _ := c.Shares(c.now, 10); v.Recent != 30 {
		t.Errorf("%d, want 30", v.Recent)
	}
	c.TrueUp(c.now, late, 100) // it was recent no more
	c.TrueUp(c.now, late, 150) // and what is more is used now
	if got := c.user("a").Recent; got != 50 {
		t.Errorf("%d, want 50", got)
	}
	c.advance(time.Hour)
	if v, _ := c.Shares(c.now, 10); v.Recent != 0 || c.user("a").Recent != 0 {
		t.Errorf("%d are recent after an hour", v.Recent)
	}
}

// A forgotten flow starts anew: late refunds of it take nothing from other flows.
func TestFairShareForgets(t *testing.T) {
	c := newCluster(t)
	late := &Request{Flow: "a", Cost: 1000}
	c.Bypassed(c.now, late)
	c.CompletedAt(c.now, late)
	for i := range keptFlows {
		c.uses(fmt.Sprint("other-", i), 1, 1)
	}
	c.uses("a", 5, 1)
	c.TrueUp(c.now, late, 1)
	if got := c.user("a").Recent; got != 0 {
		t.Errorf("%d, want nothing less than 0", got)
	}
	if v, _ := c.Shares(c.now, 10); v.Recent < keptFlows || v.Known != keptFlows || len(v.Users) != 10 {
		t.Errorf("%d recent, %d known and %d shown", v.Recent, v.Known, len(v.Users))
	}
}

// The wait bonus is 0.1 per second: a flow that has waited 10 s longer goes before one that is behind by less than a
// token.
func TestFairShareWaitBonus(t *testing.T) {
	for _, x := range []struct {
		bonus  int64 // millionths a second
		waited time.Duration
		ahead  Cost // of the one that has waited
		first  string
	}{
		{100_000, 100 * time.Second, 9, "patient"},
		{100_000, 100 * time.Second, 11, "other"},
		{100_000, 0, 1, "other"},
		{1_000_000, 100 * time.Second, 99, "patient"},
		{1_000_000, 100 * time.Second, 101, "other"},
		{0, 100 * time.Second, 1, "other"},
		{0, 100 * time.Second, 0, "patient"},
	} {
		c := newCluster(t, func(c *Config) {
			c.FairShare.WaitBonus, c.FairShare.Threshold, c.QueueTTL = x.bonus, millionth, time.Hour
		})
		c.waits("other", 1, 1) // both have been served once, the one that waits more
		c.waits("patient", 1, 1)
		r := []*Request{c.grant(), c.grant()}
		c.TrueUp(c.now, r[1], 1+x.ahead)
		c.waits("patient", 1, 1)
		c.advance(x.waited)
		c.waits("other", 1, 1)
		if got := c.grants(1)[0]; got != x.first {
			t.Errorf("bonus %d, %v waited, %d ahead: %s goes, want %s", x.bonus, x.waited, x.ahead, got, x.first)
		}
	}
}

// A changed wait bonus applies to waiting requests.
func TestFairShareBonusChanges(t *testing.T) {
	for _, levels := range []int{1, 2} {
		c := newCluster(t, func(c *Config) { c.FairShare.WaitBonus, c.Levels = 0, levels })
		push := func(user string, cost Cost) {
			mustPushAt(t, c, &Request{Flow: "t" + user[:levels-1], Path: &Path{Under: []string{user}}, Cost: cost})
		}
		if levels == 1 {
			push = func(user string, cost Cost) { mustPushAt(t, c, &Request{Flow: user, Cost: cost}) }
		}
		push("a", 50)
		push("b", 10)
		c.grant()
		c.grant()
		push("a", 10)
		c.advance(20 * time.Second)
		push("b", 10)
		cfg := c.config
		cfg.FairShare.WaitBonus = 100 * millionth
		reconfigure(t, c.FairRequestQueue, cfg)
		mustHold(t, c.FairRequestQueue)
		r := c.grant()
		if first := r.Cost; c.Waited(c.now, r) != 20*time.Second {
			t.Errorf("levels %d: the one that came last goes (%d)", levels, first)
		}
	}
}

func mustPushAt(t testing.TB, c *cluster, r *Request) {
	t.Helper()
	if _, err := c.Push(c.now, r); err != nil {
		t.Fatal(err)
	}
}

// A changed window drops the recent use; all else stays.
func TestFairShareWindowChanges(t *testing.T) {
	c := newCluster(t)
	c.uses("a", 500, 1)
	c.advance(5 * time.Second)
	late := &Request{Flow: "a", Cost: 300}
	c.Bypassed(c.now, late)
	cfg := c.config
	cfg.FairShare.Window = 10 * time.Second
	reconfigure(t, c.FairRequestQueue, cfg)
	v, _ := c.Shares(c.now, 10)
	if v.Recent != 0 || v.Window != 10*time.Second || c.user("a").InFlight != 1 {
		t.Errorf("%d recent in %v, %+v", v.Recent, v.Window, c.user("a"))
	}
	c.TrueUp(c.now, late, 1)
	c.uses("a", 20, 1)
	cfg.QueueTTL++ // all else may change
	reconfigure(t, c.FairRequestQueue, cfg)
	c.advance(9 * time.Second)
	if got := c.user("a").Recent; got != 20 {
		t.Errorf("%d, want 20", got)
	}
	c.advance(time.Second)
	if got := c.user("a").Recent; got != 0 {
		t.Errorf("%d, want 0", got)
	}
}

// Users under a tenant share by the same discipline, whatever Config.Levels is, and the threshold is for tenants.
func TestFairShareUnderTenants(t *testing.T) {
	c := newCluster(t, func(c *Config) { c.Levels = 2 })
	served := map[string]int{}
	for range 1200 {
		for tenant, users := range map[string]int{"one": 1, "many": 9} {
			for u := range users {
				name := fmt.Sprint(tenant, "-", u)
				if served["waits "+name] == 0 {
					served["waits "+name]++
					mustPushAt(t, c, &Request{Flow: tenant, Path: &Path{Under: []string{name}}, Cost: 10, Owner: name})
				}
			}
		}
		r := c.grant()
		c.Completed(r)
		served["waits "+r.Owner.(string)]--
		served[r.Flow]++
	}
	if one := served["one"]; one < 595 || one > 605 {
		t.Errorf("the tenant with one user gets %d of 1200, want half", one)
	}
	mustHold(t, c.FairRequestQueue)
}

// Every setting out of its range is an error that names it, with every discipline, so a file's validity does not depend
// on the discipline.
func TestFairShareConfig(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Discipline, cfg.FairShare = FairShare, FairShareConfig{Window: time.Millisecond, Threshold: 499_999, WaitBonus: -1, BurstRate: -1, BurstCap: MaxCost + 1, BurstDecay: 1_000_001}
	err := cfg.Validate()
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"FairShare.Window: 1ms: must be from 1s to 24h", "FairShare.Threshold: 0.499999: must be from 0.5 to 1",
		"FairShare.WaitBonus: -0.000001: must be from 0 to 1000", "FairShare.BurstDecay: 1.000001: must be from 0 to 1",
		"FairShare.BurstRate: -1: must be from 0 to 1073741824", "FairShare.BurstCap: 1073741825: must be from 0 to 1073741824",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nlacks %s", err, want)
		}
	}
	cfg.Discipline = VTC
	if cfg.Validate() == nil {
		t.Error("vtc permits them")
	}
	cfg.FairShare = FairShareConfig{}
	q := queue(t, cfg)
	if _, ok := q.Shares(start, 10); ok {
		t.Error("vtc has shares")
	}
}
