package fairqueue

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// The operations of a duel.

func (d *duel) step() {
	switch d.below(22) {
	case 0, 1, 2, 3, 4, 5, 6:
		d.push()
	case 7, 8, 9, 10:
		d.pop()
	case 11:
		d.cancel()
	case 12, 13:
		d.advance()
	case 14:
		d.block()
	case 15:
		d.unblock()
	case 16:
		d.requeue()
	case 17:
		d.completes()
	case 18:
		if d.below(4) == 0 {
			d.reload()
		}
	case 19:
		d.bypass()
	case 20, 21:
		d.correct()
	}
}

func (d *duel) push() {
	r := &Request{
		Flow: choose(d, "a", "b", "c", "d"), Tier: d.below(5), Lane: choose[Lane](d, "", "", "x", "y"),
		Cost: choose[Cost](d, 1, 1, 1, 2, 5, 40), Path: d.path(),
	}
	if d.matching { // more of them in each line
		r.Tier, r.Lane = r.Tier%2, r.Lane[:0]
	}
	if d.below(4) == 0 {
		r.Within = time.Duration(1+d.below(30)) * time.Second
	}
	given := r.Tier
	displaced, err := d.q.Push(d.now, r)
	d.note("push flow=%s tier=%d→%d lane=%q cost=%d: displaced %v, %v", r.Flow, given, r.Tier, r.Lane, r.Cost, displaced != nil, err)
	r.Tier = given
	w, wantDisplaced, wantErr := d.o.push(d.now, r)
	d.offered++
	if !errors.Is(err, wantErr) {
		d.Fatalf("push: %v, want %v", err, wantErr)
	}
	if err != nil {
		d.ended++
	} else {
		r.Tier = w.tier.id
		d.waiters[r] = w
	}
	d.same("displaced", displaced, wantDisplaced)
	if displaced != nil {
		d.ended++
	}
}

func (d *duel) same(what string, got *Request, want *waiter) {
	d.Helper()
	switch {
	case got == nil && want == nil:
	case got == nil || want == nil || got != want.r:
		d.Fatalf("%s: %s, want %s", what, d.show(d.waiters[got]), d.show(want))
	}
}

func (d *duel) show(w *waiter) string {
	if w == nil {
		return "nobody"
	}
	return fmt.Sprintf("%d(tier %s flow %s lane %q cost %d)", w.seq, w.tier.cfg.Name, w.flow, w.r.Lane, w.r.Cost)
}

// pop peeks with a random set of tiers, and then pops the candidate or blocks it, as if it could not be placed.
func (d *duel) pop() {
	admit := Allowed{Tiers: AllTiers, Promote: d.below(2) == 0}
	if d.below(3) == 0 {
		admit.Tiers = TierSet(d.below(8))
	}
	c := d.q.Peek(d.now, admit)
	want, promoted := d.o.peek(d.now, admit)
	d.o.now, d.o.turn = d.now, nil
	d.note("peek %x %t: %s promoted=%t", uint64(admit.Tiers), admit.Promote, d.show(d.waiters[c.Request]), c.Promoted)
	d.same("candidate", c.Request, want)
	if c.Promoted != promoted {
		d.Fatalf("promoted %t, want %t", c.Promoted, promoted)
	}
	if promoted {
		d.same("the one whose age promotes", c.Starved, d.o.lenders(want.tier)[0])
	}
	if want == nil {
		return
	}
	if d.below(8) == 0 {
		d.blockOne(want)
		return
	}
	if d.matching && !promoted {
		c, want = d.match(c, want)
	}
	c.Request.CountAlsoIn(choose(d, nil, nil, []Lane{"x", "y"}, []Lane{"", "y"}))
	d.note("pop, counting in %q too", c.Request.also())
	d.q.Pop(c)
	d.o.dispatch(want, promoted, admit)
	if c.Request.Queued() {
		d.Fatalf("popped, and still queued")
	}
	d.popped = append(d.popped, want)
}

