package fairqueue

// The oracle's rule of wfq, in whole numbers that never roll over: it forgets no flow.

// popByFinish charges a flow for w.
func (o *oracle) popByFinish(w *waiter, f *oracleFlow) {
	t := w.tier
	w.start, w.charged, w.newcomer, w.weight = f.start, o.increment(w), f.newcomer, int64(o.cfg.weight(w.flow))
	finish := f.start + w.charged
	t.virtual = max(t.virtual, finish)
	f.start = finish
	if passed := t.virtual - max(0, f.refunded); passed > finish {
		f.start, f.floor = passed, passed
	}
	f.refunded, f.newcomer = t.virtual-f.start, false
}

// corrects replaces what w was charged by the charge for this cost.
func (o *oracle) corrects(w *waiter, cost int64, raise bool) {
	f := w.tier.flows[w.flow]
	if f == nil {
		f = w.tier.past[w.flow]
	}
	if o.cfg.Discipline != WFQ || w.weight == 0 || f == nil {
		return // it was not popped
	}
	more := max(min(1, cost), cost*(1<<20)*1_000_000/w.weight) - w.charged
	if more < 0 && raise {
		return
	}
	if more < 0 {
		more = -min(-more, max(0, f.start-f.floor))
	}
	f.refunded -= more
	f.start += more
	w.charged += more
}
