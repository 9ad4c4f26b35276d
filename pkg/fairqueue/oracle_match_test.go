package fairqueue

import (
	"slices"
	"testing"
)

// The oracle's rule of the requests that may take another's turn.

// TestMatchesAgainstOracle does what TestQueueAgainstOracle does where any of those that may take a turn takes it.
func TestMatchesAgainstOracle(t *testing.T) {
	taken := 0
	for seed := range seeds(1500) {
		d := begin(t, randomBytes(seed+5000, 1500), seed<<60-50<<virtualBits, true)
		d.run()
		taken += d.taken
	}
	if least := int(seeds(1500)) * 2; taken < least {
		t.Errorf("only %d turns were taken, want %d", taken, least)
	}
}

// With FairShare a flow can take a turn though its counter is behind that of the flow whose turn it is, by its wait bonus. Its
// turn brings it nowhere that its own would not have: a flow that comes is lifted as after any other dispatch.
func TestMatchesOfThoseBehind(t *testing.T) {
	for _, seed := range []uint64{4992, 5615, 5776, 9409, 12024, 14333, 18440} {
		begin(t, randomBytes(seed+5000, 1500), seed<<60-50<<virtualBits, true).run()
	}
}

// match makes any request that may take the turn of want take it.
func (d *duel) match(c Candidate, want *waiter) (Candidate, *waiter) {
	others := d.below(8) > 0
	var got []*Request
	d.q.Matches(&c, others, func(r *Request) bool {
		got = append(got, r)
		return true
	})
	may := d.o.matches(want, others, c.allowed)
	d.note("of %d may take the turn of %s: %d", len(got), d.show(want), len(may))
	if len(got) != len(may) {
		d.Fatalf("%d may take the turn of %s, want %d", len(got), d.show(want), len(may))
	}
	for i, r := range got {
		d.same("match", r, may[i])
	}
	w := may[max(0, len(may)-1-d.below(3))]
	d.o.turn, d.o.least = nil, d.o.tagOf(want)-d.o.later(want)
	if w != want {
		d.o.turn = want
		d.taken++
		for _, v := range d.o.line(w) {
			if v == w {
				break
			}
			v.byOwn++
		}
		if w.flow != want.flow {
			want.byOther++
		}
	}
	return c.Instead(w.r), w
}

// reaches returns virtual time after a request with this tag has gone.
func (o *oracle) reaches(tag int64) int64 {
	if o.turn != nil {
		return o.least
	}
	return tag
}

// line returns the waiters of the tier, flow and lane of w.
func (o *oracle) line(w *waiter) []*waiter {
	return o.of(func(v *waiter) bool { return v.tier == w.tier && v.flow == w.flow && v.r.Lane == w.r.Lane })
}

// tagOf returns the tag of a head.
func (o *oracle) tagOf(w *waiter) int64 {
	if o.vtc() {
		return w.tier.account(w.flow, w.r.Lane).counter + o.later(w)
	}
	return w.tier.flows[w.flow].place(w.r.Lane).start + o.increment(w)
}

// matches returns the waiters that may take the turn of w, in order.
func (o *oracle) matches(turn *waiter, others bool, allowed TierSet) (may []*waiter) {
	hurried := func(w *waiter) bool { return w.r.Within > 0 && w.r.Within <= 2*o.now.Sub(w.arrived) }
	add := func(line []*waiter) {
		for i, w := range line {
			rich := w.tier.deficit >= int64(w.r.Cost)<<20 || !slices.ContainsFunc(o.tiers, func(t *oracleTier) bool {
				return t != w.tier && o.serves(t, allowed)
			})
			if w.r.Cost <= turn.r.Cost || o.cfg.TierMode == Strict || rich {
				may = append(may, w)
			}
			if o.cfg.Order != Locality || i == 7 || w.byOwn >= 64 || hurried(w) {
				return
			}
		}
	}
	add(o.line(turn))
	if !others || o.cfg.LocalityQuantum == 0 || turn.byOther >= 16 || hurried(turn) {
		return may
	}
	var heads []*waiter
	for _, w := range o.ofTier(turn.tier) {
		if w.r.Lane == turn.r.Lane && o.line(w)[0] == w && !w.tier.flows[w.flow].parked[w.r.Lane] {
			heads = append(heads, w)
		}
	}
	slices.SortStableFunc(heads, func(a, b *waiter) int {
		if by := o.tagOf(a) - o.tagOf(b); by != 0 {
			return int(by)
		}
		if a, b := a.tier.flows[a.flow].newcomer, b.tier.flows[b.flow].newcomer; a != b {
			return int(one(b) - one(a))
		}
		return 0
	})
	for i, w := range heads {
		if w == turn {
			continue
		}
		most := int64(o.cfg.LocalityQuantum) * (1 << 20) * 1_000_000 / int64(o.weight(w.tier, w.flow))
		if i < 8 && o.tagOf(w)-o.tagOf(turn) <= most {
			add(o.line(w))
		}
		if hurried(w) {
			break
		}
	}
	return may
}
