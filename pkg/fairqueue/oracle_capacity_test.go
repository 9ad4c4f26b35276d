package fairqueue

import "math/big"

// admit returns whether w has room, and the waiter displaced for it.
func (o *oracle) admit(w *waiter) (displaced *waiter, err error) {
	t := w.tier
	top := t == o.top() && o.cfg.CapacityMode == Shared && o.cfg.TierMode == Strict && o.cfg.GuaranteedTop
	if t.cfg.QueueSize == 0 {
		return nil, ErrTooManyFlows // it never queues
	}
	own := o.ofFlow(t, w.flow)
	if len(own) == 0 && (o.cfg.CapacityMode == Reserved || top) {
		room, most := o.cfg.TotalCapacity, o.cfg.TotalCapacity
		byTier := o.cfg.CapacityMode == Reserved && o.cfg.TierMode == Weighted
		if byTier {
			room, most = o.tierShare(t), o.tierShare(t)
		}
		reserved := min(o.cfg.flowCapacity(w.flow), most)
		for _, u := range o.tiers {
			for key := range u.flows {
				if o.cfg.CapacityMode == Reserved && !byTier || u == t {
					reserved += min(o.cfg.flowCapacity(key), most)
				}
			}
		}
		if reserved > room {
			return nil, ErrTooManyFlows
		}
	}
	if len(own) >= o.cfg.flowCapacity(w.flow) {
		return nil, ErrInsufficientFlowCapacity
	}
	tierFull := t.cfg.QueueSize > 0 && len(o.ofTier(t)) >= t.cfg.QueueSize
	if o.cfg.TierMode == Weighted && len(o.ofTier(t)) >= o.tierShare(t) {
		tierFull = true
	}
	full := len(o.waiting) >= o.cfg.TotalCapacity
	switch {
	case o.cfg.CapacityMode == Reserved && tierFull:
		return nil, ErrTooManyFlows
	case o.cfg.CapacityMode == Reserved || !tierFull && !full:
		return nil, nil
	case o.cfg.CapacityMode == Reject:
		return nil, ErrTooManyFlows
	}
	if !tierFull && o.cfg.TierMode == Strict {
		displaced = o.displaceBelow(t)
	}
	if displaced == nil && !top {
		displaced = o.displaceWithin(w)
	}
	if displaced == nil {
		return nil, ErrTooManyFlows
	}
	o.displacements++
	displaced.tier.flows[displaced.flow].displaced = o.displacements
	return displaced, nil
}

// top returns the highest tier that accepts arrivals.
func (o *oracle) top() *oracleTier {
	for _, t := range o.tiers {
		if !t.removed {
			return t
		}
	}
	return nil
}

// tierShare returns a tier's share of the queue in weighted mode.
func (o *oracle) tierShare(t *oracleTier) int {
	sum := int64(0)
	for _, u := range o.tiers {
		if !u.removed {
			sum += u.weight()
		}
	}
	return max(1, int(int64(o.cfg.TotalCapacity)*t.weight()/sum))
}

func (t *oracleTier) weight() int64 {
	if t.cfg.Weight == 0 {
		return int64(WeightOne)
	}
	return int64(t.cfg.Weight)
}

// displaceBelow displaces from the lowest tier below that has waiters: among its flows above their fair share of the
// queue, or else among all its flows, the newest request of the least recently displaced one.
func (o *oracle) displaceBelow(t *oracleTier) *waiter {
	var low *oracleTier
	below := false
	for _, u := range o.tiers {
		if below && len(o.ofTier(u)) > 0 {
			low = u
		}
		below = below || u == t
	}
	if low == nil {
		return nil
	}
	weights := int64(0)
	for key := range low.flows {
		weights += int64(o.weight(low, key))
	}
	var least, leastAbove *oracleFlow
	var leastKey, leastAboveKey string
	for key, f := range low.flows {
		queued := ratio(int64(len(o.ofFlow(low, key)))*weights, 1)
		share := ratio(int64(o.cfg.TotalCapacity)*int64(o.weight(low, key)), 1)
		if queued.Cmp(share) > 0 && f.displacedBefore(leastAbove) {
			leastAbove, leastAboveKey = f, key
		}
		if f.displacedBefore(least) {
			least, leastKey = f, key
		}
	}
	if leastAbove != nil {
		return o.newest(low, leastAboveKey)
	}
	return o.newest(low, leastKey)
}

func (f *oracleFlow) displacedBefore(g *oracleFlow) bool {
	return g == nil || f.displaced < g.displaced || f.displaced == g.displaced && f.tracked < g.tracked
}

// displaceWithin displaces from the flow of the same tier with the most places over weight, counting the arrival. If
// that is the arrival's own flow, no request is displaced.
func (o *oracle) displaceWithin(w *waiter) *waiter {
	load := func(key string) *big.Rat {
		places, weight := int64(len(o.ofFlow(w.tier, key))), o.weight(w.tier, key)
		if key == w.flow {
			with := o.weightWith(key, w.r)
			if places++; places == 1 || with < weight {
				weight = with
			}
		}
		return ratio(places, int64(weight))
	}
	var most *oracleFlow
	var mostKey string
	for key, f := range w.tier.flows {
		if key == w.flow {
			continue
		}
		c := 1
		if most != nil {
			c = load(key).Cmp(load(mostKey))
		}
		if c > 0 || c == 0 && f.tracked < most.tracked {
			most, mostKey = f, key
		}
	}
	if most == nil || load(mostKey).Cmp(load(w.flow)) <= 0 {
		return nil
	}
	return o.newest(w.tier, mostKey)
}

func (o *oracle) newest(t *oracleTier, key string) *waiter {
	all := o.ofFlow(t, key)
	return all[len(all)-1]
}

func ratio(a, b int64) *big.Rat { return big.NewRat(a, b) }
