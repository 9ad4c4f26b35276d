package stock

import (
	"math"
	"testing"
)

// both returns a ledger of one backend with bounds of 8, 10 and 12 requests and 900, 1,000 and 1,100 units of cost.
func both() *Ledger {
	l := New(Config{
		WatermarkPerBackend: 10, PercentageDeviationForBounds: One / 10, LowerBoundPerBackend: 8, UpperBoundPerBackend: 12,
		Cost: CostConfig{Watermark: 1000},
	})
	l.SetBackends(pool(1))
	return l
}

// take takes n leases with the given cost.
func take(l *Ledger, n int, cost int64) []*Lease {
	leases := make([]*Lease, n)
	for i := range leases {
		lease := NewLease(0, cost, false)
		leases[i] = &lease
		l.Take(leases[i])
	}
	return leases
}

// A backend's contribution in units of cost is derived, explicit, or exactly what it reports.
func TestCostBand(t *testing.T) {
	for _, c := range []struct {
		name    string
		config  CostConfig
		backend Backend
		want    Band
	}{
		{"derived by the deviation of a tenth", CostConfig{Watermark: 5}, Backend{}, Band{4_500_000, 5 * One, 5_500_000}},
		{"explicit", CostConfig{Watermark: 50, Lower: 20, Upper: 70}, Backend{}, Band{20 * One, 50 * One, 70 * One}},
		{"the smallest explicit bounds", CostConfig{Watermark: 1, Lower: 1, Upper: 1}, Backend{}, Band{One, One, One}},
		{"as it reports", CostConfig{Watermark: 50, Lower: 20}, Backend{MaxCost: 80}, Band{80 * One, 80 * One, 80 * One}},
		{
			"it reports more than there can be",
			CostConfig{Watermark: 50},
			Backend{MaxCost: math.MaxInt64},
			Band{MaxCostPerBackend * One, MaxCostPerBackend * One, MaxCostPerBackend * One},
		},
		{"off, and it reports", CostConfig{}, Backend{MaxCost: 80}, Band{}},
	} {
		l := New(withCost(c.config))
		l.SetBackend(c.backend)
		if l.CostBand() != c.want {
			t.Errorf("%s: %v, want %v", c.name, l.CostBand(), c.want)
		}
	}
}

// With both units bounded, stock must be below the bound in both, each compared exactly.
func TestBothUnitsBound(t *testing.T) {
	for _, c := range []struct {
		name                   string
		requests               int
		cost                   int64 // of all of them
		belowLower, belowUpper bool
	}{
		{"below in both", 7, 899, true, true},
		{"requests at their lower bound", 8, 8, false, true},
		{"cost at its lower bound", 2, 900, false, true},
		{"requests at their upper bound", 12, 12, false, false},
		{"cost at its upper bound", 2, 1100, false, false},
		{"one unit below it", 2, 1099, false, true},
		{"nothing there", 0, 0, true, true},
	} {
		l := both()
		for i := range c.requests {
			cost := int64(1)
			if i == 0 {
				cost = c.cost - int64(c.requests) + 1
			}
			take(l, 1, cost)
		}
		if l.Stock() != c.requests || l.Cost() != c.cost {
			t.Fatalf("%s: stock %d of cost %d", c.name, l.Stock(), l.Cost())
		}
		if l.BelowLower() != c.belowLower || l.BelowUpper() != c.belowUpper {
			t.Errorf("%s: below lower %t, below upper %t; want %t and %t", c.name, l.BelowLower(), l.BelowUpper(), c.belowLower, c.belowUpper)
		}
		checkLedger(t, l)
	}
}

// Without a watermark of cost, no cost is too high; it is counted nevertheless.
func TestCostIsOffByDefault(t *testing.T) {
	l := New(DefaultConfig())
	l.SetBackends(pool(1))
	take(l, 1, MaxCost)
	if !l.BelowLower() || !l.BelowUpper() || l.Cost() != MaxCost || l.CostBand() != (Band{}) {
		t.Errorf("below lower %t, below upper %t, cost %d, its band %v", l.BelowLower(), l.BelowUpper(), l.Cost(), l.CostBand())
	}
}

