package fairqueue

import "slices"

// The oracle's rule of vtc, in whole numbers that never roll over: it searches all waiters, and forgets no flow.

// account is the charge of a tier's flow in one lane.
type account struct {
	counter int64
	floor   int64 // refunds do not go below
	met     bool  // it has been there before
}

// seat is a flow's seat in a lane.
type seat struct {
	flow string
	lane Lane
}

// counters is a tier's state of vtc.
type counters struct {
	accounts map[seat]*account
	reached  map[Lane]int64 // the virtual time of the lanes with waiters; wfq's as well
	fronts   map[Lane]int64 // how far flows have come that took others' turns, where virtual time has not passed that
	since    int64          // virtual time when somebody began to wait
}

// vtc reports whether flows have counters.
func (o *oracle) vtc() bool { return o.cfg.Discipline == VTC || o.fair() }

// account returns the account of a flow of the tier in a lane.
func (t *oracleTier) account(flow string, lane Lane) *account {
	if t.accounts == nil {
		t.accounts = map[seat]*account{}
	}
	at := seat{flow, lane}
	if t.accounts[at] == nil {
		t.accounts[at] = &account{}
	}
	return t.accounts[at]
}

// others returns the other lanes in which the flow of w waits where what w is charged counts too.
func (o *oracle) others(w *waiter) (lanes []Lane) {
	for _, v := range o.ofFlow(w.tier, w.flow) {
		if l := v.r.Lane; slices.Contains(w.r.also(), l) && l != w.r.Lane && !slices.Contains(lanes, l) {
			lanes = append(lanes, l)
		}
	}
	return lanes
}

// raiseTo makes the account at least this, and this its floor if that is lower.
func (a *account) raiseTo(least int64) {
	if !a.met {
		*a = account{counter: least, floor: least, met: true}
	}
	a.counter, a.floor = max(a.counter, least), max(a.floor, least)
}

// begins is called for the first waiter of a tier.
func (o *oracle) begins(t *oracleTier) {
	if len(o.ofTier(t)) == 0 {
		t.since = t.virtual
	}
}

// opens is called before w waits: a lane without waiters starts at the furthest lane's virtual time.
func (o *oracle) opens(w *waiter) (there []*waiter) {
	there = o.of(func(v *waiter) bool { return v.tier == w.tier && v.r.Lane == w.r.Lane })
	if len(there) == 0 {
		w.tier.reached[w.r.Lane] = w.tier.virtual
		w.tier.strangers[w.r.Lane] = w.tier.virtual
		delete(w.tier.fronts, w.r.Lane)
	}
	return there
}

// joins is called before w waits.
func (o *oracle) joins(w *waiter) {
	t, a, lane, there := w.tier, w.tier.account(w.flow, w.r.Lane), w.r.Lane, o.opens(w)
	if o.fair() {
		o.joinsFairly(w, there)
		return
	}
	least := t.reached[lane]
	if !a.met {
		least += o.increment(w)
	}
	first := int64(-1)
	for _, v := range there {
		if v.flow == w.flow {
			return // something of it waits there
		}
		if !t.flows[v.flow].parked[lane] && (first < 0 || t.account(v.flow, lane).counter < first) {
			first = t.account(v.flow, lane).counter
		}
	}
	if front, matched := t.fronts[lane]; matched && first <= front {
		first = least // it is behind those that took others' turns, not late
	}
	a.raiseTo(max(least, min(first, t.reached[lane]+o.increment(w))))
}

// goes charges the flow of w, which goes in its lane, or at once.
func (o *oracle) goes(w *waiter) {
	t, a := w.tier, w.tier.account(w.flow, w.r.Lane)
	t.virtual = max(t.virtual, o.reaches(a.counter))
	w.weight, w.charged = int64(o.weight(t, w.flow)), o.increment(w)
	o.uses(w)
	a.counter += w.charged
	for _, l := range o.others(w) {
		t.account(w.flow, l).counter += w.charged
	}
}

func (o *oracle) popByCounter(w *waiter) {
	t := w.tier
	t.reached[w.r.Lane] = max(t.reached[w.r.Lane], o.reaches(t.account(w.flow, w.r.Lane).counter))
	if front, matched := t.fronts[w.r.Lane]; matched && front < t.reached[w.r.Lane] {
		delete(t.fronts, w.r.Lane)
	}
	if counter := t.account(w.flow, w.r.Lane).counter; o.reaches(counter) < counter {
		t.fronts[w.r.Lane] = max(t.fronts[w.r.Lane], counter+o.increment(w))
	}
	t.flows[w.flow].newcomer = false
	o.goes(w)
}

// bypass charges a request that does not wait.
func (o *oracle) bypass(w *waiter) {
	o.weigh(w)
	t, a := w.tier, w.tier.account(w.flow, w.r.Lane)
	least := t.virtual
	if len(o.ofTier(t)) > 0 {
		least = t.since
	}
	if !a.met && !o.fair() {
		least += o.increment(w)
	}
	a.raiseTo(least)
	if slices.ContainsFunc(o.ofTier(t), func(v *waiter) bool { return v.r.Lane == w.r.Lane }) {
		t.reached[w.r.Lane] = max(t.reached[w.r.Lane], a.counter)
	}
	if f := t.flows[w.flow]; f != nil {
		f.newcomer = false
	}
	o.goes(w)
}

// recharge replaces the charge of w by the charge for this cost, or by none.
func (o *oracle) recharge(w *waiter, cost int64, raise bool) {
	charge := int64(0)
	if cost > 0 {
		charge = max(1, cost*(1<<20)*1_000_000/w.weight)
	}
	if raise && charge <= w.charged {
		return
	}
	o.reuses(w, cost)
	a := w.tier.account(w.flow, w.r.Lane)
	was := a.counter
	if a.counter += charge - w.charged; charge < w.charged {
		a.counter = max(a.counter, a.floor)
	}
	w.charged += a.counter - was // what the floor has kept can be charged only once
	for _, l := range o.others(w) {
		b := w.tier.account(w.flow, l)
		b.counter = max(b.counter+a.counter-was, min(b.counter, b.floor))
	}
}

// unpark makes a flow able to go again: it is behind its lanes' virtual time by at most its first request's charge.
func (o *oracle) unpark(t *oracleTier, flow string) {
	f := t.flows[o.key(flow)]
	if f == nil {
		return
	}
	for lane := range f.parked {
		for _, w := range o.ofFlow(t, o.key(flow)) {
			if o.vtc() && w.r.Lane == lane {
				a := t.account(w.flow, lane)
				a.counter = max(a.counter, t.reached[lane]-o.increment(w))
				break
			}
		}
	}
	clear(f.parked)
}
