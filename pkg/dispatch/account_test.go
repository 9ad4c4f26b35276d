package dispatch

import (
	"fmt"
	"testing"
	"time"
)

// TestRestingAccounts checks what stays known of flows without requests: little, and nothing that counts.
func TestRestingAccounts(t *testing.T) {
	var f flowAccounts
	busy := f.addWaiter(0, "busy")
	f.removeWaiter(busy)
	f.addWaiter(0, "busy") // it is live again, and in the ring
	for round := range 3 {
		for i := range 2 * mostResting {
			a := f.addWaiter(i%2, fmt.Sprint(i))
			if a.flow != fmt.Sprint(i) || a.tier != i%2 || a.pace != (pace{}) || a.waiting != 1 || a.inflight != 0 {
				t.Fatalf("round %d: flow %d begins with %+v", round, i, a)
			}
			a.pace.beginWait(time.Unix(1, 0))
			f.addLease(a, 1)
			f.removeWaiter(a)
			f.removeLease(a, 1)
		}
	}
	if n := len(f.known[0]) + len(f.known[1]); n > mostResting+1 || f.n != 1 {
		t.Errorf("%d accounts are known, %d are live", n, f.n)
	}
	if f.find(0, "busy") != busy || busy.waiting != 1 {
		t.Error("a live account was forgotten")
	}
	first, second := f.addWaiter(0, "0"), f.addWaiter(1, "1")
	if order := f.inOrder(); len(order) != 3 || order[0] != busy || order[1] != first || order[2] != second {
		t.Errorf("not in order: %v", order)
	}
	f.removeWaiter(first)
	if again := f.addWaiter(0, "0"); again != first || f.inOrder()[2] != again {
		t.Error("a flow that has begun anew is not the newest")
	}
}
