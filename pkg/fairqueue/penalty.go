package fairqueue

import "math/bits"

// A flow that has used more than Threshold of the recent use, and more than its weight's share among the flows that are
// active, has the factor max(0.1, 1 − 2(share − 0.5)): it multiplies a priority above 0 and divides one below 0, so it
// always lowers it. The priority is the flow's after its head is charged, since charges are made at dispatch:
//
//	p = virtual time − counter − cost(head)/weight        key = counter + p − p·factor, or p − p/factor if p < 0
//
// (Of the flow as it is, p would be 0 when it comes back to a lane that has caught up with it, and no factor lowers that.)
// The factor acts on flows that come and go. Of flows that always wait, virtual time passes the one above the threshold soon,
// and then it goes in its turn.
//
// Shares change with every charge and with time, so this key is computed anew before each turn. A flow that is not next is
// not looked at, since a factor only lowers. A flow that waits in more than reviewedLanes lanes and stays above the
// threshold has as many of its keys computed anew in each turn, one lane after the other. All are when it rises above
// or falls below.

// penalty is the flow of a class that is above the threshold, if it waits, and its factor, which is kept/of.
type penalty struct {
	of       *share // nil if there is none
	kept, in uint64 // the factor: kept over in
}

// reviewedLanes is the largest number of keys of the flow above the threshold that a turn computes anew.
const reviewedLanes = 16

// penalizes reports whether s is the one above the threshold.
func (l *level) penalizes(s *share) bool { return l.fair != nil && l.fair.of == s }

// pardon forgets s, if it was the one above the threshold.
func (p *penalty) pardon(s *share) {
	if p.of == s {
		p.of = nil
	}
}

// heavy reports whether s is above the threshold, and computes its factor.
func (f *fairLevel) heavy(s *share) (factor penalty, above bool) {
	now := f.period()
	own, all := s.usedRecently(now), f.recent.at(now)
	if own == 0 || compareRatio(own, Weight(f.config().Threshold), all, millionth) <= 0 {
		return factor, false
	}
	if compareRatio(own, s.weight, all, f.weights) <= 0 {
		return factor, false // it is due to it
	}
	factor = penalty{of: s, kept: 2 * uint64(all-own), in: uint64(all)}
	if tenth := 1 + (factor.in-1)/10; factor.kept < tenth {
		factor.kept = tenth
	}
	return factor, true
}

// review computes the key of the flow above the threshold anew, and forgets the flow if it is no longer.
func (f *fairLevel) review() {
	s := f.of
	if s == nil {
		return
	}
	factor, above := f.heavy(s)
	if f.penalty = factor; !above {
		f.apply(s)
		return
	}
	f.noteHeavy(s)
	if n := s.standings(); n <= reviewedLanes {
		f.apply(s)
	} else {
		for range reviewedLanes {
			f.at = (f.at + 1) % n
			f.applyIn(s, s.standingAt(f.at))
		}
	}
}

// lowers reports whether s, which would be next, is above the threshold without being known as that. Then it is known from now on, with
// its key, and another one may be next.
func (f *fairLevel) lowers(s *share) bool {
	if s == f.of {
		return false
	}
	factor, above := f.heavy(s)
	if !above {
		return false
	}
	was := f.of
	f.penalty = factor
	f.noteHeavy(s)
	if was != nil {
		f.apply(was)
	}
	f.apply(s)
	return true
}

// noteHeavy notes that s, which is above the threshold, is so now.
func (f *fairLevel) noteHeavy(s *share) { s.used(f).heavy = f.queue.attained.n + 1 }

// wasHeavySince reports whether f was above the threshold in a turn since a note of what flows have attained.
func (f *flow) wasHeavySince(n uint64) bool {
	return f.elsewhere != nil && f.elsewhere.mine != nil && f.elsewhere.mine.heavy > n
}

// bound returns how far the service of two flows of a tier may be apart that may be this by their costs and estimates; heavy
// means that one of them was above the threshold.
func (s *fairShares) bound(t *tier, slack float64, heavy bool) float64 {
	if heavy {
		slack *= 3
	}
	return slack + 2*float64(s.config().WaitBonus)/millionth*t.ttl(&s.queue.config).Seconds()
}

// apply computes the keys of s by its factor.
func (f *fairLevel) apply(s *share) {
	for i := range s.standings() {
		f.applyIn(s, s.standingAt(i))
	}
}

// applyIn is apply for one of the lanes of s, if it waits there.
func (f *fairLevel) applyIn(s *share, st *standing) {
	fl := s.flow.laneOf(st.lane)
	if fl == nil {
		return
	}
	in := fl.ownBranch()
	if in.raise = 0; f.of == s {
		in.raise = f.raise(in.virtual, st.start, st.start+increment(fl.head.Cost, s.weight))
	}
	fl.tag = st.start + f.bonus(fl.head.arrived) + in.raise
	s.flow.class.reindex(fl)
}

// raise returns the delay of the key of a flow with this counter now, and that one after its head is charged.
func (p *penalty) raise(virtual, counter, after VirtualTime) VirtualTime {
	if after.before(virtual) {
		return VirtualTime(mulDiv(uint64(virtual-after), p.in-p.kept, p.in))
	}
	more := VirtualTime(mulDiv(uint64(after-virtual), p.in-p.kept, p.kept))
	return more.earlier((virtual + largestLead - counter).later(0))
}

// mulDiv returns a·b/c, rounded down, but at most largestStep.
func mulDiv(a, b, c uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	if hi >= c {
		return uint64(largestStep)
	}
	quo, _ := bits.Div64(hi, lo, c)
	return min(quo, uint64(largestStep))
}

// describe passes the special state of s to number.
func (f *fairLevel) describe(s *share, number func(int64)) {
	if u := s.elsewhere; u != nil && u.mine != nil {
		number(1)
		u.mine.recentUse.describe(f.period(), number)
	} else {
		number(0)
	}
	if number(one(f.of == s)); f.of == s {
		if s.standings() > reviewedLanes {
			number(int64(f.at))
		}
		for _, fl := range s.flow.lanes {
			number(int64(fl.ownBranch().raise))
		}
	}
}