func (d *duel) someone() *waiter {
	if len(d.o.waiting) == 0 {
		return nil
	}
	return d.o.waiting[d.below(len(d.o.waiting))]
}

func (d *duel) cancel() {
	if w := d.someone(); w != nil {
		d.note("cancel %s", d.show(w))
		if !d.q.Remove(w.r) || d.q.Remove(w.r) {
			d.Fatalf("cancelled other than once")
		}
		d.o.leave(w)
		d.ended++
	}
}

func (d *duel) advance() {
	d.now = d.now.Add(time.Duration(d.below(5000)*100) * time.Millisecond)
	d.note("advance to %v", d.now.Sub(time.Unix(1_700_000_000, 0)))
	got := expire(d.q, d.now)
	want := d.o.expire(d.now)
	if len(got) != len(want) {
		d.Fatalf("%d expired, want %d", len(got), len(want))
	}
	for i, r := range got {
		d.same("expired", r, want[i])
	}
	d.ended += len(got)
	var next time.Time
	for _, w := range d.o.waiting {
		if next.IsZero() || w.expires.Before(next) {
			next = w.expires
		}
	}
	if left, ok := d.q.UntilDeadline(d.now); ok != (len(d.o.waiting) > 0) || ok && !d.now.Add(left).Equal(next) {
		d.Fatalf("next deadline in %v %t at %v, want %v", left, ok, d.now, next)
	}
}

func (d *duel) block() {
	if w := d.someone(); w != nil {
		d.blockOne(w)
	}
}

// blockOne closes a waiter's lane, or parks its flow there.
func (d *duel) blockOne(w *waiter) {
	switch d.below(5) {
	case 0:
		d.note("park %s", d.show(w))
		d.q.ParkFlow(w.r)
		if w.r.seq%2 == 0 {
			d.q.AwaitRoom(w.r)
		}
		w.tier.flows[w.flow].parked[w.r.Lane] = true
	case 1:
		d.note("busy %s", d.show(w))
		d.q.CloseLane(w.r, LaneBusy)
		w.tier.lanes[w.r.Lane] = LaneBusy
	case 2:
		d.note("dead %s", d.show(w))
		d.q.CloseLane(w.r, LaneDead)
		w.tier.lanes[w.r.Lane] = LaneDead
	case 3:
		d.note("full %s", d.show(w))
		d.q.CloseLane(w.r, LaneFull)
		w.tier.lanes[w.r.Lane] = LaneFull
	case 4:
		d.note("too busy %s", d.show(w))
		d.q.CloseLane(w.r, LaneBlocked)
		w.tier.lanes[w.r.Lane] = LaneBlocked
	}
}

func (d *duel) unblock() {
	switch d.below(4) {
	case 0:
		tier, flow := d.o.tiers[d.below(len(d.o.tiers))], choose(d, "a", "b", "c", "d")
		d.note("unpark %s %s", tier.cfg.Name, flow)
		d.q.UnparkFlow(tier.id, flow)
		d.o.unpark(tier, flow)
	case 1:
		lane := choose[Lane](d, "", "x", "y")
		d.note("open %q", lane)
		d.q.OpenLane(lane)
		for _, t := range d.o.tiers {
			if t.lanes[lane] != LaneBlocked { // room does not open it
				delete(t.lanes, lane)
			}
		}
	case 2:
		d.note("open all")
		d.q.OpenLanes()
		for _, t := range d.o.tiers {
			clear(t.lanes)
		}
	case 3:
		if w := d.someone(); w != nil {
			d.note("no longer too busy %s", d.show(w))
			if d.q.Unblock(w.r); w.tier.lanes[w.r.Lane] == LaneBlocked {
				delete(w.tier.lanes, w.r.Lane)
			}
		}
	}
}

// takePopped removes and returns a random request that is in flight.
func (d *duel) takePopped() *waiter {
	if len(d.popped) == 0 {
		return nil
	}
	i := d.below(len(d.popped))
	w := d.popped[i]
	d.popped = append(d.popped[:i], d.popped[i+1:]...)
	return w
}

