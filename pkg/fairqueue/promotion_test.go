package fairqueue

import (
	"math/rand/v2"
	"testing"
	"time"
)

// fourTiers returns a configuration with a highest tier and three that are starved after a second.
func fourTiers(budget int64) Config {
	cfg := DefaultConfig()
	cfg.CapacityMode, cfg.TotalCapacity, cfg.FlowCapacity, cfg.PromotionBudget = Shared, 100_000, 100_000, budget
	cfg.QueueTTL = time.Hour
	cfg.Tiers = nil
	for _, name := range []string{"system", "interactive", "default", "bulk"} {
		cfg.Tiers = append(cfg.Tiers, TierConfig{Name: name, QueueSize: -1, StarvationThreshold: time.Second})
	}
	return cfg
}

// slots is the controller's stock: leases of equal service time, first in, first out, some of them promoted.
type slots struct {
	capacity, promotedLimit int
	held                    []Candidate
}

func (s *slots) promoted() (n int) {
	for _, c := range s.held {
		if c.Promoted {
			n++
		}
	}
	return n
}

// dispatchNext frees a slot if all are taken, releases the next request and returns its candidate.
func (s *slots) dispatchNext(t *testing.T, q *FairRequestQueue, now time.Time) Candidate {
	t.Helper()
	if len(s.held) == s.capacity {
		s.held = s.held[1:]
	}
	c := q.Peek(now, Allowed{Tiers: AllTiers, Promote: s.promoted() < s.promotedLimit})
	if c.Request == nil {
		t.Fatal("nobody goes")
	}
	q.Pop(c)
	s.held = append(s.held, c)
	return c
}

// TestPromotionBudget: "sustained system flood (its queue never empty, budget 0.1, thresholds 1 s): capacity 4 and
// equal service times: in 1,000 dispatches 100 ± 2 promotions, shared by the starved tiers in turn".
func TestPromotionBudget(t *testing.T) {
	q := queue(t, fourTiers(100_000))
	now := start
	for range 200 {
		for tier := 1; tier < 4; tier++ {
			mustPush(t, q, &Request{Flow: "old", Tier: tier, Cost: 1})
		}
	}
	now = now.Add(time.Second)
	stock := slots{capacity: 4, promotedLimit: 1} // max(1, 0.1 × 4)
	var promotions []int
	var audit audit
	for range 1000 {
		now = now.Add(50 * time.Millisecond)
		if _, err := q.Push(now, &Request{Flow: "flood", Tier: 0, Cost: 1}); err != nil {
			t.Fatal(err)
		}
		if c := stock.dispatchNext(t, q, now); c.Promoted {
			promotions = append(promotions, c.Request.Tier)
		}
		audit.check(t, q)
	}
	if n := len(promotions); n < 98 || n > 102 {
		t.Errorf("%d promotions in 1000 dispatches, want 100 ± 2", n)
	}
	for i, tier := range promotions {
		if want := 3 - i%3; tier != want { // all equal at first: the lowest, then in turn
			t.Fatalf("promotion %d is of tier %d, want %d", i, tier, want)
		}
	}
}

// The highest tier is idle; the next one floods, and its own waiters are always beyond its threshold. It is served in
// order and needs no promotion, so the turns belong to the tiers below.
func TestTurnsBesideATierServedInOrder(t *testing.T) {
	q := queue(t, fourTiers(100_000))
	for range 1000 {
		for tier := 1; tier < 4; tier++ {
			mustPush(t, q, &Request{Flow: "old", Tier: tier, Cost: 1})
		}
	}
	stock := slots{capacity: 4, promotedLimit: 1}
	var served [4]int
	for range 900 {
		served[stock.dispatchNext(t, q, start.Add(2*time.Second)).Request.Tier]++
	}
	if served[1] < 800 || served[2] < 40 || served[3] < 40 {
		t.Errorf("served by tier %v: want the two lowest about 45 each", served)
	}
}

// A budget of 1 is SMG's guard: the lowest starved tier, however many there are, without an account. "Starvation:
// lowest class first (system excluded)."
func TestUnlimitedBudgetIsLowestFirst(t *testing.T) {
	q := queue(t, fourTiers(1_000_000))
	for range 5 {
		for tier := range 4 {
			mustPush(t, q, &Request{Flow: "old", Tier: tier, Cost: 1})
		}
	}
	for i := range 20 {
		c := q.Peek(start.Add(time.Second), Allowed{Tiers: AllTiers, Promote: true})
		q.Pop(c)
		if want := 3 - i/5; c.Request.Tier != want {
			t.Fatalf("dispatch %d is of tier %d, want %d", i, c.Request.Tier, want)
		}
	}
}

