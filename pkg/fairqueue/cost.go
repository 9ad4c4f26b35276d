package fairqueue

import "math/bits"

// Cost is the work of a request, in the unit of its profile: 1 per request in wfq, tokens in the token profiles. Its
// range is 1 to MaxCost; other values are clamped.
type Cost int64

// UnknownCost stands for an actual cost that is not known.
const UnknownCost Cost = 0

// MaxCost is the largest cost of one request.
const MaxCost Cost = 1 << 30

func (c Cost) clamp() Cost { return max(1, min(c, MaxCost)) }

// Weight is a flow's or a tier's weight in millionths: WeightOne is weight 1. Its range is MinWeight to MaxWeight.
type Weight int64

// The weights: one, and the range from a thousandth to a million.
const (
	WeightOne Weight = 1_000_000
	MinWeight Weight = WeightOne / 1_000
	MaxWeight Weight = WeightOne * 1_000_000
)

// VirtualTime is a tag or the virtual time of a class: cost over weight in fixed point with virtualBits binary digits.
// It rolls over: only differences matter, and they must stay below 2^63, which wfqrebase.go ensures. The largest
// increment is MaxCost/MinWeight = 2^30 · 2^20 · 1000 < 2^60.
type VirtualTime uint64

const virtualBits = 20

// before orders two virtual times across the rollover.
func (v VirtualTime) before(w VirtualTime) bool { return int64(v-w) < 0 }

// later returns the later of the two.
func (v VirtualTime) later(w VirtualTime) VirtualTime {
	if v.before(w) {
		return w
	}
	return v
}

// earlier returns the earlier of the two.
func (v VirtualTime) earlier(w VirtualTime) VirtualTime {
	if w.before(v) {
		return w
	}
	return v
}

// increment returns cost/weight in virtual time, at least 1 ulp (but 0 for no cost) and rounded down: the shares of flows
// of cost 1 are exact to a thousandth up to weight 1000, and coarse near MaxWeight.
func increment(c Cost, w Weight) VirtualTime {
	if w == WeightOne {
		return VirtualTime(c) << virtualBits
	}
	hi, lo := bits.Mul64(uint64(c)<<virtualBits, uint64(WeightOne))
	quo, _ := bits.Div64(hi, lo, uint64(w)) // hi < 2^6 < MinWeight
	return max(VirtualTime(min(c, 1)), VirtualTime(quo))
}