func (d *duel) requeue() {
	if w := d.takePopped(); w != nil {
		d.note("requeue %s", d.show(w))
		d.audit.excused = true
		d.q.Requeue(w.r)
		d.o.requeue(w)
	}
}

// bypass lets an arrival go without waiting, and perhaps end at once.
func (d *duel) bypass() {
	d.o.turn = nil
	r := &Request{
		Flow: choose(d, "a", "b", "c", "d"), Tier: d.below(3), Lane: choose[Lane](d, "", "x"), Cost: choose[Cost](d, 1, 5, 40), Path: d.path(),
	}
	r.CountAlsoIn(choose(d, nil, []Lane{"x", "y"}, []Lane{"y"}))
	w := &waiter{r: r, tier: d.o.arrivalTier(r.Tier), flow: d.o.key(r.Flow)}
	d.note("bypassed: %s", d.show(w))
	d.o.starts(d.now)
	d.q.Bypassed(d.now, r)
	r.Tier = w.tier.id
	if d.o.bypassed(); d.o.vtc() {
		d.o.bypass(w)
	}
	if d.below(2) == 0 {
		d.q.Completed(r)
		d.o.ends(w)
	}
	d.complete = append(d.complete, w)
}

// correct corrects the cost of a random request that is in flight or complete.
func (d *duel) correct() {
	gone := slices.DeleteFunc(append(slices.Clone(d.popped), d.complete...), func(w *waiter) bool {
		return !slices.Contains(d.o.tiers, w.tier)
	})
	if len(gone) == 0 {
		return
	}
	w, cost := gone[d.below(len(gone))], choose[Cost](d, 1, 3, 9, 100)
	raise := d.below(3) == 0
	d.o.clock = d.now
	if d.o.vtc() {
		d.o.recharge(w, int64(cost), raise)
	}
	d.o.corrects(w, int64(cost), raise)
	if raise {
		d.note("raise %s to %d", d.show(w), cost)
		d.q.Adjust(d.now, w.r, cost)
		cost = max(cost, Cost(w.cost))
	} else {
		d.note("true up %s to %d", d.show(w), cost)
		d.q.TrueUp(d.now, w.r, cost)
	}
	d.o.trueUp(w, int64(cost))
}

// completes completes a random request that is in flight, and forgets drained tiers.
func (d *duel) completes() {
	if w := d.takePopped(); w != nil {
		d.note("complete %s", d.show(w))
		if slices.Contains(d.o.tiers, w.tier) && d.below(4) == 0 {
			d.note("and refunded")
			d.q.Refund(d.now, w.r)
			d.o.clock = d.now
			if d.o.vtc() {
				d.o.recharge(w, 0, false)
			}
			d.o.corrects(w, 0, false)
			d.o.trueUp(w, 0)
		}
		d.q.Completed(w.r)
		d.o.ends(w)
		d.ended++
		d.complete = append(d.complete, w)
	}
	inUse := TierSet(0)
	for _, w := range d.popped {
		inUse = inUse.With(w.tier.id)
	}
	d.q.Forget(inUse)
	d.o.forget(inUse)
}

func (d *duel) reload() {
	cfg := d.config(Config{CapacityMode: d.o.cfg.CapacityMode, TierMode: d.o.cfg.TierMode, Discipline: d.o.cfg.Discipline})
	d.note("reload %+v", cfg)
	known := map[*tier]bool{}
	for _, t := range d.q.tiers {
		known[t] = true
	}
	err, want := d.q.Reconfigure(cfg), d.o.reload(cfg)
	if err != nil || want != nil {
		d.Fatalf("reload: %v, want %v", err, want)
	}
	for _, t := range d.q.tiers { // a new tier's virtual time starts where the others' did
		if !known[t] {
			t.classes[0].virtual = VirtualTime(d.offset)
		}
	}
	d.audit.excused = true
}