// A tier is starved at age >= threshold, so a timer set to the threshold fires once.
func TestStarvedAtTheThreshold(t *testing.T) {
	q := queue(t, fourTiers(100_000))
	mustPush(t, q, &Request{Flow: "f", Tier: 3, Cost: 1})
	left, ok := q.UntilStarvation(start)
	if !ok || left != time.Second {
		t.Fatalf("next starvation in %v %t, want 1 s", left, ok)
	}
	at := start.Add(left)
	promote := Allowed{Promote: true} // no tier has stock available
	if c := q.Peek(at.Add(-1), promote); c.Request != nil {
		t.Error("promoted a nanosecond too early")
	}
	if c := q.Peek(at, promote); !c.Promoted {
		t.Error("not promoted at its threshold")
	}
	if left, ok := q.UntilStarvation(at); ok {
		t.Errorf("the next starvation of nobody else is in %v", left)
	}
}

// Whatever the lanes do, a tier whose head is promoted has a waiter beyond its threshold whose lane has not been closed
// as full or dead. The requests themselves are the oracle.
func TestNobodyIsPromotedForWhomThereIsNoRoom(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 8))
	q := queue(t, fourTiers(budgetUnlimited))
	now := start
	type place struct {
		tier int
		lane Lane
	}
	waiters, shut := map[*Request]bool{}, map[place]bool{}
	promotions, withheld := 0, 0
	for range 20_000 {
		now = now.Add(time.Duration(random.IntN(40)) * time.Millisecond)
		r := &Request{Flow: string(rune('a' + random.IntN(3))), Tier: random.IntN(4), Lane: Lane(rune('x' + random.IntN(3))), Cost: 1}
		if len(waiters) < 40 {
			mustPush(t, q, r)
			waiters[r] = true
		}
		c := q.Peek(now, Allowed{Tiers: AllTiers, Promote: true})
		old := false
		for w := range waiters {
			old = old || c.Request != nil && w.Tier == c.Request.Tier && q.Waited(now, w) >= time.Second && !shut[place{w.Tier, w.Lane}]
		}
		switch {
		case c.Promoted && !old:
			t.Fatalf("one of tier %d is promoted, and nobody of it is starved for whom there is room", c.Request.Tier)
		case c.Promoted:
			promotions++
		case c.Request != nil && !old:
			withheld++
		}
		if c.Request == nil || random.IntN(3) == 0 {
			lane := Lane(rune('x' + random.IntN(3)))
			q.OpenLane(lane)
			for tier := range 4 {
				delete(shut, place{tier, lane})
			}
			continue
		}
		if random.IntN(4) == 0 {
			q.CloseLane(c.Request, LaneFull)
			shut[place{c.Request.Tier, c.Request.Lane}] = true
			continue
		}
		q.Pop(c)
		delete(waiters, c.Request)
		if key := (place{c.Request.Tier, c.Request.Lane}); shut[key] {
			t.Fatal("released from a full lane")
		}
	}
	if promotions < 100 || withheld < 20 {
		t.Errorf("%d promotions, %d releases without: too few to say anything", promotions, withheld)
	}
}

// A reload that begins or ends promotions also reaches the users of a tenant parked at its cap.
func TestGuardReachesParkedTenants(t *testing.T) {
	cfg := fourTiers(1_000_000)
	cfg.Levels = 2
	unguarded := cfg
	unguarded.Tiers = nil
	for _, tier := range cfg.Tiers {
		tier.StarvationThreshold = 0
		unguarded.Tiers = append(unguarded.Tiers, tier)
	}
	for _, turns := range [][]Config{{unguarded, cfg}, {cfg, unguarded, cfg}} {
		q, err := New(turns[0])
		if err != nil {
			t.Fatal(err)
		}
		r := &Request{Flow: "tenant", Path: &Path{Under: []string{"user"}}, Tier: 3, Cost: 1}
		mustPush(t, q, r)
		q.ParkFlow(r)
		for _, next := range turns[1:] {
			reconfigure(t, q, next)
		}
		q.UnparkFlow(3, "tenant")
		mustHold(t, q)
		if c := q.Peek(start.Add(2*time.Second), Allowed{Promote: true}); c.Request != r || !c.Promoted {
			t.Errorf("after %d reloads the candidate is %+v", len(turns)-1, c)
		}
	}
}
