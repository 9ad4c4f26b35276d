package stock

import (
	"math"
	"testing"
)

// The golden numbers of SMG's priority scheduler, whose capacity is in slots: lower = watermark = upper = slots.

const (
	system = iota
	interactive
	standard // SMG's "default"
	bulk
)

// slots returns a ledger with a capacity of n and tiers with these baselines.
func slots(n int, baselines ...Reservation) *Ledger {
	l := New(DefaultConfig())
	l.SetReservations(baselines)
	l.setSlots(n)
	return l
}

func (l *Ledger) setSlots(n int) { l.SetBackends([]Backend{{Slots: int32(n)}}) }

func floors(system, interactive, standard, bulk int) []Reservation {
	return []Reservation{{Tier: 0, Floor: system}, {Tier: 1, Floor: interactive}, {Tier: 2, Floor: standard}, {Tier: 3, Floor: bulk}}
}

// smgDefaults returns the released version's baselines: system 32, interactive 128 or a quarter, default a tenth, bulk
// none.
func smgDefaults() []Reservation {
	return []Reservation{
		{Tier: system, Floor: 32},
		{Tier: interactive, Floor: 128, PerSlot: One / 4},
		{Tier: standard, PerSlot: One / 10},
		{Tier: bulk},
	}
}

// takeFor takes leases for a tier while something is available to it, at most n, and returns them.
func takeFor(l *Ledger, tier, n int) (taken []*Lease) {
	for len(taken) < n && l.Available(tier) > 0 {
		lease := &Lease{tier: uint8(tier)}
		l.Take(lease, l.emptiest())
		taken = append(taken, lease)
	}
	return taken
}

// The reserved slots at each capacity: "With the defaults: cap 256 → 32/128/26/0; 800 → 32/200/80/0; 256 → 80 →
// 32/48/0/0, back to 256 fully restored; [bulk 5, default 20, interactive 128, system 32] at 100 → system 32,
// interactive 68, rest 0."
func TestReservedGolden(t *testing.T) {
	l := slots(1, smgDefaults()...)
	for _, c := range []struct {
		capacity int
		want     [4]int
	}{
		{256, [4]int{32, 128, 26, 0}},
		{800, [4]int{32, 200, 80, 0}},
		{256, [4]int{32, 128, 26, 0}},
		{80, [4]int{32, 48, 0, 0}},
		{256, [4]int{32, 128, 26, 0}},
		{200, [4]int{32, 128, 20, 0}},
		{20, [4]int{20, 0, 0, 0}},
	} {
		l.setSlots(c.capacity)
		wantReserved(t, l, c.want)
	}
	l.SetBackends(nil)
	wantReserved(t, l, [4]int{})
	l.setSlots(256)
	wantReserved(t, l, [4]int{32, 128, 26, 0})
	wantReserved(t, slots(100, floors(32, 128, 20, 5)...), [4]int{32, 68, 0, 0})
}

func wantReserved(t *testing.T, l *Ledger, want [4]int) {
	t.Helper()
	var got [4]int
	for tier := range got {
		got[tier] = l.Reserved(tier)
	}
	if got != want {
		t.Errorf("capacity %d: reserved %v, want %v", l.Capacity(), got, want)
	}
	checkLedger(t, l)
}

// "Cap 128, system reserves 32: bulk avail 96, system 128; system using all 32: bulk still 96".
func TestUnusedReservationIsHeldBack(t *testing.T) {
	l := slots(128, floors(32, 0, 0, 0)...)
	if l.Available(bulk) != 96 || l.Available(system) != 128 {
		t.Errorf("bulk %d, system %d, want 96 and 128", l.Available(bulk), l.Available(system))
	}
	takeFor(l, system, 32)
	if l.Available(bulk) != 96 {
		t.Errorf("bulk %d while system uses its 32, want 96", l.Available(bulk))
	}
	takeFor(l, system, 1)
	if l.Available(bulk) != 95 {
		t.Errorf("bulk %d while system uses 33, want 95", l.Available(bulk))
	}
	checkLedger(t, l)
}

// "Cap 4, system reserves 2: bulk gets 2, is refused, system gets 2, full".
func TestReservedSlotsStayForTheirTier(t *testing.T) {
	l := slots(4, floors(2, 0, 0, 0)...)
	if n := len(takeFor(l, bulk, 9)); n != 2 {
		t.Errorf("bulk got %d, want 2", n)
	}
	if n := len(takeFor(l, system, 9)); n != 2 {
		t.Errorf("system got %d, want 2", n)
	}
	if l.AvailableTo() != 0 {
		t.Errorf("full, and available to %x", l.AvailableTo())
	}
}

