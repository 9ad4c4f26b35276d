package dispatch

import (
	"fmt"
	"testing"
	"time"
)

// TestRestingAccounts checks the accounts of flows without requests: they are few, and hold no counts.
func TestRestingAccounts(t *testing.T) {
	var f flowAccounts
	busy := f.addWaiter(0, "busy")
	f.removeWaiter(busy)
	f.addWaiter(0, "busy") // it is live again, and in the ring
	for round := range 3 {
		for i := range 2 * mostResting {
			a := f.addWaiter(i%2, fmt.Sprint(i))
			if a.tenant.key != fmt.Sprint(i) || a.tier != i%2 || a.pace != (pace{}) || a.waiting != 1 || a.inflight != 0 {
				t.Fatalf("round %d: flow %d begins with %+v", round, i, a)
			}
			a.pace.beginWait(since(time.Unix(1, 0)))
			f.addLease(a, 1)
			f.removeWaiter(a)
			a.removeLease(1)
			f.restIfIdle(a)
		}
	}
	n := 0
	for _, t := range f.known {
		n += len(t.flows)
	}
	if n > mostResting+1 || f.n != 1 {
		t.Errorf("%d accounts are known, %d are live", n, f.n)
	}
	if f.find(0, "busy") != busy || busy.waiting != 1 {
		t.Error("a live account was forgotten")
	}
	first, second := f.addWaiter(0, "0"), f.addWaiter(1, "1")
	if order := f.inOrder(); len(order) != 3 || order[0] != busy.tenant || order[1] != first.tenant || order[2] != second.tenant {
		t.Errorf("not in order: %v", order)
	}
	f.removeWaiter(first)
	if again := f.addWaiter(0, "0"); again != first || f.inOrder()[2] != again.tenant {
		t.Error("a flow that has begun anew is not the newest")
	}
}

// A tenant's account is the sum of its flows in all tiers. It is live while one of them is, and starts anew afterwards.
func TestATenantIsItsFlows(t *testing.T) {
	var f flowAccounts
	high, low := f.addWaiter(0, "a"), f.addWaiter(2, "a")
	if high.tenant != low.tenant || f.find(2, "a") != low || f.find(1, "a") != nil {
		t.Fatal("two flows of a key are one tenant's")
	}
	a := high.tenant
	f.addLease(high, 5)
	f.removeWaiter(high)
	f.addLease(low, 7)
	f.removeWaiter(low)
	if a.inflight != 2 || a.tokens != 12 || a.waiting != 0 || f.n != 2 || a.live != 2 {
		t.Errorf("%+v", a)
	}
	high.removeLease(5)
	f.restIfIdle(high)
	if a.inflight != 1 || a.tokens != 7 || f.n != 1 || a.live != 1 || a.since != 1 {
		t.Errorf("%+v", a)
	}
	f.addWaiter(0, "a")
	if a.since != 1 || a.live != 2 {
		t.Errorf("%+v: it went on", a)
	}
	f.removeWaiter(high)
	low.removeLease(7)
	f.restIfIdle(low)
	if f.n != 0 || a.live != 0 || a.inflight != 0 || a.tokens != 0 {
		t.Errorf("%+v", a)
	}
	if f.addWaiter(2, "a"); a.since != 2 {
		t.Errorf("%+v: it began anew", a)
	}
}
