package fairqueue

// The oracle's rule of vtc, in whole numbers that never roll over: it searches all waiters, and forgets no flow.

// account is what a flow of a tier has been charged.
type account struct {
	counter int64
	floor   int64 // refunds do not go below
	met     bool  // it has been there before
}

// counters is a tier's state of vtc.
type counters struct {
	accounts map[string]*account
	reached  map[Lane]int64 // the virtual time of the lanes with waiters
	since    int64          // virtual time when somebody began to wait
}

func (o *oracle) vtc() bool { return o.cfg.Discipline == VTC }

// account returns the account of a flow of the tier.
func (t *oracleTier) account(flow string) *account {
	if t.accounts == nil {
		t.accounts, t.reached = map[string]*account{}, map[Lane]int64{}
	}
	if t.accounts[flow] == nil {
		t.accounts[flow] = &account{}
	}
	return t.accounts[flow]
}

// raiseTo makes the account at least this, and this its floor if that is lower.
func (a *account) raiseTo(least int64) {
	if !a.met {
		*a = account{counter: least, floor: least, met: true}
	}
	a.counter, a.floor = max(a.counter, least), max(a.floor, least)
}

// begins is called for the first waiter of a tier in which nobody waits.
func (o *oracle) begins(t *oracleTier) {
	if len(o.ofTier(t)) == 0 {
		t.since = t.virtual
	}
}

// joins is called before w waits.
func (o *oracle) joins(w *waiter) {
	t, a, lane := w.tier, w.tier.account(w.flow), w.r.Lane
	there := o.of(func(v *waiter) bool { return v.tier == t && v.r.Lane == lane })
	if len(there) == 0 {
		t.reached[lane] = t.virtual
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
		if !t.flows[v.flow].parked[lane] && (first < 0 || t.account(v.flow).counter < first) {
			first = t.account(v.flow).counter
		}
	}
	a.raiseTo(max(least, min(first, t.reached[lane]+o.increment(w))))
}

// goes charges the flow of w, which goes in its lane, or at once.
func (o *oracle) goes(w *waiter) {
	t, a := w.tier, w.tier.account(w.flow)
	t.virtual = max(t.virtual, a.counter)
	w.weight, w.charged = int64(o.cfg.weight(w.flow)), o.increment(w)
	a.counter += w.charged
}

func (o *oracle) popByCounter(w *waiter) {
	t := w.tier
	t.reached[w.r.Lane] = max(t.reached[w.r.Lane], t.account(w.flow).counter)
	t.flows[w.flow].newcomer = false
	o.goes(w)
}

// bypass charges a request that does not wait.
func (o *oracle) bypass(w *waiter) {
	t, a := w.tier, w.tier.account(w.flow)
	if len(o.ofFlow(t, w.flow)) == 0 {
		least := t.virtual
		if len(o.ofTier(t)) > 0 {
			least = t.since
		}
		if !a.met {
			least += o.increment(w)
		}
		a.raiseTo(least)
	} else {
		t.flows[w.flow].newcomer = false
	}
	o.goes(w)
}

// recharge replaces what w was charged by the charge for this cost, or for none.
func (o *oracle) recharge(w *waiter, cost int64, raise bool) {
	charge := int64(0)
	if cost > 0 {
		charge = max(1, cost*(1<<20)*1_000_000/w.weight)
	}
	if raise && charge <= w.charged {
		return
	}
	a := w.tier.account(w.flow)
	was := a.counter
	if a.counter += charge - w.charged; charge < w.charged {
		a.counter = max(a.counter, a.floor)
	}
	w.charged += a.counter - was // what the floor has kept can be charged only once
}

// unpark lets a flow go again: it is behind its lanes' virtual time by its first request's charge at most.
func (o *oracle) unpark(t *oracleTier, flow string) {
	f := t.flows[o.key(flow)]
	if f == nil {
		return
	}
	for lane := range f.parked {
		for _, w := range o.ofFlow(t, o.key(flow)) {
			if o.vtc() && w.r.Lane == lane {
				a := t.account(w.flow)
				a.counter = max(a.counter, t.reached[lane]-o.increment(w))
				break
			}
		}
	}
	clear(f.parked)
}
