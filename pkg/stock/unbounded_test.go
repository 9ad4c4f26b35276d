package stock

import (
	"math"
	"testing"
)

// An unbounded stock is below its bounds whatever it has, at backends that report slots too, and reserves nothing, since
// nobody goes without. No backend is no capacity.
func TestUnbounded(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Unbounded = true
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	l := New(cfg)
	l.SetReservations([]Reservation{{Tier: 0, Floor: 2, PerSlot: One / 2}, {Tier: 1, PerSlot: One}, {Tier: 2}})
	if l.Unbounded() || l.Capacity() != 0 || l.BelowUpper() {
		t.Errorf("without a backend: unbounded %v, capacity %d", l.Unbounded(), l.Capacity())
	}
	l.SetBackends([]Backend{{ID: 0}, {ID: 1, Slots: 1}})
	if with, _ := l.Bounds(1); with != l.config.BoundsOf(Backend{}) {
		t.Errorf("slots bound a backend: %+v", with)
	}
	leases := make([]Lease, 100_000)
	for i := range leases {
		leases[i] = NewLease(2, 10, false)
		if !l.BelowLower() || !l.BelowUpper() || l.Available(2) <= 0 || l.AvailableTo() != 0b111 {
			t.Fatalf("with %d leases something is closed", i)
		}
		l.Take(&leases[i], l.emptiest())
	}
	if !l.Unbounded() || l.Reserved(0) != 0 || l.Reserved(1) != 0 {
		t.Errorf("unbounded %v, reserved %d and %d", l.Unbounded(), l.Reserved(0), l.Reserved(1))
	}
	// A reload to bounds and back: nothing is lost, and the bounds hold at once.
	bounded := DefaultConfig()
	l.Configure(bounded)
	if l.Unbounded() || l.BelowUpper() || l.Capacity() != 4 || l.Reserved(0) != 2 { // 2.2 + 1, rounded up
		t.Errorf("bounded again: capacity %d, reserved %d", l.Capacity(), l.Reserved(0))
	}
	l.Configure(cfg)
	if !l.BelowLower() || l.Stock() != len(leases) {
		t.Errorf("unbounded again, with a stock of %d", l.Stock())
	}
	for i := range leases {
		l.Settle(&leases[i])
	}
	if !l.BelowLower() || l.Stock() != 0 {
		t.Errorf("a stock of %d is left", l.Stock())
	}
}

// Slots are a positive number, or not set.
func TestNegativeSlotsAreRefused(t *testing.T) {
	for _, n := range []int{-1, math.MinInt, MaxPerBackend + 1} {
		cfg := DefaultConfig()
		if cfg.SlotsPerBackend = n; cfg.Validate() == nil {
			t.Errorf("%d is taken", n)
		}
	}
}
