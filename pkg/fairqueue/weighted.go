package fairqueue

import "math/bits"

// Weighted tiers share the releases by deficit: with each request of cost c, every tier that could have been served
// earns c·weight/Σweights, rounded down, and the served tier pays the sum. The tier with the largest deficit goes
// first, ties to the higher tier. So serving a request does not change the sum of the deficits, and a tier that cannot
// go (or has no stock available) keeps its deficit and earns nothing. A tier that loses its last waiter starts over:
// its credit and debt are forgotten, and so are refunds for earlier releases. Deficits are fixed point with deficitBits
// binary digits, capped at ± deficitCap.
//
// When a request's actual cost differs from its charge, the tiers that earned by it, and the served tier, are corrected
// as if the cost had been known. So while no tier loses its last waiter, the deficits are those of exact costs, except
// for requests with a cost not yet known: wrong estimates move a tier's share of the cost by at most the errors of its
// requests in flight, for any length of time. If the served tier has started over since, only the others' earnings are
// corrected, which then enforce its share.

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
	x.charge, x.charged, x.earned = q.charges, r.Cost, TierSet(0).With(served.id)
	for _, t := range q.tiers {
		if allowed.Has(t.id) && t.canGo() {
			x.earned = x.earned.With(t.id)
		}
	}
	served.pay(-q.share(x, 0, r.Cost, func(t *tier, earned int64) { t.pay(earned) }))
}

// correctTier replaces the charge of r with that of another cost; 0 means that its release was undone. The served tier
// pays or gets the sum of the other tiers' corrections. A tier that has been empty since then has started over and is
// not corrected. After a reload, which may change weights, no tier is corrected, and neither if no tier was charged for
// r.
func (q *FairRequestQueue) correctTier(r *Request, to Cost) {
	x := r.extra
	if x == nil || x.charge <= q.reloaded {
		return
	}
	q.changes++
	paid := q.share(x, x.charged, to, func(t *tier, earned int64) {
		if t.reset < x.charge {
			t.pay(earned)
		}
	})
	if served := q.byID[r.Tier]; served.reset < x.charge {
		served.pay(-paid)
	}
	x.charged = to
}

// share divides two costs among the tiers that earn by a charge, calls each with the difference of a tier's part of to
// and of from, and returns the sum of the differences.
func (q *FairRequestQueue) share(x *extra, from, to Cost, each func(t *tier, earned int64)) (paid int64) {
	var weights uint64
	for _, t := range q.tiers {
		if x.earned.Has(t.id) {
			weights += uint64(t.weight())
		}
	}
	for _, t := range q.tiers {
		if x.earned.Has(t.id) {
			earned := t.part(to, weights) - t.part(from, weights)
			each(t, earned)
			paid += earned
		}
	}
	return paid
}

// part returns the tier's part of a cost, rounded down, where weights is the sum over the tiers that share it.
func (t *tier) part(c Cost, weights uint64) int64 {
	hi, lo := bits.Mul64(uint64(c)<<deficitBits, uint64(t.weight()))
	part, _ := bits.Div64(hi, lo, weights) // the tier's weight <= weights, so the quotient fits
	return int64(part)
}

// pay adds to the tier's credit, within the cap, so that credit and debt are bounded.
func (t *tier) pay(c int64) { t.deficit = max(-deficitCap, min(deficitCap, t.deficit+c)) }
