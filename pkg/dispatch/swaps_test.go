package dispatch

import (
	"fmt"
	"testing"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/stock"
)

// swapping is a pool in which each of many tenants waits at its cap, beside its own lease that it may not take over
// yet.
type swapping struct {
	*shared
	calls   *countingBoard
	waiting []*Waiter
	others  []*Waiter // of other tenants
}

// arrives makes a request of a tenant arrive.
func (x *swapping) arrives(tier int, flow string, tokens stock.Tokens, at ...int) *Waiter {
	w := new(Waiter)
	x.Arrive(x.clock, w, Arrival{Flow: flow, Tier: tier, Cost: 1, Tokens: tokens, Placement: x.placement(at...)})
	x.Told(w)
	return w
}

// tenantsWait makes n tenants with leases in the lower tier each wait with a request in the higher one. It calls before
// in between.
func tenantsWait(t *testing.T, n, leases int, before func(x *swapping), changes ...func(*Config)) *swapping {
	x := &swapping{shared: newShared(t, 1, 0, append(changes, twoTiers, func(c *Config) { perBackend(c, 100_000, 100_000) })...)}
	for i := range 3 {
		x.others = append(x.others, x.arrives(0, fmt.Sprint("other-", i), 1))
	}
	for i := range n {
		for range leases {
			x.arrives(1, fmt.Sprint(i), 1)
		}
	}
	before(x)
	for i := range n {
		w := x.arrives(0, fmt.Sprint(i), 1)
		if x.waiting = append(x.waiting, w); w.Stage() != StageWaiting || x.Preemptor() != nil {
			t.Fatalf("stage %d", w.Stage())
		}
	}
	x.calls = countsCalls(x.shared)
	return x
}

// asks returns the number of an event's queries to the placer.
func (x *swapping) asks(event func()) int {
	x.calls.calls = 0
	event()
	return x.calls.calls
}

// ends ends a request of another tenant.
func (x *swapping) ends() {
	w := x.others[0]
	x.others = x.others[1:]
	x.Complete(x.clock, w.Lease(), fairqueue.UnknownCost)
}

// The end of a request makes no tenant repeat a vain search for its own victim: without a bound in tokens the end
// changes nothing for others, and with one only if some victim would be enough. 20 tenants cause as many queries as
// 2,000. Once tokens fall far enough, each tenant takes over its own lease.
func TestOnlyFewerTokensLetTenantsSearchAgain(t *testing.T) {
	asked := map[string]int{}
	for _, n := range []int{20, 2000} {
		x := tenantsWait(t, n, 2, func(x *swapping) {
			cfg := x.Config()
			cfg.MaxInFlightPerFlowPerBackend = 1 // so each holds one too many
			if err := x.Configure(x.clock, cfg); err != nil {
				t.Fatal(err)
			}
		}, func(c *Config) { c.MaxInFlightPerFlowPerBackend = 3 })
		asked[fmt.Sprint("requests ", n)] = x.asks(x.ends)

		var giant *Waiter
		bound := stock.Tokens(10 * n)
		x = tenantsWait(t, n, 1, func(x *swapping) {
			giant = x.arrives(0, "giant", 100*bound)
		}, bounded(bound), func(c *Config) { c.MaxInFlightPerFlow = 1 })
		asked[fmt.Sprint("tokens ", n)] = x.asks(x.ends)
		x.TrueUp(x.clock, giant.Lease(), 1, 1)
		went := 0
		for x.Preemptor() != nil {
			x.Preempt(x.clock)
		}
		for _, w := range x.waiting {
			if w.Stage() == StageGranted {
				went++
			}
		}
		if went != n {
			t.Errorf("%d of %d tenants take over their own once they can", went, n)
		}
	}
	for _, bound := range []string{"requests", "tokens"} {
		if few, many := asked[bound+" 20"], asked[bound+" 2000"]; few != many || many > 10 {
			t.Errorf("%s: one end asks %d questions with 20 tenants and %d with 2,000", bound, few, many)
		}
	}
}

// After a reload that bounds tokens, the pool is above its bound by the tokens in flight. A tenant at its cap takes
// over its own lease as soon as the pool would then be below the bound.
func TestATenantsOwnLeaseIsTakenOverOnceTheStockFalls(t *testing.T) {
	x := &swapping{shared: newShared(t, 1, 0, twoTiers, func(c *Config) { perBackend(c, 9, 9); c.MaxInFlightPerFlow = 1 })}
	low, other, another := x.arrives(1, "a", 100), x.arrives(1, "other", 1000), x.arrives(1, "another", 1000)
	x.FirstByte(other.Lease())
	x.FirstByte(another.Lease())
	cfg := x.Config()
	bounded(100)(&cfg)
	if err := x.Configure(x.clock, cfg); err != nil {
		t.Fatal(err)
	}
	high := x.arrives(0, "a", 1)
	if high.Stage() != StageWaiting || x.Preemptor() != nil {
		t.Fatalf("stage %d: without its own 2,000 would be there", high.Stage())
	}
	x.Complete(x.clock, another.Lease(), fairqueue.UnknownCost)
	if high.Stage() != StageWaiting || x.Preemptor() != nil {
		t.Fatalf("stage %d: without its own 1,000 would be there", high.Stage())
	}
	x.Complete(x.clock, other.Lease(), fairqueue.UnknownCost)
	if x.Preemptor() != high {
		t.Fatalf("stages %d, %d", high.Stage(), low.Stage())
	}
}

