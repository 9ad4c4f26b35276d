package fairqueue

import (
	"fmt"
	"testing"
	"time"
)

// The defects of MindRouter's scheduler, which this one must not have: one test each.

// A user with 25,000 recent tokens beats one with 1,200, because a floor of −10,000 and a factor of 0.1 make −1,000 of the
// one's deficit and nothing of the other's −1,200. Here the light user goes first, in whatever order they have used their
// tokens and come, with requests of the sizes that they have used.
func TestDefect1Inversion(t *testing.T) {
	use := map[string]func(c *cluster){
		"heavy, then light": func(c *cluster) { c.uses("heavy", 1000, 25); c.uses("light", 100, 12) },
		"light, then heavy": func(c *cluster) { c.uses("light", 100, 12); c.uses("heavy", 1000, 25) },
		"by turns": func(c *cluster) {
			for range 12 {
				c.uses("heavy", 1000, 2)
				c.uses("light", 100, 1)
			}
			c.uses("heavy", 1000, 1)
		},
		"at once": func(c *cluster) { c.uses("heavy", 25_000, 1); c.uses("light", 1200, 1) },
	}
	for name, uses := range use {
		for _, cost := range []Cost{100, 1000} {
			for _, first := range []string{"heavy", "light"} {
				c := newCluster(t)
				uses(c)
				c.advance(time.Second)
				other := map[string]string{"heavy": "light", "light": "heavy"}[first]
				c.waits(first, cost, 2)
				c.waits(other, cost, 2)
				if got := c.grants(1)[0]; got != "light" {
					t.Errorf("%s, requests of %d, %s comes first: %s goes", name, cost, first, got)
				}
			}
		}
	}
}

// Weights vanish when deficits are rebalanced: 2007/2000/1993 instead of 3000/2000/1000. Here they count, also when others
// come and go all the time.
func TestDefect2WeightsVanish(t *testing.T) {
	c := newCluster(t, users("faculty", "staff", "student", "student-x"))
	served := map[string]int{}
	for i := range 7000 {
		for _, user := range []string{"faculty", "staff", "student"} {
			if n := 20 - waiting(c.FairRequestQueue, user); n > 0 {
				c.waits(user, 100, n)
			}
		}
		if i%7 == 0 {
			c.waits(fmt.Sprint("guest-", i%5), 100, 1)
		}
		r := c.grant()
		served[r.Flow]++
		c.CompletedAt(c.now, r)
		c.advance(50 * time.Millisecond)
	}
	sum := served["faculty"] + served["staff"] + served["student"]
	for user, share := range map[string]int{"faculty": 3, "staff": 2, "student": 1} {
		if got, want := served[user], sum*share/6; got < want-60 || got > want+60 {
			t.Errorf("%s got %d of %d, want %d ± 60", user, got, sum, want)
		}
	}
}

// When all users are at the floor of their deficits, the bonus of a moment's waiting chooses one user for ever. Here there
// is no floor: users who have all used very much share evenly.
func TestDefect3FloorLockIn(t *testing.T) {
	c := newCluster(t)
	names := []string{"a", "b", "c"}
	for i, user := range names {
		c.uses(user, 1000, 1000+i)
	}
	for i, user := range names {
		c.waits(user, 1000, 200)
		c.advance(time.Duration(i) * time.Millisecond) // one has waited a little longer
	}
	served := count(c.grants(300))
	for _, user := range names {
		if n := served[user]; n < 98 || n > 102 {
			t.Errorf("%s got %d of 300, want 100", user, n)
		}
	}
}

// Idle time gives burst credits that are divided by the weight: after 30 s faculty has a priority of 333 and a student of
// 1000. Here credits are the same over the weights, and the weights keep their order.
func TestDefect4PositiveDeficitInvertsWeights(t *testing.T) {
	c := newCluster(t, users("faculty", "student"))
	c.uses("faculty", 100, 1)
	c.uses("student", 100, 1)
	c.advance(30 * time.Second)
	if f, s := c.user("faculty"), c.user("student"); f.BurstCredits != 3000 || s.BurstCredits != 1000 {
		t.Errorf("after 30 s idle, faculty has %d and student %d credits", f.BurstCredits, s.BurstCredits)
	}
	c.waits("student", 100, 100)
	c.waits("faculty", 100, 100)
	served := count(c.grants(80))
	if f := served["faculty"]; f < 58 || f > 62 {
		t.Errorf("faculty got %d of 80 with three times the weight, want 60", f)
	}
}

// A new user has no credit, so idle users go first. Here a new user goes when a known idle one would, beside a heavy
// user and beside many.
func TestDefect5NewcomerPenalty(t *testing.T) {
	position := func(user string, others int, cost Cost) int {
		c := newCluster(t)
		c.uses("known", 100, 1)
		for i := range others {
			c.uses(fmt.Sprint("other-", i), 100, 1)
			c.waits(fmt.Sprint("other-", i), 100, 200)
		}
		c.advance(30 * time.Second)
		c.grants(50)
		c.waits(user, cost, 1)
		for n := 0; ; n++ {
			if c.grants(1)[0] == user {
				return n
			}
		}
	}
	for _, others := range []int{1, 2, 3, 10} {
		for _, cost := range []Cost{10, 100, 5000} {
			known, unknown := position("known", others, cost), position("new", others, cost)
			if unknown != known || unknown > others {
				t.Errorf("beside %d others with a request of %d: %d go before a new user and %d before a known one", others, cost, unknown, known)
			}
		}
	}
	// All come at once, after everybody else was idle.
	c := newCluster(t)
	for i := range 5 {
		c.uses(fmt.Sprint("known-", i), 100, 1)
	}
	c.advance(time.Minute)
	for i := range 5 {
		c.waits(fmt.Sprint("known-", i), 100, 10)
	}
	c.waits("new", 100, 10)
	if served := count(c.grants(6)); served["new"] != 1 {
		t.Errorf("the new user gets %d of the first 6 grants among 6, want 1", served["new"])
	}
}

