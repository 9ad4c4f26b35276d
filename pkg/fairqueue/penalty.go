package fairqueue

import "math/bits"

// A flow with more than Threshold of the recent use, and more than its weight's share among active flows, has the
// factor max(0.1, 1 − 2(share − 0.5)). The factor multiplies a priority above 0 and divides one below 0, so it always
// lowers it. The priority includes the charge of the head, since charges are made at dispatch:
//
//	p = virtual time − counter − cost(head)/weight        key = counter + p − p·factor, or p − p/factor if p < 0
//
// (Without the head's charge, p would be 0 when the flow returns to a lane that has caught up with it, and no factor
// lowers 0.) The factor acts on flows that come and go. Among flows that always wait, virtual time soon passes the flow
// above the threshold, and then it goes in its turn.
//
// Shares change with every charge and with time, so this key is recomputed before each turn. Only the next flow is
// checked, since a factor only lowers. For a flow above the threshold in more than reviewedLanes lanes, each turn
// recomputes reviewedLanes keys, in rotation. All keys are recomputed when the flow rises above the threshold or falls
// below it.

// penalty is the waiting flow of a class above the threshold, and its factor.
type penalty struct {
	of       *share // nil if there is none
	kept, in uint64 // the factor: kept over in
}

// reviewedLanes is the largest number of keys of the flow above the threshold that a turn computes anew.
const reviewedLanes = 16

// penalizes reports whether s is the flow above the threshold.
func (l *level) penalizes(s *share) bool { return l.fair != nil && l.fair.of == s }

// pardon forgets s, if it was the flow above the threshold.
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
		return factor, false // it is entitled to it
	}
	factor = penalty{of: s, kept: 2 * uint64(all-own), in: uint64(all)}
	if tenth := 1 + (factor.in-1)/10; factor.kept < tenth {
		factor.kept = tenth
	}
	return factor, true
}

// review recomputes the key of the flow above the threshold, and forgets the flow if it no longer is.
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

// lowers reports whether the next flow s turns out to be above the threshold. Its key is then recomputed, and another
// flow may be next.
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

// noteHeavy notes when s was above the threshold.
func (f *fairLevel) noteHeavy(s *share) { s.used(f).heavy = f.queue.attained.n + 1 }

// wasHeavySince reports whether f was above the threshold in a turn since a note of what flows have attained.
func (f *flow) wasHeavySince(n uint64) bool {
	return f.elsewhere != nil && f.elsewhere.mine != nil && f.elsewhere.mine.heavy > n
}

// bound returns the bound on the difference in service of two flows of a tier; slack is its part from costs and
// estimates, and heavy means that one flow was above the threshold.
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

// raise returns the delay of the key of a flow with this counter; after is its counter once its head is charged.
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
