package fairqueue

import "math/bits"

// makeRoom checks whether the queue has room for r in class c; f is r's flow, or nil if that is not tracked. In shared
// mode it also chooses the request that must leave for r. It checks the class's own flow on r's path, and nested flows
// with a capacity. It changes nothing.
func (q *FairRequestQueue) makeRoom(c *class, f *flow, r *Request) (displaced *Request, err error) {
	t, key := c.tier, c.flowKey(r)
	if q.config.Levels > 1 {
		f = c.flows.find(key)
	}
	var capacity, waiting int
	if f != nil {
		capacity, waiting = f.capacity, f.queued
	} else {
		capacity = q.config.flowCapacity(key)
	}
	if t.config.QueueSize == 0 {
		return nil, ErrTooManyFlows
	}
	if q.config.CapacityMode == Reserved || q.guaranteed(t) {
		room := q.config.totalCapacity() - q.reserved()
		if q.tiersReserve() {
			room = q.tierShare(t) - t.reserved
		}
		if f == nil && q.reserves(t, capacity) > room {
			return nil, ErrTooManyFlows
		}
	}
	if waiting >= capacity {
		return nil, ErrInsufficientFlowCapacity
	}
	if len(q.config.ByLevel) > 1 && q.fullUnder(c, f, r) > 0 {
		return nil, ErrInsufficientCapacityUnder
	}
	tierFull := t.config.QueueSize > 0 && t.queued >= t.config.QueueSize
	if q.config.TierMode == Weighted && t.queued >= q.tierShare(t) {
		tierFull = true
	}
	switch {
	case q.config.CapacityMode == Reserved:
		// The reservations bound the sum, except after requeues and reloads.
		if tierFull {
			return nil, ErrTooManyFlows
		}
		return nil, nil
	case q.config.CapacityMode == Reject:
		if tierFull || q.queued >= q.config.totalCapacity() {
			return nil, ErrTooManyFlows
		}
		return nil, nil
	case tierFull:
		displaced = q.displaceWithin(c, r)
	case q.queued >= q.config.totalCapacity():
		if displaced = q.displaceBelow(t); displaced == nil {
			displaced = q.displaceWithin(c, r)
		}
	default:
		return nil, nil
	}
	if displaced == nil {
		return nil, ErrTooManyFlows
	}
	return displaced, nil
}

// guaranteed reports whether t's flows have their capacity reserved and its requests are never displaced.
func (q *FairRequestQueue) guaranteed(t *tier) bool {
	return q.config.CapacityMode == Shared && q.config.TierMode == Strict && q.config.GuaranteedTop && t == q.top
}

// reserved returns the places reserved by tracked flows: all of them, or those of the guaranteed tier.
func (q *FairRequestQueue) reserved() int {
	if q.config.CapacityMode == Shared {
		return q.top.reserved
	}
	n := 0
	for _, t := range q.tiers {
		n += t.reserved
	}
	return n
}

// tiersReserve reports whether flows reserve places from their tier's share instead of totalCapacity, so that no tier
// takes places of another.
func (q *FairRequestQueue) tiersReserve() bool {
	return q.config.CapacityMode == Reserved && q.config.TierMode == Weighted
}

// reserves returns the places that a flow of tier t with this capacity reserves: with weighted tiers at most the tier's
// share, so that a small share still has room for a flow. A draining tier accepts no flow, and has no share.
func (q *FairRequestQueue) reserves(t *tier, capacity int) int {
	if q.tiersReserve() && !t.removed {
		return min(capacity, q.tierShare(t))
	}
	return capacity
}

// tierShare returns a weighted tier's share of totalCapacity, at least 1.
func (q *FairRequestQueue) tierShare(t *tier) int {
	var sum uint64
	for _, o := range q.tiers {
		if !o.removed {
			sum += uint64(o.weight())
		}
	}
	hi, lo := bits.Mul64(uint64(q.config.totalCapacity()), uint64(t.weight()))
	share, _ := bits.Div64(hi, lo, sum) // weight <= sum, so the quotient fits
	return max(1, int(share))
}
