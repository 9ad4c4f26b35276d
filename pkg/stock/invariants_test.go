package stock

import (
	"slices"
	"testing"
)

// checkLedger checks the invariants of the package comment.
func checkLedger(t testing.TB, l *Ledger) {
	t.Helper()
	inflight, reserved, inUse := 0, 0, TierSet(0)
	for tier := range MaxTiers {
		n := l.Inflight(tier)
		if n < 0 || l.Reserved(tier) < 0 {
			t.Fatalf("tier %d: %d in flight, %d reserved", tier, n, l.Reserved(tier))
		}
		inflight += n
		reserved += l.Reserved(tier)
		if n > 0 {
			inUse |= 1 << tier
		}
	}
	if l.Stock() != inflight || l.Stock() < 0 || l.InUse() != inUse {
		t.Fatalf("stock %d, in flight %d, in use %x (%x)", l.Stock(), inflight, l.InUse(), inUse)
	}
	if reserved > l.Capacity() {
		t.Fatalf("%d reserved of %d", reserved, l.Capacity())
	}
	if l.Promoted() < 0 || l.Promoted() > l.Stock() {
		t.Fatalf("%d promoted of %d", l.Promoted(), l.Stock())
	}
	if l.Ready() == 0 && (l.Capacity() != 0 || l.AvailableTo() != 0) {
		t.Fatalf("no ready backend, capacity %d, available to %x", l.Capacity(), l.AvailableTo())
	}
	for i, b := range l.backends {
		if l.at[b.ID] != i {
			t.Fatalf("backend %d is number %d of %d", b.ID, i, l.at[b.ID])
		}
	}
	// The set agrees with the single queries, and what is available to a lower tier is available to a higher one.
	before := 0
	for _, r := range slices.Backward(l.order) {
		tier := r.Tier
		available := l.Available(tier)
		if (available > 0) != (l.AvailableTo()&(1<<tier) != 0) {
			t.Fatalf("tier %d: available %d, set %x", tier, available, l.AvailableTo())
		}
		if available < before {
			t.Fatalf("tier %d may take %d, a lower one %d", tier, available, before)
		}
		before = available
	}
}
