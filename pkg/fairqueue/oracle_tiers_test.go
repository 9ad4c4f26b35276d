package fairqueue

import (
	"fmt"
	"slices"
	"time"
)

// stuck reports whether w could not go even with room: its lane is dead or blocked, or its flow is at its cap.
func (o *oracle) stuck(w *waiter) bool {
	state := w.tier.lanes[w.r.Lane]
	return state == LaneDead || state == LaneBlocked || w.tier.flows[w.flow].parked[w.r.Lane]
}

func (o *oracle) couldGo(t *oracleTier) []*waiter {
	return o.of(func(w *waiter) bool { return w.tier == t && !o.stuck(w) })
}

// lenders returns the waiters whose age counts for their tier: those whose lane has room below its upper bound.
func (o *oracle) lenders(t *oracleTier) []*waiter {
	return o.of(func(w *waiter) bool { return w.tier == t && !o.stuck(w) && t.lanes[w.r.Lane] != LaneFull })
}

// peek returns the waiter that goes next, and whether it is promoted.
func (o *oracle) peek(now time.Time, allowed Allowed) (next *waiter, promoted bool) {
	o.review(now)
	for next, promoted = o.peeks(now, allowed); o.lowers(next); next, promoted = o.peeks(now, allowed) {
	}
	return next, promoted
}

func (o *oracle) peeks(now time.Time, allowed Allowed) (next *waiter, promoted bool) {
	if o.cfg.TierMode == Weighted {
		var best *oracleTier
		for _, t := range o.tiers {
			if o.serves(t, allowed.Tiers) && (best == nil || t.deficit > best.deficit) {
				best = t
			}
		}
		if best == nil {
			return nil, false
		}
		next, _ = o.head(best)
		return next, false
	}
	for _, t := range o.tiers {
		if o.serves(t, allowed.Tiers) {
			next, _ = o.head(t)
			break
		}
	}
	if o.lowers(next) {
		return o.peeks(now, allowed)
	}
	if allowed.Promote {
		if t := o.starved(now, next); t != nil {
			next, _ = o.headIn(t, LaneOpen, LaneBusy)
			return next, true
		}
	}
	return next, false
}

func (o *oracle) serves(t *oracleTier, admit TierSet) bool {
	head, _ := o.head(t)
	return admit.Has(t.id) && head != nil
}

// starved returns the tier to promote: not the one that goes anyway, and of the others the least recently promoted,
// ties to the lowest; with an unlimited budget the lowest. Overtaking requires credit.
func (o *oracle) starved(now time.Time, next *waiter) (best *oracleTier) {
	if o.cfg.TierMode == Weighted || o.cfg.PromotionBudget == 0 {
		return nil
	}
	unlimited := o.cfg.PromotionBudget == 1_000_000
	for rank, t := range o.tiers {
		old := o.lenders(t)
		switch {
		case rank == 0, t.cfg.StarvationThreshold == 0, len(old) == 0, next != nil && next.tier == t:
			continue
		case now.Sub(old[0].arrived) < t.cfg.StarvationThreshold:
			continue
		case o.overtakes(rank) && !unlimited && o.credit < 1_000_000:
			continue
		}
		if best == nil || unlimited || t.promoted <= best.promoted {
			best = t
		}
	}
	return best
}

func (o *oracle) overtakes(rank int) bool {
	return slices.ContainsFunc(o.tiers[:rank], func(t *oracleTier) bool { return len(o.couldGo(t)) > 0 })
}

// dispatch pops the waiter that peek returned.
func (o *oracle) dispatch(w *waiter, promoted bool, allowed Allowed) {
	o.bypassed()
	if promoted {
		o.promotions++
		w.tier.promoted = o.promotions
		if o.cfg.PromotionBudget < 1_000_000 && o.overtakes(slices.Index(o.tiers, w.tier)) {
			o.credit -= 1_000_000
		}
	}
	if o.cfg.TierMode == Weighted {
		o.chargeTier(w, allowed)
	}
	o.pop(w)
}

// bypassed earns promotion credit, up to four promotions.
func (o *oracle) bypassed() { o.credit = min(o.credit+o.cfg.PromotionBudget, 4_000_000) }

