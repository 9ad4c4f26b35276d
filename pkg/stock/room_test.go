package stock

import "testing"

// held returns n leases of a tier that are held at a backend.
func held(l *Ledger, at BackendID, tier, n int) []*Lease {
	leases := make([]*Lease, n)
	for i := range leases {
		lease := NewLease(tier, 1, false)
		leases[i] = &lease
		l.Take(leases[i], at)
	}
	return leases
}

// A rolling update: backend 0 leaves with all its streams running, and backend 1 comes in its place. The new one has its
// whole room at once, for each tier, whatever the old one still holds; a lease of the old one is settled once.
func TestABackendThatLeavesTakesItsStockAlong(t *testing.T) {
	for name, change := range map[string]func(l *Ledger){
		"one by one": func(l *Ledger) {
			l.SetBackend(Backend{ID: 1, Slots: 8})
			l.RemoveBackend(0)
		},
		"all at once": func(l *Ledger) { l.SetBackends([]Backend{{ID: 1, Slots: 8}}) },
	} {
		t.Run(name, func(t *testing.T) {
			l := slots(8, floors(2, 0, 0, 0)...)
			old := held(l, 0, bulk, 8)
			if l.BelowLower() || l.Available(system) != 0 {
				t.Fatalf("full: below lower %t, available %d", l.BelowLower(), l.Available(system))
			}
			change(l)
			if !l.BelowLower() || !l.BelowUpper() || l.Available(system) != 8 || l.Available(bulk) != 6 || l.AtReady() != 0 || l.Stock() != 8 {
				t.Errorf("the new one: below lower %t, upper %t, system %d, bulk %d, at ready %d, stock %d",
					l.BelowLower(), l.BelowUpper(), l.Available(system), l.Available(bulk), l.AtReady(), l.Stock())
			}
			fresh := held(l, 1, bulk, 6)
			if !l.BelowUpper() || l.Available(bulk) != 0 || l.Available(system) != 2 {
				t.Errorf("6 of 8: below upper %t, bulk %d, system %d", l.BelowUpper(), l.Available(bulk), l.Available(system))
			}
			for _, lease := range old {
				if !l.Settle(lease) || l.Settle(lease) || l.Available(system) != 2 {
					t.Fatal("a lease of the old one changes what is free at the new one, or is settled twice")
				}
			}
			if len(l.backends) != 1 {
				t.Errorf("%d backends are remembered", len(l.backends))
			}
			l.RemoveBackend(1)
			l.SetBackend(Backend{ID: 1, Slots: 8}) // it is back, with its leases
			if l.AtReady() != 6 || l.Available(bulk) != 0 {
				t.Errorf("back: %d there, available %d", l.AtReady(), l.Available(bulk))
			}
			for _, lease := range fresh {
				l.Settle(lease)
			}
			checkLedger(t, l)
		})
	}
}

// One of two backends shrinks below its stock: the excess does not count against the other one, for release, bypass,
// reservations and preemption alike, and a lease that ends there makes no room until the excess is gone.
func TestWhatExceedsAShrunkenBoundCountsForItsBackendOnly(t *testing.T) {
	l := slots(0, floors(2, 0, 0, 0)...)
	l.SetBackends([]Backend{{ID: 0, Slots: 64}, {ID: 1, Slots: 64}})
	first := held(l, 0, bulk, 64)
	held(l, 1, bulk, 60)
	l.SetBackend(Backend{ID: 0, Slots: 16})
	for n := 64; n > 16; n-- {
		if !l.BelowLower() || !l.BelowUpper() || l.Available(system) != 4 || l.Available(bulk) != 2 || l.TakesWithoutOne(0) {
			t.Fatalf("%d of 16: below lower %t, upper %t, system %d, bulk %d, takes another without one %t",
				n, l.BelowLower(), l.BelowUpper(), l.Available(system), l.Available(bulk), l.TakesWithoutOne(0))
		}
		l.Settle(first[n-1])
	}
	if !l.TakesWithoutOne(0) || l.Available(system) != 4 {
		t.Errorf("16 of 16: takes another without one %t, system %d", l.TakesWithoutOne(0), l.Available(system))
	}
	if l.Settle(first[0]); l.Available(system) != 5 {
		t.Errorf("15 of 16: system %d", l.Available(system))
	}
	checkLedger(t, l)
}

// With bounds that are no whole numbers the pool's is their sum: 25 backends with 2.2 hold 55, although each alone takes 3.
func TestFractionsAddUp(t *testing.T) {
	l := New(DefaultConfig())
	l.SetBackends(pool(25))
	for id := range BackendID(25) {
		held(l, id, 0, 2)
	}
	for id := range BackendID(5) {
		if !l.BelowUpper() {
			t.Fatalf("%d of 55", l.Stock())
		}
		held(l, id, 0, 1)
	}
	if l.BelowUpper() {
		t.Error("55 are below 55")
	}
	held(l, 0, 0, 3) // 6 of 2.2: the fourth to sixth count for nobody
	if l.Settle(held(l, 1, 0, 1)[0]); l.BelowUpper() || l.Headroom(0) != 0 {
		t.Errorf("headroom %d", l.Headroom(0))
	}
}

// A lease that moves counts where it is.
func TestMove(t *testing.T) {
	l := slots(0)
	l.SetBackends([]Backend{{ID: 0, Slots: 2}, {ID: 1, Slots: 2}})
	lease := held(l, 0, 0, 3)[0]
	if l.Headroom(0) != 2 {
		t.Errorf("headroom %d", l.Headroom(0))
	}
	if l.Move(lease, 1); l.Headroom(0) != 1 {
		t.Errorf("moved: headroom %d", l.Headroom(0))
	}
	if l.Move(lease, 7); l.Headroom(0) != 2 || l.Stock() != 3 || l.AtReady() != 2 {
		t.Errorf("moved away: headroom %d, stock %d", l.Headroom(0), l.Stock())
	}
	l.Settle(lease)
	checkLedger(t, l)
}
