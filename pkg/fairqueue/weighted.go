package fairqueue

import "math/bits"

// Weighted tiers share the releases by deficit: with each request of cost c, every tier that could have been served
// earns c·weight/Σweights, rounded down, and the one served pays what all have earned; the largest deficit goes
// first, ties to the higher tier. So a request served moves no deficit's sum, a tier that cannot go (or to which no
// stock is available) keeps its deficit and earns nothing, and an emptied one starts anew. Fixed point with
// deficitBits binary digits, capped at ± deficitCap.

const (
	deficitBits = 20
	deficitCap  = int64(MaxCost) << deficitBits
)

func (q *FairRequestQueue) peekWeighted(admit TierSet) *Request {
	var best *tier
	for _, t := range q.tiers {
		if admit.Has(t.id) && t.class.open.len() > 0 && (best == nil || t.deficit > best.deficit) {
			best = t
		}
	}
	if best == nil {
		return nil
	}
	return best.class.head()
}

// chargeTier is called before the request leaves, so the served tier is among those that earn.
func (q *FairRequestQueue) chargeTier(served *tier, c Cost, admit TierSet) {
	earns := func(t *tier) bool { return t == served || admit.Has(t.id) && t.class.open.len() > 0 }
	var sum uint64
	for _, t := range q.tiers {
		if earns(t) {
			sum += uint64(t.weight())
		}
	}
	paid := int64(0)
	for _, t := range q.tiers {
		if earns(t) {
			hi, lo := bits.Mul64(uint64(c)<<deficitBits, uint64(t.weight()))
			earned, _ := bits.Div64(hi, lo, sum) // weight <= sum, so the quotient fits
			t.deficit = min(deficitCap, t.deficit+int64(earned))
			paid += int64(earned)
		}
	}
	served.deficit = max(-deficitCap, served.deficit-paid)
}