// chargeTier charges the cost to the tier that is served: every tier that could have been served earns its weight's
// share, and the served one pays the sum.
func (o *oracle) chargeTier(w *waiter, allowed Allowed) {
	w.shared, w.weights, w.cost = nil, nil, int64(w.r.Cost)
	for _, t := range o.tiers {
		if o.serves(t, allowed.Tiers) {
			w.shared, w.weights = append(w.shared, t), append(w.weights, t.weight()/1000)
		}
	}
	w.earned = w.divide(w.cost)
	o.popped = append(o.popped, w)
	for t, earned := range w.earned {
		t.deficit += earned
	}
}

// divide returns the effect of w's cost on the deficits.
func (w *waiter) divide(cost int64) map[*oracleTier]int64 {
	sum, parts := int64(0), map[*oracleTier]int64{}
	for _, weight := range w.weights {
		sum += weight
	}
	for i, t := range w.shared {
		part := cost * (1 << 20) * w.weights[i] / sum
		parts[t] += part
		parts[w.tier] -= part
	}
	return parts
}

// refundTier reverts the effect of w's pop on the deficits, except on those reset since.
func (o *oracle) refundTier(w *waiter) {
	for t, earned := range w.earned {
		t.deficit -= earned
	}
	w.earned = nil
}

// trueUp sets every deficit not reset since to its value with this as w's cost.
func (o *oracle) trueUp(w *waiter, cost int64) {
	for t, exact := range w.divide(cost) {
		if earned, counts := w.earned[t]; counts {
			t.deficit += exact - earned
			w.earned[t] = exact
		}
	}
	w.cost = cost
}

func (o *oracle) mayBypass(now time.Time, id int, promote bool) (may bool, starved *waiter) {
	arrival := o.arrivalTier(id)
	for _, t := range o.tiers {
		if len(o.couldGo(t)) > 0 {
			return false, nil
		}
		if t == arrival && o.cfg.TierMode == Strict {
			break
		}
	}
	if t := o.starved(now, nil); promote && t != nil {
		return false, o.lenders(t)[0]
	}
	return true, nil
}

func (o *oracle) nextStarvation(now time.Time) (at time.Time, ok bool) {
	for _, t := range o.tiers[1:] {
		if o.cfg.PromotionBudget == 0 {
			break
		}
		if old := o.lenders(t); len(old) > 0 && t.cfg.StarvationThreshold > 0 && o.cfg.TierMode == Strict {
			if s := old[0].arrived.Add(t.cfg.StarvationThreshold); s.After(now) && (!ok || s.Before(at)) {
				at, ok = s, true
			}
		}
	}
	return at, ok
}

// reload puts the listed tiers in their order. A removed tier stays behind its upper neighbour.
func (o *oracle) reload(cfg Config) error {
	old := o.tiers
	o.tiers = nil
	for _, tc := range cfg.Tiers {
		i := slices.IndexFunc(old, func(t *oracleTier) bool { return t.cfg.Name == tc.Name })
		if i >= 0 {
			old[i].cfg = tc
			o.tiers = append(o.tiers, old[i])
			continue
		}
		id := 0
		for slices.ContainsFunc(slices.Concat(old, o.tiers), func(t *oracleTier) bool { return t.id == id }) {
			id++
		}
		if id == 64 {
			return fmt.Errorf("too many tiers")
		}
		o.tiers = append(o.tiers, newOracleTier(id, tc))
	}
	listed := slices.Clone(o.tiers)
	for i, t := range old {
		if t.removed = !slices.Contains(listed, t); t.removed {
			at := 0
			for j := range i {
				if k := slices.Index(o.tiers, old[j]); k >= 0 {
					at = k + 1
				}
			}
			o.tiers = slices.Insert(o.tiers, at, t)
		}
	}
	if o.fair() && o.cfg.FairShare.Window != cfg.FairShare.Window {
		o.renews()
	}
	o.cfg = cfg
	o.reweigh()
	o.noRefunds()
	if cfg.PromotionBudget == 0 {
		o.credit = 0
	}
	return nil
}

func (o *oracle) forget(inUse TierSet) {
	o.tiers = slices.DeleteFunc(o.tiers, func(t *oracleTier) bool {
		gone := t.removed && len(o.ofTier(t)) == 0 && !inUse.Has(t.id)
		if gone {
			o.noRefunds()
		}
		return gone
	})
}

// noRefunds: the tiers or their weights have changed, so earlier charges are no longer corrected or refunded at the
// tiers.
func (o *oracle) noRefunds() {
	for _, p := range o.popped {
		p.earned = nil
	}
}
