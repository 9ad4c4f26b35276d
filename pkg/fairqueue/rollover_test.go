package fairqueue

import (
	"math/rand/v2"
	"testing"
	"time"
)

// The same operations give the same order wherever virtual time starts: at 0, just before it becomes negative as a
// signed number, and just before it rolls over, with the largest increments.
func TestRollover(t *testing.T) {
	starts := []VirtualTime{0, 1<<63 - 1, 1<<63 - 1<<59, 1 << 63, 1<<64 - 1, 1<<64 - 1<<59, 1<<64 - 1<<61}
	for seed := range uint64(50) {
		var want []int
		for i, from := range starts {
			order, end := orderFrom(t, seed, from)
			if i == 0 {
				want = order
				continue
			}
			for k := range want {
				if order[k] != want[k] {
					t.Fatalf("sequence %d from %d to %d: request %d goes at %d, from 0 it is %d", seed, from, end, order[k], k, want[k])
				}
			}
		}
	}
}

// orderFrom runs a random sequence with virtual time starting at from. It returns the order in which the requests are
// released, and the last virtual time.
func orderFrom(t *testing.T, seed uint64, from VirtualTime) (order []int, end VirtualTime) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 4))
	q := unlimited(t, map[string]Weight{"a": MinWeight, "b": MinWeight, "c": WeightOne, "d": MaxWeight, "e": 3 * MinWeight}, tieBreaks[seed%2])
	q.top.classes[0].virtual = from
	var audit audit
	index := map[*Request]int{}
	for i := range 400 {
		if random.IntN(2) == 0 {
			r := &Request{Flow: string(rune('a' + random.IntN(5))), Cost: MaxCost >> random.IntN(4)}
			index[r] = i
			mustPush(t, q, r)
		} else if r := popNext(q); r != nil {
			order = append(order, index[r])
		}
		audit.check(t, q)
	}
	return order, q.top.classes[0].virtual
}

// A flow is parked, or its lane closed, while others are served at the largest cost and the smallest weight, far more
// often than virtual time has room for. The flow is still first when it can go again.
func TestStalledFlowAcrossTheRollover(t *testing.T) {
	for pops := range 40 {
		for _, parked := range []bool{false, true} {
			q := unlimited(t, map[string]Weight{"stalled": MinWeight, "busy": MinWeight, "late": MinWeight}, ByArrival)
			stalled := &Request{Flow: "stalled", Lane: "x", Cost: 1}
			mustPush(t, q, stalled)
			if parked {
				q.ParkFlow(stalled)
			} else {
				q.CloseLane(stalled, LaneFull)
			}
			mustPush(t, q, &Request{Flow: "busy", Cost: MaxCost})
			for range pops {
				mustPush(t, q, &Request{Flow: "busy", Cost: MaxCost})
				if r := popNext(q); r.Flow != "busy" {
					t.Fatalf("%s was served", r.Flow)
				}
				if lag := q.top.classes[0].virtual - stalled.flowLane.flow.start; lag > largestLag+rebaseEvery {
					t.Fatalf("%d is %d behind", stalled.flowLane.flow.start, lag)
				}
			}
			late := &Request{Flow: "late", Lane: "x", Cost: 1}
			mustPush(t, q, late)
			if parked {
				q.UnparkFlow(0, "stalled")
			} else {
				q.OpenLanes()
			}
			if r := popNext(q); r != stalled {
				t.Errorf("after %d pops, parked %t: %s is first", pops, parked, r.Flow)
			}
			mustHold(t, q)
		}
	}
}