// The wait bonus of 0.1 a second is negligible beside thousands of tokens: a user of 10,000 tokens waits for hours
// while others keep arriving. Here that user goes at the latest when others have had as much, and later users are not
// served first forever.
func TestDefect6Starvation(t *testing.T) {
	for _, bonus := range []int64{0, 100_000} {
		for _, tieBreak := range tieBreaks {
			c := newCluster(t, func(c *Config) { c.FairShare.WaitBonus, c.TieBreak = bonus, tieBreak })
			c.uses("debtor", 10_000, 1)
			c.waits("debtor", 100, 1)
			for n := 0; ; n++ {
				c.waits(fmt.Sprint("user-", n), 100, 1) // a new one for each that goes
				if c.grants(1)[0] == "debtor" {
					break
				}
				if n > 102 {
					t.Errorf("bonus %d, tie-break %d: %d requests of others have gone before one that is 10,000 tokens ahead", bonus, tieBreak, n)
					break
				}
				c.advance(100 * time.Millisecond)
			}
		}
	}
}

// Jobs that fail are never charged, and active requests never counted. Here each is charged when it goes, corrected to what
// it used when it fails, and counted while it runs.
func TestDefect7FailedJobsAreCharged(t *testing.T) {
	c := newCluster(t)
	c.waits("fails", 1000, 3)
	c.waits("works", 1000, 3)
	r := c.grant()
	want := func(recent int64, inFlight int) {
		t.Helper()
		if u := c.user("fails"); u.Recent != recent || u.InFlight != inFlight {
			t.Errorf("%d recent tokens and %d active, want %d and %d", u.Recent, u.InFlight, recent, inFlight)
		}
	}
	want(1000, 1)
	c.TrueUp(c.now, r, 300) // its prompt was read
	c.CompletedAt(c.now, r)
	want(300, 0)
	if got := c.grants(1)[0]; got != "works" {
		t.Errorf("%s goes, want the one that has had nothing", got)
	}
	r = c.grant() // 300 are less than 1000
	want(1300, 1)
	c.Refund(c.now, r) // it came to nothing
	c.CompletedAt(c.now, r)
	want(300, 0)
	r = c.grant()
	if r.Flow != "fails" {
		t.Errorf("%s goes, want the one that was refunded", r.Flow)
	}
	c.Requeue(r)
	want(300, 0)
}

// A request that no backend can ever serve waits as if for capacity. The queue holds nobody back for it: its lane is dead, so
// all others go, and it does not keep arrivals from going at once. (TestDefect8PermanentMismatch, on the wire, has the
// answer that its client gets.)
func TestDefect8MismatchHoldsNobodyBack(t *testing.T) {
	c := newCluster(t)
	mustPushAt(t, c, &Request{Flow: "mismatch", Lane: "no such model", Cost: 100})
	c.waits("other", 100, 2)
	r := c.Peek(c.now, Allowed{Tiers: AllTiers}).Request
	if r.Flow != "mismatch" {
		t.Fatal("the first is not the first")
	}
	c.CloseLane(r, LaneDead)
	if got := c.grants(2); got[0] != "other" || got[1] != "other" {
		t.Errorf("%v go", got)
	}
	if may, _ := c.MayBypass(c.now, &Request{Flow: "other"}, true); !may {
		t.Error("an arrival waits behind what cannot go")
	}
}

// Maintenance visits every user for every job. Here a grant computes no more keys with 10,000 users than with 10: only
// those of the user that goes, and of the one above the threshold.
func TestDefect9QuadraticMaintenance(t *testing.T) {
	visits := func(n int) (tags int) {
		c := newCluster(t)
		counted := &countingTags{fairShare: fairShare{vtc{free: true}}}
		c.top.classes[0].discipline = counted
		for i := range n {
			c.waits(fmt.Sprint("user-", i), 100, 1)
		}
		c.waits("heavy", 100, 20)
		c.uses("heavy", 100_000, 1)
		for counted.tags = 0; len(c.grants(1)) > 0 && tags < 100; tags++ {
		}
		return counted.tags
	}
	few, many := visits(150), visits(10_000)
	if many > few+10 {
		t.Errorf("100 grants compute %d keys among 10,000 users, and %d among 150", many, few)
	}
}

// countingTags counts the keys that are computed.
type countingTags struct {
	fairShare
	tags int
}

func (d *countingTags) tag(l *level, s *share, head *Request) VirtualTime {
	d.tags++
	return d.fairShare.tag(l, s, head)
}

// A user is charged when a job ends, so a burst of 1,000 jobs enters before any of them counts. Here each counts when
// it goes: a burst gets at most its share of 20 slots as soon as another user waits.
func TestDefect10ChargeOnlyAtCompletion(t *testing.T) {
	c := newCluster(t)
	c.waits("burst", 100, 1000)
	c.waits("other", 100, 1000)
	running := map[string]int{}
	for range 20 { // none of which ends
		running[c.grant().Flow]++
	}
	if running["other"] < 9 {
		t.Errorf("%v run, want 10 of each", running)
	}
	if b := c.user("burst"); b.Recent != int64(100*running["burst"]) || b.InFlight != running["burst"] {
		t.Errorf("%d requests run, of which %d tokens and %d requests count", running["burst"], b.Recent, b.InFlight)
	}
}
