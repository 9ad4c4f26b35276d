package fairqueue

import "time"

// budgetUnlimited is a promotion budget of 1, in millionths, for which no account is kept.
const budgetUnlimited = 1_000_000

// promotionCost is the cost of one promotion, in millionths of a promotion.
const promotionCost = 1_000_000

// promotionsBanked caps the budget's credit.
const promotionsBanked = 4

// budget is the token bucket of promotions: each dispatch earns the configured share, and each promotion that overtakes
// a higher tier's waiter costs one.
type budget struct {
	share  int64 // millionths per dispatch
	credit int64 // millionths of a promotion
}

// newBudget returns a budget that starts with one promotion, unless promotions are off.
func newBudget(share int64) budget {
	if share == 0 {
		return budget{}
	}
	return budget{share: share, credit: promotionCost}
}

func (b *budget) unlimited() bool { return b.share >= budgetUnlimited }

func (b *budget) earn() { b.credit = min(b.credit+b.share, promotionsBanked*promotionCost) }

func (q *FairRequestQueue) dispatched() { q.budget.earn() }

// starved reports whether a waiter of t in a lane with room below its upper bound has waited at least its tier's
// threshold. Waiters in full lanes and of parked flows do not count. The highest tier is never starved, since there is
// nothing to be promoted past.
func (t *tier) starved(now time.Time) bool {
	old := t.oldest() // nil if there is no threshold
	return old != nil && t.queue.Waited(now, old) >= t.config.StarvationThreshold
}

// starvedTier returns the tier to promote now, or nil. The tier's head by its discipline, in the lanes with room below
// the upper bound, goes; it need not be the oldest waiter. Starved tiers take turns, the least recently promoted first,
// ties to the lowest; with an unlimited budget the lowest always goes. The tier of next, which goes anyway, takes no
// turn, so that it does not delay other tiers' turns while it is served in order. A promotion that overtakes requires
// credit.
func (q *FairRequestQueue) starvedTier(now time.Time, next *Request) *tier {
	if q.config.TierMode == Weighted || q.budget.share == 0 {
		return nil
	}
	var best *tier
	higher := 0 // waiters of higher tiers that could go
	for _, t := range q.tiers {
		overtakes := higher > 0
		higher += t.couldGo()
		if overtakes && !q.budget.unlimited() && q.budget.credit < promotionCost {
			break // a head of any lower tier would overtake as well
		}
		if next != nil && next.flowLane.flow.class.tier == t || !t.starved(now) {
			continue
		}
		if best == nil || q.budget.unlimited() || t.promoted <= best.promoted {
			best = t
		}
	}
	return best
}

// promote accounts for the promotion of t's head, which is still in the queue.
func (q *FairRequestQueue) promote(t *tier) {
	q.promotions++
	t.promoted = q.promotions
	if q.budget.unlimited() {
		return
	}
	for _, h := range q.tiers[:t.rank] {
		if h.couldGo() > 0 {
			q.budget.credit -= promotionCost
			return
		}
	}
}

// UntilStarvation returns the time from now until the next tier becomes starved, with the present state of the lanes.
// It ignores tiers already starved. ok is false if there is none.
func (q *FairRequestQueue) UntilStarvation(now time.Time) (soonest time.Duration, ok bool) {
	if !q.guarded || q.budget.share == 0 {
		return 0, false
	}
	for _, t := range q.tiers[1:] {
		old := t.oldest()
		if old == nil {
			continue
		}
		left := t.config.StarvationThreshold - q.Waited(now, old)
		if left > 0 && (soonest == 0 || left < soonest) {
			soonest = left
		}
	}
	return soonest, soonest > 0
}
