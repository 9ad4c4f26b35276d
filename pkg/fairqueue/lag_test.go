package fairqueue

import (
	"testing"
	"time"
)

// Deficits are the lag of weighted service. A flow's charge is credited to all active flows by weight, so deficits add
// up to 0. An idle flow gets no credit when it returns, but keeps its debt.
func TestFairShareDeficits(t *testing.T) {
	c := newCluster(t, users("faculty", "staff", "student"))
	want := func(faculty, staff, student int64) {
		t.Helper()
		for user, d := range map[string]int64{"faculty": faculty, "staff": staff, "student": student} {
			if got := c.user(user).Deficit; got < d-1 || got > d+1 {
				t.Errorf("%s has deficit %d, want %d", user, got, d)
			}
		}
	}
	for _, user := range []string{"faculty", "staff", "student"} {
		c.waits(user, 600, 10)
	}
	want(0, 0, 0)
	r := c.grant()
	if r.Flow != "faculty" {
		t.Fatalf("%s goes first", r.Flow)
	}
	want(300-600, 200, 100)
	c.TrueUp(c.now, r, 1200)
	want(600-1200, 400, 200)
	c.TrueUp(c.now, r, 60)
	want(30-60, 20, 10)
	c.Refund(c.now, r)
	c.Completed(r)
	want(0, 0, 0)
	c.grants(21)
	if f, s := c.user("faculty").Deficit, c.user("student").Deficit; f > 600 || f < -600 || s > 600 || s < -600 {
		t.Errorf("after many grants they are owed %d and %d", f, s)
	}
	// It goes away, and comes back.
	c = newCluster(t)
	c.waits("gone", 100, 1)
	c.waits("stays", 100, 50)
	c.grants(31)
	if got := c.user("gone").Deficit; got != 0 {
		t.Errorf("who is away is owed %d", got)
	}
	c.waits("gone", 100, 1)
	if got := c.user("gone").Deficit; got < -100 || got > 1 {
		t.Errorf("who comes back is owed %d", got)
	}
}

// Burst credits grow by 100 a second and weight while no request waits or is in flight, up to 1000, and halve when a
// request starts waiting. Divided by the weights they are equal for all flows.
func TestFairShareBurstCredits(t *testing.T) {
	c := newCluster(t, users("faculty", "student"))
	c.uses("faculty", 100, 1)
	c.uses("student", 100, 1)
	want := func(each int64) {
		t.Helper()
		if f, s := c.user("faculty").BurstCredits, c.user("student").BurstCredits; f != 3*each || s != each {
			t.Errorf("at %v faculty has %d and student %d, want %d for each weight", c.now.Sub(start), f, s, each)
		}
	}
	want(0)
	c.advance(2 * time.Second)
	want(200)
	busy := &Request{Flow: "student", Cost: 10}
	c.Bypassed(c.now, busy)
	c.advance(5 * time.Second)
	want(200) // not idle
	c.CompletedAt(c.now, busy)
	c.advance(30 * time.Second)
	want(1000) // the cap
	c.waits("student", 10, 1)
	want(500)
	c.waits("faculty", 10, 3)
	want(500) // contention has begun already
	c.advance(10 * time.Second)
	want(500)
	c.grants(4)
	c.advance(time.Second)
	want(600)
	c.waits("student", 10, 1)
	c.Remove(c.Peek(c.now, Allowed{Tiers: AllTiers}).Request)
	c.advance(time.Second)
	want(400)
	c.waits("student", 10, 1)
	r := c.grant()
	c.advance(time.Minute)
	want(200) // it runs
	c.CompletedAt(c.now, r)
	c.advance(time.Second)
	want(300)
}

// Deficits stay exact over any number of tokens and for any weights. An absent flow has no credit, and is not above the
// threshold.
func TestFairShareDeficitsRollOver(t *testing.T) {
	c := newCluster(t, func(c *Config) { c.Weights = map[string]Weight{"a": MinWeight, "b": MinWeight} })
	c.waits("a", 10, 1)
	c.waits("b", 10, 1)
	for range 100 {
		for _, user := range []string{"a", "b"} {
			r := &Request{Flow: user, Cost: MaxCost}
			c.Bypassed(c.now, r)
			c.CompletedAt(c.now, r)
		}
	}
	r := &Request{Flow: "a", Cost: 1000}
	c.Bypassed(c.now, r)
	if a, b := c.user("a").Deficit, c.user("b").Deficit; a != -500 || b != 500 {
		t.Errorf("they are owed %d and %d, want −500 and 500", a, b)
	}
	c.uses("b", 3*MaxCost, 1000)
	c.grants(2)
	c.waits("a", 10, 1)
	if b := c.user("b"); b.Factor != millionth || b.Deficit != 0 || b.Recent == 0 {
		t.Errorf("who is away: %+v", b)
	}
}

// A weight that changes at run time counts in the shares of the others, too.
func TestFairShareWeightChanges(t *testing.T) {
	c := newCluster(t)
	c.uses("heavy", 60, 1)
	c.uses("other", 40, 1)
	c.waits("heavy", 10, 1)
	c.waits("other", 10, 1)
	cfg := c.config
	for _, x := range []struct{ other, want int64 }{{4, 800_000}, {1, 1_000_000}, {4, 800_000}} {
		cfg.Weights = map[string]Weight{"other": Weight(x.other) * WeightOne / 4}
		reconfigure(t, c.FairRequestQueue, cfg)
		if got := c.user("heavy").Factor; got != x.want {
			t.Errorf("the other one's weight %d/4: factor %d, want %d", x.other, got, x.want)
		}
		mustHold(t, c.FairRequestQueue)
	}
}
