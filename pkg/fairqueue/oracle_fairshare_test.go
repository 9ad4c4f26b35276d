package fairqueue

import (
	"math/big"
	"time"
)

// The oracle's rule of fairshare, beside that of vtc: it has every use ever made, and forgets none.

// sharing is the oracle's state of fairshare.
type sharing struct {
	epoch  time.Time // when the first request came
	clock  time.Time // the latest time that the queue was told
	since  time.Time // when the window last became another one
	flying map[*waiter]bool
	used   []*used
}

// used is one use.
type used struct {
	tier *oracleTier
	flow string
	at   time.Time
	cost int64
}

// use is a request's charge.
type use struct {
	uses *used
	paid int64
}

// heavy is a tier's state of fairshare: the known flow above the threshold, and the delay of its keys.
type heavy struct {
	strangers map[Lane]int64
	known     bool
	heavy     string
	raises    map[Lane]int64
}

func (o *oracle) fair() bool { return o.cfg.Discipline == FairShare }

// starts is called for each request that comes.
func (o *oracle) starts(now time.Time) {
	if o.clock = now; o.epoch.IsZero() {
		o.epoch, o.since = now, now
	}
}

// bonus is the wait bonus that a request lacks because it came later than the first one.
func (o *oracle) bonus(arrived time.Time) int64 {
	x := big.NewInt(int64(arrived.Sub(o.epoch)))
	x.Mul(x, big.NewInt(o.cfg.FairShare.WaitBonus)).Lsh(x, 20)
	return x.Div(x, big.NewInt(1_000_000_000*1_000_000)).Int64()
}

// later returns the delay of the key of w, a head, behind its flow's counter.
func (o *oracle) later(w *waiter) int64 {
	if !o.fair() {
		return 0
	}
	by := o.bonus(w.arrived)
	if w.tier.known && w.tier.heavy.heavy == w.flow {
		by += w.tier.raises[w.r.Lane]
	}
	return by
}

// joinsFairly is joins.
func (o *oracle) joinsFairly(w *waiter, there []*waiter) {
	t, a, lane := w.tier, w.tier.account(w.flow, w.r.Lane), w.r.Lane
	var first *waiter
	for _, v := range there {
		if v.flow == w.flow {
			return
		}
		if t.flows[v.flow].parked[lane] || v != o.line(v)[0] {
			continue
		}
		if first == nil || o.tagOf(v) < o.tagOf(first) || o.tagOf(v) == o.tagOf(first) && t.flows[v.flow].newcomer && !t.flows[first.flow].newcomer {
			first = v
		}
	}
	if t.known && t.heavy.heavy == w.flow {
		t.raises[lane] = 0
	}
	now, own := t.reached[lane], o.increment(w)
	to := now
	if !a.met {
		t.strangers[lane] = max(t.strangers[lane], now)
		to = min(t.strangers[lane], now+own)
		t.strangers[lane] += own
	}
	if first != nil {
		front, matched := t.fronts[lane]
		if counter := t.account(first.flow, lane).counter; !matched || counter > front {
			least := o.tagOf(first) - o.bonus(w.arrived)
			if t.known && t.heavy.heavy == first.flow {
				least--
			}
			to = max(to, min(least, now+own))
		}
	}
	a.raiseTo(to)
}

// uses notes the charge of w.
func (o *oracle) uses(w *waiter) {
	if !o.fair() {
		return
	}
	if o.flying == nil {
		o.flying = map[*waiter]bool{}
	}
	o.flying[w] = true
	w.uses, w.paid = &used{w.tier, w.flow, o.clock, int64(w.r.Cost)}, int64(w.r.Cost)
	o.used = append(o.used, w.uses)
}

// reuses notes that w is charged another cost.
func (o *oracle) reuses(w *waiter, cost int64) {
	if !o.fair() || w.uses == nil {
		return
	}
	if by := cost - w.paid; o.isRecent(w.uses.at) {
		w.uses.cost += by
	} else if by > 0 {
		o.used = append(o.used, &used{w.tier, w.flow, o.clock, by})
	}
	w.paid = cost
}

