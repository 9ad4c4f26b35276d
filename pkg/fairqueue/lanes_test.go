package fairqueue

import (
	"fmt"
	"testing"
)

// With discipline none all requests go in order of arrival, with any costs and lanes. A release touches only its own
// lane, however many there are.
func TestNoneIsFirstComeFirstServed(t *testing.T) {
	for _, lanes := range []int{3, 300} {
		cfg := DefaultConfig()
		cfg.Discipline, cfg.TotalCapacity, cfg.FlowCapacity = OneFlow, 10_000, 10_000
		q := queue(t, cfg)
		var all []*Request
		for i := range 3 * lanes {
			r := &Request{Flow: fmt.Sprint(i % 7), Lane: Lane(fmt.Sprint(i % lanes)), Cost: Cost(1 + (i*31)%50)}
			mustPush(t, q, r)
			all = append(all, r)
		}
		mustHold(t, q)
		for i, want := range all {
			tags := map[*flowLane]VirtualTime{}
			for _, fl := range want.flowLane.flow.lanes {
				tags[fl] = fl.tag
			}
			if r := popNext(q); r != want {
				t.Fatalf("%d lanes: number %d goes as the %d.", lanes, r.seq, i+1)
			}
			for fl, tag := range tags {
				if fl.flow != nil && fl.tag != tag {
					t.Fatalf("lane %q was tagged anew", fl.lane.name)
				}
			}
		}
	}
}

// View shows a flow as parked if it is at its cap in all of its lanes, and as closed if none of its lanes can go.
func TestViewOfThoseThatCannotGo(t *testing.T) {
	q := queue(t, DefaultConfig())
	inPool, inX := &Request{Flow: "f", Cost: 1}, &Request{Flow: "f", Lane: "x", Cost: 1}
	mustPush(t, q, inPool)
	mustPush(t, q, inX)
	want := func(parked, closed bool) {
		t.Helper()
		if v := q.View(1)[0]; v.Parked != parked || v.Closed != closed {
			t.Errorf("parked %t, closed %t: want %t, %t", v.Parked, v.Closed, parked, closed)
		}
	}
	want(false, false)
	q.ParkFlow(inPool)
	q.CloseLane(inPool, LaneBusy)
	want(false, false)
	q.ParkFlow(inX)
	want(true, false)
	q.CloseLane(inX, LaneFull)
	want(true, true)
	q.UnparkFlow(0, "f")
	want(false, true)
	q.OpenLane("x")
	want(false, false)
}

// Even if very many requests of a few flows expire first, View also shows the other flows.
func TestViewLooksPastACrowd(t *testing.T) {
	q := crowd(t, 1000)
	for i := range 5 {
		mustPush(t, q, &Request{Flow: fmt.Sprint("late", i), Cost: 1})
	}
	flows := map[string]bool{}
	for _, v := range q.View(6) {
		flows[v.Flow] = true
	}
	if len(flows) != 6 {
		t.Errorf("shown: %v, want 6 flows", flows)
	}
}

// crowd returns a queue in which n requests of two flows wait.
func crowd(t testing.TB, n int) *FairRequestQueue {
	cfg := DefaultConfig()
	cfg.CapacityMode, cfg.TotalCapacity, cfg.FlowCapacity = Shared, 1<<20, 1<<20
	q := queue(t, cfg)
	for i := range n {
		mustPush(t, q, &Request{Flow: fmt.Sprint(i / (n - 1)), Cost: 1}) // the second came last
	}
	return q
}

// After requests in many lanes and flows have left, the queue keeps little memory of them.
func TestLittleIsKeptOfACrowd(t *testing.T) {
	cfg := DefaultConfig()
	cfg.CapacityMode, cfg.TotalCapacity, cfg.FlowCapacity = Shared, 1<<20, 1<<20
	q := queue(t, cfg)
	for i := range 1000 {
		mustPush(t, q, &Request{Flow: fmt.Sprint(i), Lane: "crowded", Cost: 1})
	}
	q.Drain(nil)
	for i := range 2 * keptFlows {
		mustPush(t, q, &Request{Flow: fmt.Sprint(i), Lane: Lane(fmt.Sprint(i % (4 * keptLanes))), Cost: 1})
	}
	q.Drain(nil)
	if lanes, flowLanes, flows := len(q.top.classes[0].freeLanes), len(q.top.classes[0].freeFlowLanes), len(q.top.classes[0].flows.free); lanes > keptLanes ||
		flowLanes > keptFlows || flows > keptFlows {
		t.Errorf("kept: %d lanes, %d lines of flows, %d flows", lanes, flowLanes, flows)
	}
	for i := range 4 * keptLanes {
		mustPush(t, q, &Request{Flow: "wide", Lane: Lane(fmt.Sprint(i)), Cost: 1})
	}
	q.Drain(nil)
	if n := cap(q.top.classes[0].flows.known["wide"].lanes); n > fewLanes {
		t.Errorf("a flow that waited in many lanes keeps room for %d", n)
	}
	for _, l := range q.top.classes[0].freeLanes {
		if !l.flows.Small() || !l.ages.Small() {
			t.Error("a lane with large heaps is kept")
		}
	}
}

// BenchmarkNone measures one push and one pop with discipline none in that many lanes.
func BenchmarkNone(b *testing.B) {
	for _, lanes := range []int{1, 500, 4000} {
		b.Run(fmt.Sprintf("%dlanes", lanes), func(b *testing.B) {
			cfg := DefaultConfig()
			cfg.Discipline, cfg.TotalCapacity, cfg.FlowCapacity = OneFlow, 100_000, 100_000
			q := queue(b, cfg)
			for i := range 2 * lanes {
				mustPush(b, q, &Request{Lane: Lane(fmt.Sprint(i % lanes)), Cost: 1})
			}
			for b.Loop() {
				c := q.Peek(start, Allowed{Tiers: AllTiers})
				q.Pop(c)
				mustPush(b, q, c.Request)
			}
		})
	}
}

// BenchmarkView measures View of 100 flows while that many requests wait in two.
func BenchmarkView(b *testing.B) {
	for _, n := range []int{2000, 200_000} {
		b.Run(fmt.Sprintf("%dwaiters", n), func(b *testing.B) {
			q := crowd(b, n)
			for b.Loop() {
				q.View(100)
			}
		})
	}
}