// A flow gets refunds for many releases of the largest cost at the smallest weight, more than virtual time has room
// for. It then goes before a flow that has just arrived, but not forever.
func TestManyRefundsAcrossTheRollover(t *testing.T) {
	for refunds := 1; refunds <= 40; refunds++ {
		q := unlimited(t, map[string]Weight{"unlucky": MinWeight}, ByArrival)
		for range refunds + 20 {
			mustPush(t, q, &Request{Flow: "unlucky", Cost: MaxCost})
		}
		var popped []*Request
		for range refunds {
			popped = append(popped, popNext(q))
		}
		for _, r := range popped {
			q.Requeue(r)
		}
		fresh := &Request{Flow: "fresh", Cost: 1}
		mustPush(t, q, fresh)
		before := 0
		for popNext(q) != fresh {
			before++
		}
		if before < 1 || before > refunds {
			t.Errorf("%d refunds, and %d requests of it go first", refunds, before)
		}
		mustHold(t, q)
	}
}

// Cost over weight stays in range at the ends of their ranges, and is never 0.
func TestLargestStep(t *testing.T) {
	for _, c := range []struct {
		cost   Cost
		weight Weight
		want   VirtualTime
	}{
		{1, WeightOne, 1 << 20},
		{3, 2 * WeightOne, 3 << 19},
		{10, 3 * WeightOne, 10 << 20 / 3},
		{MaxCost, WeightOne, 1 << 50},
		{MaxCost, MinWeight, 1000 << 50},
		{1, MinWeight, 1000 << 20},
		{1, MaxWeight, 1}, // 1.05 rounded down
		{MaxCost, MaxWeight, 1 << 50 / 1_000_000},
	} {
		if got := increment(c.cost, c.weight); got != c.want || got >= 1<<60 {
			t.Errorf("cost %d at weight %d: %d, want %d", c.cost, c.weight, got, c.want)
		}
	}
}

// A cost outside its range is clamped.
func TestCostIsClamped(t *testing.T) {
	for _, c := range []struct{ given, want Cost }{{0, 1}, {-5, 1}, {MaxCost + 1, MaxCost}, {7, 7}} {
		q := unlimited(t, nil, ByArrival)
		r := &Request{Flow: "f", Cost: c.given}
		mustPush(t, q, r)
		if r.Cost != c.want {
			t.Errorf("cost %d counts as %d, want %d", c.given, r.Cost, c.want)
		}
	}
}

// A TTL of centuries neither overflows nor expires.
func TestLongestTTL(t *testing.T) {
	cfg := DefaultConfig()
	cfg.QueueTTL = 1<<63 - 1
	q := queue(t, cfg)
	far, near := &Request{Flow: "f", Cost: 1}, &Request{Flow: "f", Cost: 1, Within: time.Second}
	mustPush(t, q, far)
	mustPush(t, q, near)
	if expired := expire(q, start.Add(200*365*24*time.Hour)); len(expired) != 1 || expired[0] != near {
		t.Errorf("%d expired, want only the one with a deadline", len(expired))
	}
}

// correctedFrom runs a random sequence with corrections and virtual time starting at from, and returns the order.
func correctedFrom(t *testing.T, d Discipline, seed uint64, from VirtualTime) (order string) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 5))
	q := truingUp(t, d, tieBreaks[seed%2], func(c *Config) {
		c.Weights = map[string]Weight{"a": MinWeight, "b": MinWeight, "c": WeightOne, "d": MaxWeight, "e": 3 * MinWeight}
	})
	q.top.classes[0].virtual, q.top.classes[0].rebased = from, from
	var audit audit
	var flying []*Request
	for range 600 {
		r := &Request{Flow: string(rune('a' + random.IntN(5))), Cost: MaxCost >> random.IntN(4), Lane: []Lane{"", "x"}[random.IntN(2)]}
		switch random.IntN(5) {
		case 0:
			q.Bypassed(start, r)
			flying = append(flying, r)
		case 1, 2:
			mustPush(t, q, r)
		case 3:
			if r := popNext(q); r != nil {
				order += r.Flow + string(r.Lane) + " "
				flying = append(flying, r)
			}
		case 4:
			if len(flying) > 0 {
				ends(q, flying[0], MaxCost>>random.IntN(6))
				flying = flying[1:]
			}
		}
		audit.check(t, q)
	}
	return order
}
