package fairqueue

import "slices"

// The oracle's rule of wfq, in whole numbers that never roll over: it forgets no flow.

// place is a flow's position in one lane.
type place struct {
	start    int64
	floor    int64 // corrections do not lower start below this
	refunded int64 // how far corrections have put it behind virtual time, and may
}

// place returns the flow's place in a lane.
func (f *oracleFlow) place(lane Lane) *place {
	if f.places[lane] == nil {
		f.places[lane] = &place{}
	}
	return f.places[lane]
}

// begin sets a flow without waiters in the lane of w at least to the lane's virtual time.
func (o *oracle) begin(w *waiter) {
	t, p := w.tier, w.tier.flows[w.flow].place(w.r.Lane)
	there := o.opens(w)
	if !slices.ContainsFunc(there, func(v *waiter) bool { return v.flow == w.flow }) {
		now := t.reached[w.r.Lane]
		p.start, p.floor = max(p.start, now), now
		p.refunded = now - p.start
	}
}

// popByFinish charges a flow for w.
func (o *oracle) popByFinish(w *waiter, f *oracleFlow) {
	t, p := w.tier, f.place(w.r.Lane)
	w.start, w.charged, w.newcomer, w.weight = p.start, o.increment(w), f.newcomer, int64(o.weight(t, w.flow))
	finish := p.start + w.charged
	now := max(t.reached[w.r.Lane], o.reaches(finish))
	t.reached[w.r.Lane], t.virtual = now, max(t.virtual, now)
	p.start = finish
	if passed := now - max(0, p.refunded); passed > finish {
		p.start, p.floor = passed, passed
	}
	p.refunded, f.newcomer = now-p.start, false
	o.elsewhere(w, f, w.charged)
}

// elsewhere moves the flow in the other lanes where it waits, too.
func (o *oracle) elsewhere(w *waiter, f *oracleFlow, by int64) {
	for _, l := range o.others(w) {
		f.place(l).move(by)
	}
}

// move moves start, not below the floor, and returns by how much.
func (p *place) move(by int64) int64 {
	if by < 0 {
		by = -min(-by, max(0, p.start-p.floor))
	}
	p.refunded -= by
	p.start += by
	return by
}

// corrects replaces the charge of w by the charge for this cost.
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
	more = f.place(w.r.Lane).move(more)
	w.charged += more
	o.elsewhere(w, f, more)
}
