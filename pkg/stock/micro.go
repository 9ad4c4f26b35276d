package stock

import (
	"math"
	"math/bits"
)

// Micro is a decimal in millionths, of a request, of a token or of a share.
type Micro int64

// One is 1.
const One Micro = 1_000_000

// Ceil returns the value in whole units, rounded up.
func (m Micro) Ceil() int {
	n := int(m / One)
	if m%One > 0 {
		n++
	}
	return n
}

// Float is for display and gauges only; no decision uses it.
func (m Micro) Float() float64 { return float64(m) / float64(One) }

// total is an exact sum of non-negative decimals, in 128 bits, so that every addend can be subtracted again.
type total struct{ hi, lo uint64 }

func (t *total) add(m Micro) {
	var carry uint64
	t.lo, carry = bits.Add64(t.lo, uint64(m), 0)
	t.hi += carry
}

func (t *total) subtract(m Micro) {
	var borrow uint64
	t.lo, borrow = bits.Sub64(t.lo, uint64(m), 0)
	t.hi -= borrow
}

// micro returns the sum, clamped to the largest Micro.
func (t total) micro() Micro {
	if t.hi > 0 || t.lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return Micro(t.lo)
}

// ceil returns the sum in whole units, rounded up and clamped to the largest int64. A whole number is below it exactly
// if it is below the sum.
func (t total) ceil() int64 {
	if t.hi >= uint64(One) {
		return math.MaxInt64
	}
	units, rest := bits.Div64(t.hi, t.lo, uint64(One))
	if rest > 0 {
		units++
	}
	return int64(min(units, math.MaxInt64))
}
