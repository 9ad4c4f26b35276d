package fairqueue

import (
	"errors"
	"math"
	"testing"
	"time"
)

// costly returns a full queue of 100 in which a noisy flow holds 99 places with requests of cost 1, and a quiet flow
// has one request of cost 200.
func costly(t *testing.T, change func(*Config)) (q *FairRequestQueue, quiet *Request) {
	cfg := DefaultConfig()
	cfg.CapacityMode, cfg.TotalCapacity, cfg.FlowCapacity = Shared, 100, 100
	cfg.Tiers = []TierConfig{{Name: "high", QueueSize: -1}, {Name: "low", QueueSize: -1}}
	if change != nil {
		change(&cfg)
	}
	q, quiet = queue(t, cfg), &Request{Flow: "quiet", Tier: 1, Cost: 200}
	mustPush(t, q, quiet)
	return q, quiet
}

// "one request of cost 200 is displaced by a flow that holds 99 places with cost 1" must not happen, because places are
// scarce, not cost. A second quiet request displaces one of the noisy flow, whose own next request is rejected. The
// same holds in a full queue, in a queue mostly taken by a higher tier, and within a tier's own queueSize.
func TestQuietFlowIsNotDisplacedForItsCost(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Config)
		high   int // requests of the higher tier
		noisy  int
	}{
		"a full queue":                     {nil, 0, 99},
		"a higher tier holds most of it":   {nil, 90, 9},
		"the tier's own queueSize is full": {func(c *Config) { c.Tiers[1].QueueSize = 10 }, 0, 9},
	} {
		t.Run(name, func(t *testing.T) {
			q, quiet := costly(t, c.change)
			for range c.high {
				mustPush(t, q, &Request{Flow: "urgent", Cost: 1})
			}
			for range c.noisy {
				mustPush(t, q, &Request{Flow: "noisy", Tier: 1, Cost: 1})
			}
			if displaced, err := q.Push(start, &Request{Flow: "noisy", Tier: 1, Cost: 1}); displaced != nil || !errors.Is(err, ErrTooManyFlows) {
				t.Errorf("the noisy flow's next: displaced %+v, %v, want it refused", displaced, err)
			}
			for range 3 {
				displaced, err := q.Push(start, &Request{Flow: "quiet", Tier: 1, Cost: 200})
				if err != nil || displaced == nil || displaced.Flow != "noisy" {
					t.Fatalf("a quiet request: displaced %+v, %v, want one of the noisy flow", displaced, err)
				}
			}
			if !quiet.Queued() {
				t.Error("the quiet flow's first request is gone")
			}
		})
	}
}

// Ten flows of the lowest tier do not take the room of the highest, nor vice versa. A tier with a share smaller than a
// flow's capacity still admits a flow.
func TestEachTierKeepsItsShareInReservedMode(t *testing.T) {
	cfg := weightedTiers()
	cfg.CapacityMode, cfg.TotalCapacity, cfg.FlowCapacity = Reserved, 1000, 100
	q := queue(t, cfg)
	admitted := func(tier, flows int) (n int) {
		for i := range flows {
			if _, err := q.Push(start, &Request{Flow: string(rune('a' + i)), Tier: tier, Cost: 1}); err == nil {
				n++
			} else if !errors.Is(err, ErrTooManyFlows) {
				t.Fatal(err)
			}
		}
		return n
	}
	for _, c := range []struct{ tier, want int }{{2, 1}, {1, 2}, {0, 7}} { // 100, 200 and 700 places
		if n := admitted(c.tier, 10); n != c.want {
			t.Errorf("tier %d: %d flows of ten admitted, want %d", c.tier, n, c.want)
		}
	}
	cfg.TotalCapacity, cfg.FlowCapacity = 100, 100
	q = queue(t, cfg)
	for tier, want := range []int{1, 1, 1} { // 70, 20 and 10 places, each less than a flow's 100
		if n := admitted(tier, 10); n != want {
			t.Errorf("tier %d: %d flows of ten admitted to a small share, want %d", tier, n, want)
		}
	}
	for range 9 {
		mustPush(t, q, &Request{Flow: "a", Tier: 2, Cost: 1})
	}
	if _, err := q.Push(start, &Request{Flow: "a", Tier: 2, Cost: 1}); !errors.Is(err, ErrTooManyFlows) {
		t.Errorf("beyond the tier's share: %v", err)
	}
}

// The largest integer as a capacity means no limit, and does not overflow.
func TestLargestCapacities(t *testing.T) {
	for _, mode := range []CapacityMode{Reserved, Shared} {
		cfg := DefaultConfig()
		cfg.CapacityMode, cfg.TotalCapacity, cfg.FlowCapacity, cfg.GuaranteedTop = mode, math.MaxInt, math.MaxInt, true
		q := queue(t, cfg)
		popped := &Request{Flow: "a", Cost: 1}
		mustPush(t, q, popped)
		popNext(q)
		mustPush(t, q, &Request{Flow: "b", Cost: 1}) // reserves all there is
		if _, err := q.Push(start, &Request{Flow: "c", Cost: 1}); !errors.Is(err, ErrTooManyFlows) {
			t.Errorf("mode %d: a second flow of that size: %v", mode, err)
		}
		q.Requeue(popped) // beyond any limit
		if _, err := q.Push(start, &Request{Flow: "c", Cost: 1}); !errors.Is(err, ErrTooManyFlows) {
			t.Errorf("mode %d: a third: %v", mode, err)
		}
		mustHold(t, q)
	}
}

// A tier of the largest weight is removed from the largest queue while one request waits in it, and another one is
// requeued into it.
func TestHeavyTierThatDrains(t *testing.T) {
	cfg := weightedTiers()
	cfg.CapacityMode, cfg.TotalCapacity, cfg.FlowCapacity = Reserved, math.MaxInt, math.MaxInt
	cfg.Tiers[0].Weight, cfg.Tiers[1].Weight, cfg.Tiers[2].Weight = MaxWeight, MinWeight, MinWeight
	q := queue(t, cfg)
	popped, waits := &Request{Flow: "a", Cost: 1}, &Request{Flow: "b", Cost: 1}
	mustPush(t, q, popped)
	popNext(q)
	mustPush(t, q, waits)
	cfg.Tiers = cfg.Tiers[1:]
	reconfigure(t, q, cfg)
	q.Requeue(popped)
	for q.Len() > 0 {
		if popNext(q) == nil {
			t.Fatal("they do not drain")
		}
	}
}

// With a promotion budget of 0 no promotion is granted any more, whatever credit was left.
func TestReloadToNoBudget(t *testing.T) {
	q := queue(t, fourTiers(500_000))
	for range 20 {
		mustPush(t, q, &Request{Flow: "f", Cost: 1})
		popNext(q)
	}
	reconfigure(t, q, fourTiers(0))
	for range 20 {
		mustPush(t, q, &Request{Flow: "f", Tier: 3, Cost: 1})
		mustPush(t, q, &Request{Flow: "f", Cost: 1})
	}
	for i := range 20 {
		c := q.Peek(start.Add(2*time.Second), Allowed{Tiers: AllTiers, Promote: true})
		if q.Pop(c); c.Promoted {
			t.Fatalf("dispatch %d is a promotion", i)
		}
	}
}
