package fairqueue

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkQueue measures one push and one pop with 5,000 requests waiting in one flow or in 5,000, in both capacity
// modes, and in a full queue, where each push displaces.
func BenchmarkQueue(b *testing.B) {
	const waiters = 5000
	for _, mode := range []CapacityMode{Reserved, Shared} {
		for _, flows := range []int{1, waiters} {
			name := fmt.Sprintf("%s/%dflows", map[CapacityMode]string{Reserved: "reserved", Shared: "shared"}[mode], flows)
			b.Run(name, func(b *testing.B) { benchmarkQueue(b, mode, waiters, flows, 1) })
			b.Run(name+"/4tiers", func(b *testing.B) { benchmarkQueue(b, mode, waiters, flows, 4) })
		}
	}
	for _, flows := range []int{10, waiters} {
		b.Run(fmt.Sprintf("displacement/%dflows", flows), func(b *testing.B) { benchmarkDisplacement(b, waiters, flows) })
	}
}

func benchmarkQueue(b *testing.B, mode CapacityMode, waiters, flows, tiers int) {
	cfg := fourTiers(100_000)
	cfg.Tiers, cfg.CapacityMode = cfg.Tiers[:tiers], mode
	cfg.TotalCapacity, cfg.FlowCapacity = 100_000_000, 10_000
	q := queue(b, cfg)
	now := start
	names := make([]string, flows)
	for i := range names {
		names[i] = fmt.Sprintf("tenant-%d", i)
	}
	push := func(r *Request, i int) {
		now = now.Add(time.Microsecond)
		r.Flow, r.Tier, r.Cost = names[i%flows], i%tiers, 1
		if _, err := q.Push(now, r); err != nil {
			b.Fatal(err)
		}
	}
	for i := range waiters {
		push(&Request{}, i)
	}
	r := &Request{}
	b.ReportAllocs()
	i := waiters
	for b.Loop() {
		push(r, i)
		c := q.Peek(now, Allowed{Tiers: AllTiers, Promote: true})
		q.Pop(c)
		r = c.Request
		i++
	}
}

// benchmarkDisplacement fills the queue with sheddable requests. Each arrival of a higher tier displaces one of them
// and is popped; then the displaced one returns.
func benchmarkDisplacement(b *testing.B, waiters, flows int) {
	cfg := fourTiers(100_000)
	cfg.TotalCapacity, cfg.FlowCapacity = waiters, waiters
	q := queue(b, cfg)
	for i := range waiters {
		mustPush(b, q, &Request{Flow: fmt.Sprintf("tenant-%d", i%flows), Tier: 3, Cost: 1})
	}
	urgent := &Request{Flow: "urgent", Cost: 1}
	b.ReportAllocs()
	for b.Loop() {
		urgent.Tier = 0
		displaced, err := q.Push(start, urgent)
		if err != nil || displaced == nil {
			b.Fatalf("displaced %v, %v", displaced, err)
		}
		q.Pop(q.Peek(start, Allowed{Tiers: AllTiers}))
		if _, err := q.Push(start, displaced); err != nil {
			b.Fatal(err)
		}
	}
}
