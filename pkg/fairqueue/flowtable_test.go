package fairqueue

import (
	"fmt"
	"testing"
	"time"
	"unsafe"
)

// A flow has four whole cache lines: 8 bytes more would take 32, and mostly a fifth line.
func TestFlowFitsItsSize(t *testing.T) {
	if n := unsafe.Sizeof(flow{}); n > 256 {
		t.Errorf("a flow has %d bytes", n)
	}
}

// With many more flows than are kept, the table stays bounded, and a forgotten flow starts anew when it returns.
func TestFlowTableKeepsOnlySome(t *testing.T) {
	q, err := New(DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(0, 0)
	const flows = 3 * keptFlows
	for round := range 2 {
		for i := range flows {
			r := &Request{Flow: fmt.Sprint("flow-", i)}
			if _, err := q.Push(now, r); err != nil {
				t.Fatal(err)
			}
			if f := q.top.classes[0].flows.find(r.Flow); f == nil || f.queued != 1 || f.cost != 1 || f.start != q.top.classes[0].virtual {
				t.Fatalf("round %d: flow %d did not begin anew: %+v", round, i, f)
			}
			q.Pop(q.Peek(now, Allowed{Tiers: AllTiers}))
			q.Completed(r)
			if q.Flows() != 0 || q.top.classes[0].flows.find(r.Flow) != nil {
				t.Fatalf("round %d: flow %d is still tracked", round, i)
			}
			if i%100 == 0 || i > flows-3 {
				mustHold(t, q)
			}
		}
	}
	// The latest flows are kept, and their structures are reused.
	for i := flows - 10; i < flows; i++ {
		key := fmt.Sprint("flow-", i)
		kept := q.top.classes[0].flows.known[key]
		r := &Request{Flow: key}
		if _, err := q.Push(now, r); err != nil {
			t.Fatal(err)
		}
		if f := q.top.classes[0].flows.find(key); f == nil || f != kept || f.queued != 1 {
			t.Errorf("flow %s has another structure than it had", key)
		}
		mustHold(t, q)
		q.Pop(q.Peek(now, Allowed{Tiers: AllTiers}))
		q.Completed(r)
	}
	if n := len(q.top.classes[0].flows.known); n != keptFlows {
		t.Errorf("%d flows are known, want the %d that were tracked last", n, keptFlows)
	}
}

// The largest capacity is reserved and returned as a whole.
func TestTheLargestCapacityIsReserved(t *testing.T) {
	cfg := DefaultConfig()
	cfg.CapacityMode, cfg.TotalCapacity, cfg.FlowCapacity = Reserved, 1<<40, 1<<40
	q := queue(t, cfg)
	a := &Request{Flow: "a", Cost: 1}
	mustPush(t, q, a)
	if _, err := q.Push(start, &Request{Flow: "b", Cost: 1}); err == nil {
		t.Error("a second flow fits beside one that has reserved everything")
	}
	mustHold(t, q)
	q.Remove(a)
	mustPush(t, q, &Request{Flow: "b", Cost: 1})
	mustHold(t, q)
}
