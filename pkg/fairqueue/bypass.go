package fairqueue

import "time"

// MayBypass reports whether the queue permits the arrival r to go without waiting: no request that could go waits in
// any class of its tier or of a higher tier (with weighted tiers: of any tier), and no starved head within the budget
// waits. promote is as in Peek. If only a starved head prevents it, starved is the waiter that lends its age: if the
// waiter's lane turns out to be full, close that lane and ask again.
func (q *FairRequestQueue) MayBypass(now time.Time, r *Request, promote bool) (may bool, starved *Request) {
	if q.queued == 0 {
		return true, nil
	}
	arrival := q.tierOf(r.Tier)
	for _, t := range q.tiers {
		if q.config.TierMode == Strict && t.rank > arrival.rank {
			break
		}
		if t.couldGo() > 0 {
			return false, nil
		}
	}
	if promote && q.guarded {
		if t := q.starvedTier(now, nil); t != nil {
			return false, t.oldest()
		}
	}
	return true, nil
}