// isRecent reports whether a time is in the present period, or one of the 29 before it.
func (o *oracle) isRecent(at time.Time) bool {
	if at.Before(o.since) {
		return false
	}
	span := o.cfg.FairShare.Window / 30
	return o.clock.Sub(o.epoch)/span-at.Sub(o.epoch)/span < 30
}

// renews begins another window: earlier use is no longer recent.
func (o *oracle) renews() {
	o.since = o.clock
	for _, u := range o.used {
		u.at = o.since.Add(-time.Nanosecond)
	}
}

// share returns what a flow has used of the recent use of its tier.
func (o *oracle) share(t *oracleTier, flow string) (own, all int64) {
	for _, u := range o.used {
		if u.tier == t && o.isRecent(u.at) {
			if all += u.cost; u.flow == flow {
				own += u.cost
			}
		}
	}
	return own, all
}

// active returns the flows of a tier with requests waiting or in flight.
func (o *oracle) active(t *oracleTier) map[string]bool {
	active := map[string]bool{}
	for _, w := range o.ofTier(t) {
		active[w.flow] = true
	}
	for w := range o.flying {
		if w.tier == t {
			active[w.flow] = true
		}
	}
	return active
}

// ends notes that w, which was in flight, is complete.
func (o *oracle) ends(w *waiter) {
	delete(o.flying, w)
	o.rests(w.tier, w.flow)
}

// rests forgets that a flow is above the threshold if it is not active.
func (o *oracle) rests(t *oracleTier, flow string) {
	if t.heavy.heavy == flow && !o.active(t)[flow] {
		t.known = false
	}
}

// isHeavy reports whether a flow is above the threshold, with its factor.
func (o *oracle) isHeavy(t *oracleTier, flow string) (factor *big.Rat, is bool) {
	own, all := o.share(t, flow)
	if own == 0 {
		return nil, false
	}
	sum := int64(0)
	for f := range o.active(t) {
		sum += int64(o.weight(t, f))
	}
	share := big.NewRat(own, all)
	if share.Cmp(big.NewRat(o.cfg.FairShare.Threshold, 1_000_000)) <= 0 || share.Cmp(big.NewRat(int64(o.weight(t, flow)), sum)) <= 0 {
		return nil, false
	}
	factor = new(big.Rat).Sub(big.NewRat(2, 1), share.Mul(share, big.NewRat(2, 1)))
	if tenth := big.NewRat((all+9)/10, all); factor.Cmp(tenth) < 0 {
		factor = tenth
	}
	return factor, true
}

// review computes the factors of the flows that are known to be above the threshold anew.
func (o *oracle) review(now time.Time) {
	if !o.fair() || len(o.waiting) == 0 {
		return
	}
	o.clock = now
	for _, t := range o.tiers {
		if t.known {
			o.apply(t, t.heavy.heavy)
		}
	}
}

// lowers reports whether w, which would be next, is of a flow that turns out to be above the threshold.
func (o *oracle) lowers(w *waiter) bool {
	if !o.fair() || w == nil || w.tier.known && w.tier.heavy.heavy == w.flow {
		return false
	}
	if _, is := o.isHeavy(w.tier, w.flow); !is {
		return false
	}
	o.apply(w.tier, w.flow)
	return true
}

// apply computes the effect of a flow's factor.
func (o *oracle) apply(t *oracleTier, flow string) {
	factor, is := o.isHeavy(t, flow)
	t.known, t.heavy.heavy = is, flow
	if !is {
		return
	}
	one, lanes := big.NewRat(1, 1), map[Lane]bool{}
	for _, w := range o.ofFlow(t, flow) {
		lane := w.r.Lane
		if lanes[lane] {
			continue
		}
		lanes[lane] = true
		ahead := t.account(flow, lane).counter + o.increment(w) - t.reached[lane]
		by := new(big.Rat)
		if ahead < 0 {
			by.Mul(big.NewRat(-ahead, 1), new(big.Rat).Sub(one, factor))
		} else {
			by.Mul(big.NewRat(ahead, 1), new(big.Rat).Sub(new(big.Rat).Inv(factor), one))
		}
		t.raises[lane] = new(big.Int).Quo(by.Num(), by.Denom()).Int64()
	}
}