// An idle pool takes a request that costs more than all its bounds, and then nothing else.
func TestOneLargeRequestGoes(t *testing.T) {
	l := both()
	if !l.BelowLower() {
		t.Fatal("an idle pool releases nobody")
	}
	lease := take(l, 1, 1_000_000)[0]
	if l.BelowLower() || l.BelowUpper() {
		t.Error("more is released beside a request that is over the bound by itself")
	}
	l.Settle(lease)
	if !l.BelowLower() || l.Cost() != 0 {
		t.Errorf("cost %d remains", l.Cost())
	}
}

// A lease's cost can be raised while it is held, and trued up repeatedly; settling subtracts its latest cost. A settled
// lease cannot be changed.
func TestAdjust(t *testing.T) {
	l := both()
	other := take(l, 1, 100)[0]
	lease := take(l, 1, 500)[0]
	for _, c := range []struct {
		to         int64
		stock      int64
		belowUpper bool
	}{
		{1000, 1100, false}, // its answer has grown
		{999, 1099, true},
		{30, 130, true}, // the usage is known
		{0, 100, true},
		{-5, 100, true},
		{MaxCost + 1, 100 + MaxCost, false},
		{700, 800, true},
	} {
		if !l.Adjust(lease, c.to) || l.Cost() != c.stock || l.BelowUpper() != c.belowUpper || l.Stock() != 2 {
			t.Errorf("adjusted to %d: cost %d, want %d; below the upper bound %t", c.to, l.Cost(), c.stock, l.BelowUpper())
		}
		checkLedger(t, l)
	}
	if lease.Cost() != 700 {
		t.Errorf("it stands for %d, want 700", lease.Cost())
	}
	if !l.Settle(lease) || l.Cost() != 100 || l.Settle(lease) {
		t.Errorf("cost %d after its settlement, want the other's 100", l.Cost())
	}
	if l.Adjust(lease, 50) || l.Cost() != 100 {
		t.Errorf("adjusted after its settlement: cost %d", l.Cost())
	}
	l.Settle(other)
	if l.Cost() != 0 || l.Stock() != 0 {
		t.Errorf("stock %d, cost %d remain", l.Stock(), l.Cost())
	}
}

// Whether there is room after one lease is settled depends on that lease's cost; the number of requests alone does not
// tell.
func TestAfterOneLease(t *testing.T) {
	l := both()
	large, small := take(l, 1, 1000)[0], take(l, 1, 200)[0]
	if !l.BelowUpperAfter(large) || !l.BelowUpperAfter(small) {
		t.Error("1,200 of 1,100: without either it is below")
	}
	third := take(l, 1, 100)[0] // 1,300
	if !l.BelowUpperAfter(large) || l.BelowUpperAfter(third) || l.BelowUpperAfter(small) {
		t.Errorf("after the large one %t, the small one %t, the third %t; want true, false, false",
			l.BelowUpperAfter(large), l.BelowUpperAfter(small), l.BelowUpperAfter(third))
	}
	if !l.BelowUpperWithoutOne() {
		t.Error("3 of 12 requests")
	}
}

// No value that a client or a peer can choose makes a sum wrap around.
func TestCostSaturates(t *testing.T) {
	l := both()
	take(l, 100, math.MaxInt64)
	if l.Cost() != 100*MaxCost || l.BelowUpper() {
		t.Errorf("cost %d, want %d", l.Cost(), 100*int64(MaxCost))
	}
	take(l, 1, math.MinInt64)
	if l.Cost() != 100*MaxCost {
		t.Errorf("a cost below 0 counts %d", l.Cost()-100*MaxCost)
	}
	l.SetForeign(Foreign{0, Amount{math.MaxInt, math.MaxInt64}})
	if l.Foreign() != (Amount{MaxPerBackend, MaxCost}) {
		t.Errorf("foreign %v", l.Foreign())
	}
	l.SetForeign(Foreign{0, Amount{math.MinInt, math.MinInt64}})
	if l.Foreign() != (Amount{}) {
		t.Errorf("foreign below 0 counts %v", l.Foreign())
	}
	checkLedger(t, l)
}
