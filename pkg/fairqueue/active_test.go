package fairqueue

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// counter is a discipline with memory, for tests. Each flow counts what it was charged, whether its requests waited or
// not, and the flow with the least count goes first. A flow that becomes active starts with the least active count.
// Like a token discipline it charges bypasses and corrects charges.
type counter struct {
	counting map[*share]bool // the active ones
}

func (counter) active() bool { return true }

func (counter) chargesBypasses() bool { return true }

func (d counter) lift(s *share) {
	if d.counting[s] {
		return
	}
	least := VirtualTime(0)
	for o := range d.counting {
		if least == 0 || o.start < least {
			least = o.start
		}
	}
	s.start = max(s.start, least)
	d.counting[s] = true
}

func (d counter) begin(_ *level, s *share) {
	d.lift(s)
}

func (d counter) tag(_ *level, s *share, _ *Request) VirtualTime { return s.start }

func (counter) charge(_ *level, s *share, r *Request, _ VirtualTime, p *receipt) bool {
	p.charged = VirtualTime(r.Cost)
	s.start += p.charged
	return true
}

func (d counter) bypassed(l *level, s *share, r *Request, p *receipt) bool {
	d.lift(s)
	return d.charge(l, s, r, 0, p)
}

func (d counter) adjust(l *level, s *share, r *Request, to Cost, p *receipt) bool {
	return to > Cost(p.charged) && d.trueUp(l, s, r, to, p)
}

func (counter) trueUp(_ *level, s *share, _ *Request, to Cost, p *receipt) bool {
	s.start += VirtualTime(to) - p.charged
	p.charged = VirtualTime(to)
	return true
}

func (counter) refund(_ *level, s *share, _ *Request, p *receipt) bool {
	s.start -= p.charged
	return true
}

func (d counter) end(_ *level, s *share) { delete(d.counting, s) }

func (counter) join(*level, *share, *branch, bool, *Request) bool { return false }

func (counter) resumed(*level, *share, *branch, *Request) bool { return false }

func (counter) freshen(*level, *share) bool { return false }

func (counter) describe(_ *level, s *share, number func(int64)) {
	if s != nil {
		number(int64(s.start))
	}
}

func (counter) describeReceipt(_ *level, p *receipt, number func(int64)) { number(int64(p.charged)) }

// remembering returns a queue whose flows share by counter.
func remembering(t testing.TB, levels int, d counter) *FairRequestQueue {
	cfg := DefaultConfig()
	cfg.CapacityMode, cfg.TotalCapacity, cfg.FlowCapacity, cfg.Levels = Shared, 1_000_000, 1_000_000, levels
	q := queue(t, cfg)
	q.active, q.bypasses = true, true
	q.top.classes[0].discipline = d
	return q
}

// pushes queues n requests of a flow with this cost.
func pushes(t testing.TB, q *FairRequestQueue, flow string, cost Cost, n int) {
	for range n {
		mustPush(t, q, &Request{Flow: flow, Cost: cost})
	}
}

// A flow whose only requests are in flight keeps its count. When they are complete and enough other flows have come and
// gone, it starts again with the least active count.
func TestAFlowInFlightIsRemembered(t *testing.T) {
	for _, bypasses := range []bool{false, true} {
		q := remembering(t, 1, counter{counting: map[*share]bool{}})
		pushes(t, q, "steady", 1, 50)
		for range 5 {
			popNext(q)
		}
		greedy := &Request{Flow: "greedy", Cost: 10}
		if bypasses {
			q.Bypassed(start, greedy)
		} else {
			mustPush(t, q, greedy)
			for popNext(q) != greedy {
			}
		}
		pushes(t, q, "greedy", 10, 1)
		if n := servedBefore(t, q, "greedy"); n < 9 {
			t.Errorf("bypasses %t: after %d of the steady flow the greedy one goes again, want its 10 made up for", bypasses, n)
		}
		q.Completed(greedy)
		q.Completed(greedy)
		for r := popNext(q); r != nil; r = popNext(q) {
			q.Completed(r)
		}
	}
}

// servedBefore returns the number of requests that are served before the flow's next one; each completes at once.
func servedBefore(t testing.TB, q *FairRequestQueue, flow string) (n int) {
	t.Helper()
	for {
		r := popNext(q)
		if r == nil {
			t.Fatalf("%s does not wait", flow)
		}
		q.Completed(r)
		if r.Flow == flow {
			return n
		}
		n++
	}
}