// "200 → exactly 20 bulk admissions, the 21st refused".
func TestTwentyBulkAdmissions(t *testing.T) {
	l := slots(200, smgDefaults()...)
	if n := len(takeFor(l, bulk, 1000)); n != 20 {
		t.Errorf("%d bulk admissions, want 20", n)
	}
	checkLedger(t, l)
}

// "50 in flight, shrink to 40: nobody admitted"; the leases stay until they are settled.
func TestShrinkEvictsNobody(t *testing.T) {
	l := slots(50, floors(0, 0, 0, 0)...)
	leases := takeFor(l, bulk, 1000)
	l.setSlots(40)
	for range 10 {
		if l.Stock() < 40 || l.Available(system) != 0 || l.BelowUpper() {
			t.Fatalf("stock %d of 40: available to system %d, below the bound %t", l.Stock(), l.Available(system), l.BelowUpper())
		}
		l.Settle(leases[0])
		leases = leases[1:]
	}
	if l.Stock() != 40 || l.Available(system) != 0 {
		t.Errorf("stock %d, available %d", l.Stock(), l.Available(system))
	}
	l.Settle(leases[0])
	if l.Available(system) != 1 {
		t.Errorf("available %d below the capacity, want 1", l.Available(system))
	}
	checkLedger(t, l)
}

// perSlot is a decimal; its product with the capacity is rounded up only if it is not whole.
func TestPerSlotIsExact(t *testing.T) {
	for _, c := range []struct {
		perSlot  Micro
		capacity int
		want     int
	}{
		{100_000, 30, 3}, // 0.1 × 30 is more than 3 in binary
		{100_000, 31, 4},
		{1, 1_000_000, 1},
		{1, 999_999, 1},
		{333_333, 3, 1},
		{333_334, 3, 2},
		{5 * One, 10, 10},
		{1 << 62, 1_000_000, 1_000_000},
		{0, 10, 0},
	} {
		l := slots(c.capacity, Reservation{Tier: 0, PerSlot: c.perSlot})
		if got := l.Reserved(0); got != c.want {
			t.Errorf("%d millionths of %d: %d, want %d", c.perSlot, c.capacity, got, c.want)
		}
	}
}

// full returns n backends of the largest size.
func full(n int) []Backend {
	backends := pool(n)
	for i := range backends {
		backends[i].Slots = MaxPerBackend
	}
	return backends
}

// If the product of the share and the capacity overflows a number, all slots are reserved, and no more.
func TestReservationBeyondAllNumbers(t *testing.T) {
	l := New(DefaultConfig())
	l.SetReservations([]Reservation{{Tier: 0, PerSlot: math.MaxInt64}, {Tier: 1, Floor: 5}})
	l.SetBackends(full(3))
	if l.Reserved(0) != 3*MaxPerBackend || l.Reserved(1) != 0 {
		t.Errorf("reserved %d and %d of %d: want all and none", l.Reserved(0), l.Reserved(1), l.Capacity())
	}
	checkLedger(t, l)
	l.SetReservations([]Reservation{{Tier: 0, PerSlot: 1 << 62}})
	l.SetBackends(full(4))
	if l.Reserved(0) != 4*MaxPerBackend { // the product is 2^64 exactly
		t.Errorf("reserved %d of %d: want all", l.Reserved(0), l.Capacity())
	}
}

// A removed tier keeps its leases in the account, without a reservation.
func TestDrainingTierStaysAccounted(t *testing.T) {
	l := slots(4, floors(0, 2, 0, 0)...)
	leases := takeFor(l, interactive, 3)
	l.SetReservations([]Reservation{{Tier: system}, {Tier: bulk}})
	if l.Available(bulk) != 1 || l.InUse() != 1<<interactive || l.Reserved(interactive) != 0 {
		t.Errorf("bulk %d, in use %x, reserved %d", l.Available(bulk), l.InUse(), l.Reserved(interactive))
	}
	for _, lease := range leases {
		l.Settle(lease)
	}
	if l.InUse() != 0 || l.Available(bulk) != 4 {
		t.Errorf("in use %x, bulk %d", l.InUse(), l.Available(bulk))
	}
	checkLedger(t, l)
}