// While a lane is over its upper bound, the end of one of its requests makes at most one of the tenants waiting there
// at their caps search for its own victim. As soon as the lane is below the bound, all of them search.
func TestALaneOverItsBoundIsTriedOnce(t *testing.T) {
	asked := map[int]int{}
	for _, n := range []int{20, 2000} {
		x := &swapping{shared: newShared(t, 2, 0, func(c *Config) { threeTiers(c, 100_000) }, func(c *Config) {
			perBackend(c, 100_000, 100_000)
			c.Queue.TotalCapacity, c.Queue.FlowCapacity, c.MaxInFlightPerFlowPerBackend = n, n, 1
		})}
		for i := range 3 {
			x.others = append(x.others, x.arrives(0, fmt.Sprint("other-", i), 1, 0))
		}
		for i := range n {
			x.arrives(2, fmt.Sprint(i), 1, 0)
		}
		x.SetBackends(x.clock, []stock.Backend{{ID: 0, Slots: int32(n)}, {ID: 1, Slots: int32(10 * n)}}, nil)
		for i := range n {
			x.waiting = append(x.waiting, x.arrives(i%2, fmt.Sprint(i), 1, 0))
		}
		x.calls = countsCalls(x.shared)
		for range 2 {
			asked[n] = max(asked[n], x.asks(x.ends))
			if x.Preemptor() != nil {
				t.Fatal("the lane is over its bound")
			}
		}
		x.ends()
		for x.Preemptor() != nil {
			x.Preempt(x.clock)
		}
		for i, w := range x.waiting {
			if w.Stage() != StageGranted {
				t.Fatalf("number %d of %d: stage %d", i, n, w.Stage())
			}
		}
	}
	if asked[20] != asked[2000] || asked[20] > 16 {
		t.Errorf("questions for one end: %v", asked)
	}
}

// If no victim frees enough tokens, later events do not search every endpoint again: another preemptor, a victim more
// or less, a few tokens less. Each event causes as many queries with 20 endpoints as with 500. The first sufficient
// victim is preempted, whichever event made it sufficient.
func TestTokensAreSearchedOnce(t *testing.T) {
	for _, whole := range []bool{true, false} {
		asked := map[string][]int{}
		for _, n := range []int{20, 500} {
			x := &swapping{shared: newShared(t, n, 0, twoTiers, bounded(100), func(c *Config) { perBackend(c, 9, 9) })}
			var all []int
			if !whole {
				for e := range n - 1 {
					all = append(all, e)
				}
			}
			var giants, low []*Waiter
			for e := range n {
				low = append(low, x.arrives(1, "low", 1, e))
				giants = append(giants, x.arrives(1, "giant", 1000, e))
				x.FirstByte(giants[e].Lease())
			}
			first := x.arrives(0, "high", 1, all...)
			x.calls = countsCalls(x.shared)
			asks := func(what string, event func()) {
				t.Helper()
				asked[what] = append(asked[what], x.asks(event))
				if x.Preemptor() != nil {
					t.Fatalf("%s: nobody can preempt", what)
				}
			}
			asks("an arrival", func() { x.arrives(0, "high", 1, all...) })
			asks("a lower arrival", func() { x.arrives(1, "low", 1, all...) })
			asks("fewer tokens", func() { x.TrueUp(x.clock, giants[3].Lease(), 1, 500) })
			asks("more tokens", func() { x.Raise(x.clock, giants[5].Lease(), 1, 2000) })
			asks("a victim less", func() { x.Complete(x.clock, low[4].Lease(), fairqueue.UnknownCost) })
			x.TrueUp(x.clock, giants[3].Lease(), 1, 99)
			if x.Preemptor() != first {
				t.Fatalf("stage %d: without the victim there 99 tokens are at an endpoint", first.Stage())
			}
			x.Preempt(x.clock)
			if first.Stage() != StageGranted || low[3].Outcome() != OutcomePreempted || x.Preemptor() != nil {
				t.Errorf("stages %d, %d", first.Stage(), low[3].Stage())
			}
		}
		for what, n := range asked {
			if n[0] != n[1] || n[1] > 16 {
				t.Errorf("whole pool: %t, %s: %d questions with 20 endpoints, %d with 500", whole, what, n[0], n[1])
			}
		}
	}
}