// A flow is charged the actual cost of a request, whether it is known while the request runs, at its end or later. A
// refund takes back what was charged.
func TestTrueUpMovesTheFlow(t *testing.T) {
	for name, c := range map[string]struct {
		correct func(q *FairRequestQueue, r *Request)
		want    int // of the other flow until the next one of this
	}{
		"as charged":         {func(q *FairRequestQueue, r *Request) { q.Completed(r) }, 5},
		"raised in flight":   {func(q *FairRequestQueue, r *Request) { q.Adjust(start, r, 20); q.Completed(r) }, 20},
		"not lowered":        {func(q *FairRequestQueue, r *Request) { q.Adjust(start, r, 1); q.Completed(r) }, 5},
		"more at the end":    {func(q *FairRequestQueue, r *Request) { q.TrueUp(start, r, 12); q.Completed(r) }, 12},
		"less at the end":    {func(q *FairRequestQueue, r *Request) { q.TrueUp(start, r, 2); q.Completed(r) }, 2},
		"known after it":     {func(q *FairRequestQueue, r *Request) { q.Completed(r); q.TrueUp(start, r, 9) }, 9},
		"it came to nothing": {func(q *FairRequestQueue, r *Request) { q.Requeue(r); q.Remove(r); q.Completed(r) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			q := remembering(t, 1, counter{counting: map[*share]bool{}})
			r := &Request{Flow: "a", Cost: 5}
			mustPush(t, q, r)
			pushes(t, q, "a", 5, 1)
			pushes(t, q, "b", 1, 100)
			if popNext(q) != r {
				t.Fatal("the first did not go first")
			}
			c.correct(q, r)
			if n := servedBefore(t, q, "a"); n != c.want && n != c.want+1 {
				t.Errorf("%d of the other flow go before, want %d", n, c.want)
			}
		})
	}
}

// Many flows wait, are dispatched and end, at two levels. The queue's memory is bounded by the active flows and its
// limits, and every request in flight is counted once.
func TestLittleIsKeptOfFlowsInFlight(t *testing.T) {
	d := counter{counting: map[*share]bool{}}
	q := remembering(t, 2, d)
	random := rand.New(rand.NewPCG(1, 2))
	var flying []*Request
	for step := range 30_000 {
		r := of(fmt.Sprint(random.IntN(3000)), fmt.Sprint(random.IntN(40)))
		switch random.IntN(4) {
		case 0:
			q.Bypassed(start, r)
			flying = append(flying, r)
		case 1:
			mustPush(t, q, r)
		case 2:
			if r := popNext(q); r != nil {
				if flying = append(flying, r); random.IntN(5) == 0 {
					q.Requeue(r)
					flying = flying[:len(flying)-1]
				}
			}
		}
		if len(flying) > 500 || random.IntN(4) == 3 && len(flying) > 0 {
			i := random.IntN(len(flying))
			q.Completed(flying[i])
			flying[i] = flying[len(flying)-1]
			flying = flying[:len(flying)-1]
		}
		if step%500 == 0 {
			mustHold(t, q)
			countsFlights(t, q, len(flying))
		}
	}
	for _, r := range flying {
		q.Completed(r)
	}
	q.Drain(nil)
	countsFlights(t, q, 0)
	if n := len(q.top.classes[0].flows.known); n > keptFlows || len(d.counting) > 0 {
		t.Errorf("%d flows known, %d active, want at most the %d that are kept and none", n, len(d.counting), keptFlows)
	}
	mustHold(t, q)
}

// countsFlights checks the number of requests in flight at every level.
func countsFlights(t *testing.T, q *FairRequestQueue, want int) {
	t.Helper()
	c := q.top.classes[0]
	outer, inner := 0, 0
	for _, f := range c.flows.known {
		outer += int(f.inflight)
		if f.under != nil {
			for _, g := range f.under.flows.known {
				inner += int(g.inflight)
			}
		}
	}
	if outer != want || inner != want || c.inflight != want {
		t.Fatalf("in flight: %d of the class, %d of tenants, %d of users, want %d", c.inflight, outer, inner, want)
	}
}

// A requeued request no longer counts as in flight: neither in its flow nor in the flows above.
func TestRequeuedIsNotInFlight(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Discipline, cfg.Levels = VTC, 2
	q := queue(t, cfg)
	r := &Request{Flow: "tenant", Path: &Path{Under: []string{"user"}}, Cost: 1}
	mustPush(t, q, r)
	if popNext(q) != r {
		t.Fatal("another request went")
	}
	q.Requeue(r)
	for f := r.flowLane.flow; f != nil; f = f.above {
		if f.inflight != 0 {
			t.Errorf("at depth %d: %d in flight", f.depth, f.inflight)
		}
	}
}
