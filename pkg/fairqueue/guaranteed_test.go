package fairqueue

import (
	"errors"
	"testing"
)

// "If the capacity is exceeded, ErrTooManyFlows is returned only if the flowCapacities of critical flows exceed the
// total"; a critical request is queued up to its flow's capacity, and displaces any other waiting requests (the
// proposal's guaranteed capacity, C7).
func TestGuaranteedCapacityOfCriticalFlows(t *testing.T) {
	cfg := DefaultConfig()
	cfg.CapacityMode, cfg.TotalCapacity, cfg.FlowCapacity, cfg.GuaranteedTop = Shared, 6, 3, true
	cfg.Tiers = []TierConfig{{Name: "critical", QueueSize: -1}, {Name: "default", QueueSize: -1}, {Name: "sheddable", QueueSize: -1}}
	q := queue(t, cfg)
	push := func(flow string, tier int) (displaced *Request, err error) {
		return q.Push(start, &Request{Flow: flow, Tier: tier, Cost: 1})
	}
	for range 3 {
		mustPush(t, q, &Request{Flow: "d", Tier: 1, Cost: 1})
		mustPush(t, q, &Request{Flow: "s", Tier: 2, Cost: 1})
	}
	// Six critical requests of two flows displace all others, sheddable ones first.
	for i, flow := range []string{"a", "a", "a", "b", "b", "b"} {
		want := 2 - i/3
		if displaced, err := push(flow, 0); err != nil || displaced == nil || displaced.Tier != want {
			t.Fatalf("critical request %d: displaced %v, %v, want one of tier %d", i, displaced, err, want)
		}
	}
	for _, c := range []struct {
		flow string
		tier int
		want error
	}{
		{"a", 0, ErrInsufficientFlowCapacity}, // beyond its own capacity
		{"c", 0, ErrTooManyFlows},             // 3 + 3 + 3 are more than 6
		{"d", 1, ErrTooManyFlows},             // nothing is left for others, and nobody is below them
	} {
		if displaced, err := push(c.flow, c.tier); !errors.Is(err, c.want) || displaced != nil {
			t.Errorf("another request of %s: displaced %v, %v, want %v", c.flow, displaced, err, c.want)
		}
	}
	// A flow's reservation is its own while the flow is tracked: with one of its requests waiting it still can queue three.
	if r := popNext(q); r.Flow != "a" {
		t.Fatalf("popped %s", r.Flow)
	}
	mustPush(t, q, &Request{Flow: "d", Tier: 1, Cost: 1}) // takes the place while it is free
	if displaced, err := push("a", 0); err != nil || displaced == nil || displaced.Flow != "d" {
		t.Errorf("the flow's own place: displaced %v, %v", displaced, err)
	}
	if _, err := push("c", 0); !errors.Is(err, ErrTooManyFlows) {
		t.Errorf("both are tracked: %v", err)
	}
	for q.Len() > 0 {
		popNext(q)
	}
	for _, flow := range []string{"c", "a"} { // nobody is tracked any more
		mustPush(t, q, &Request{Flow: flow, Cost: 1})
	}
}
