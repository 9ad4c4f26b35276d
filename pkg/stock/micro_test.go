package stock

import (
	"math"
	"math/big"
	"testing"
)

// Sums that exceed 64 bits are exact, whatever is added and subtracted, and are shown as the largest number.
func TestTotalIsExact(t *testing.T) {
	var sum total
	want := new(big.Int)
	check := func() {
		t.Helper()
		units, rest := new(big.Int).QuoRem(want, big.NewInt(int64(One)), new(big.Int))
		if rest.Sign() > 0 {
			units.Add(units, big.NewInt(1))
		}
		if got := big.NewInt(sum.ceil()); got.Cmp(largest(units)) != 0 {
			t.Errorf("%v millionths: %v units, want %v", want, got, units)
		}
		if got := big.NewInt(int64(sum.micro())); got.Cmp(largest(want)) != 0 {
			t.Errorf("%v millionths shown as %v", want, got)
		}
	}
	addends := []Micro{0, 1, One - 1, One, math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64 - 1, 999_999}
	for _, m := range addends {
		sum.add(m)
		want.Add(want, big.NewInt(int64(m)))
		check()
	}
	for _, m := range addends {
		sum.subtract(m)
		want.Sub(want, big.NewInt(int64(m)))
		check()
	}
	if sum != (total{}) {
		t.Errorf("%v remains", sum)
	}
	// Beyond 2^63 units too.
	sum = total{hi: uint64(One) / 2, lo: 0} // 2^63 units exactly
	if sum.ceil() != math.MaxInt64 {
		t.Errorf("%d units, want the largest number", sum.ceil())
	}
	if sum = (total{hi: uint64(One), lo: 0}); sum.ceil() != math.MaxInt64 || sum.micro() != math.MaxInt64 {
		t.Errorf("%d units, %d millionths, want the largest number", sum.ceil(), sum.micro())
	}
}

// largest returns n, clamped to the largest int64.
func largest(n *big.Int) *big.Int {
	if most := big.NewInt(math.MaxInt64); n.Cmp(most) > 0 {
		return most
	}
	return n
}

// Fractions are rounded up.
func TestCeil(t *testing.T) {
	for _, c := range []struct {
		m    Micro
		want int
	}{{0, 0}, {1, 1}, {One - 1, 1}, {One, 1}, {One + 1, 2}, {math.MaxInt64, math.MaxInt64/1_000_000 + 1}} {
		if got := c.m.Ceil(); got != c.want {
			t.Errorf("%d millionths: %d, want %d", c.m, got, c.want)
		}
	}
}
