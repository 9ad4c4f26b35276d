package fairqueue

import "math/bits"

// Weighted tiers share the releases by deficit: with each request of cost c, every tier that could have been served
// earns c·weight/Σweights, rounded down, and the tier that is served pays the sum of that. The largest deficit goes
// first, ties to the higher tier. So serving a request does not change the sum of the deficits, and a tier that cannot
// go (or to which no stock is available) keeps its deficit and earns nothing. A tier that loses its last waiter starts
// over: its credit and debt are forgotten, and so are refunds for earlier releases. Deficits are fixed point with
// deficitBits binary digits, capped at ± deficitCap.

const (
	deficitBits = 20
	deficitCap  = int64(MaxCost) << deficitBits
)

func (q *FairRequestQueue) peekWeighted(allowed TierSet) *Request {
	var best *tier
	for _, t := range q.tiers {
		if allowed.Has(t.id) && t.canGo() && (best == nil || t.deficit > best.deficit) {
			best = t
		}
	}
	if best == nil {
		return nil
	}
	return best.head()
}

// chargeTier must be called before r leaves, so that the served tier is among those that earn.
func (q *FairRequestQueue) chargeTier(served *tier, r *Request, allowed TierSet) {
	q.charges++
	x := r.more()
	x.charge, x.earned = q.charges, TierSet(0).With(served.id)
	for _, t := range q.tiers {
		if allowed.Has(t.id) && t.canGo() {
			x.earned = x.earned.With(t.id)
		}
	}
	served.pay(-q.share(r, func(t *tier, earned int64) { t.pay(earned) }))
}

// refundTier undoes the charge of r, whose release from tier served came to nothing: the tiers that earned by it pay
// that back, to served. A tier that has been empty since then has started over and neither pays nor gets; after a
// reload, which may change weights, no tier does.
func (q *FairRequestQueue) refundTier(served *tier, r *Request) {
	if r.extra == nil || r.extra.charge <= q.reloaded {
		return
	}
	paid := q.share(r, func(t *tier, earned int64) {
		if t.reset < r.extra.charge {
			t.pay(-earned)
		}
	})
	if served.reset < r.extra.charge {
		served.pay(paid)
	}
}

// share calls each with every tier that earned by r and what it earned, and returns the sum.
func (q *FairRequestQueue) share(r *Request, each func(t *tier, earned int64)) (paid int64) {
	var sum uint64
	for _, t := range q.tiers {
		if r.extra.earned.Has(t.id) {
			sum += uint64(t.weight())
		}
	}
	for _, t := range q.tiers {
		if r.extra.earned.Has(t.id) {
			hi, lo := bits.Mul64(uint64(r.Cost)<<deficitBits, uint64(t.weight()))
			earned, _ := bits.Div64(hi, lo, sum) // weight <= sum, so the quotient fits
			each(t, int64(earned))
			paid += int64(earned)
		}
	}
	return paid
}

// pay adds to what the tier is owed, within the cap, so that credit and debt are bounded.
func (t *tier) pay(c int64) { t.deficit = max(-deficitCap, min(deficitCap, t.deficit+c)) }
