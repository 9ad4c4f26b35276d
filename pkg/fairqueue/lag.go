package fairqueue

import "math/bits"

// This file computes the deficits of flows. A flow's virtual use rises by its charges over its weight, in any lane. The
// class's virtual use is the weighted mean of its active flows', so a charge credits each of them by its weight. A
// flow's deficit is its weight times its distance behind the mean; the deficits of active flows add up to zero, except
// for rounding. A flow that becomes active again is not behind, but still owes its lead. Deficits are only shown to
// users: no order depends on them.

// lag is one flow's virtual use.
type lag struct {
	spent  VirtualTime // its virtual use
	weight Weight      // with which it counts among active flows; 0: inactive
}

// lags is the state of the active flows of a class.
type lags struct {
	weights Weight      // Σ weight
	sum     wide        // Σ weight · (spent − base)
	base    VirtualTime // no further from the mean than rebaseEvery

	first, last *userUse // of the active flows
}

// mean returns the virtual use of the class.
func (l *lags) mean() VirtualTime {
	if l.weights == 0 {
		return l.base
	}
	return l.base + VirtualTime(l.sum.over(l.weights))
}

// enter notes that s is active, with the weight that it has now.
func (f *fairLevel) enter(s *share) {
	u := s.used(f)
	if u.weight == s.weight {
		return
	}
	mean := f.mean()
	if u.weight == 0 {
		if u.spent = u.spent.later(mean); (mean + largestLead).before(u.spent) {
			u.spent = mean
		}
		f.link(u)
	}
	f.count(u, s.weight)
}

// leave notes that s is not active.
func (f *fairLevel) leave(s *share) {
	if s.elsewhere != nil && s.elsewhere.mine != nil {
		f.count(s.elsewhere.mine, 0)
		f.unlink(s.elsewhere.mine)
	}
}

// link appends u to the list of the active flows.
func (l *lags) link(u *userUse) {
	if u.older = l.last; l.last != nil {
		l.last.newer = u
	} else {
		l.first = u
	}
	l.last = u
}

// unlink is the opposite of link.
func (l *lags) unlink(u *userUse) {
	if u.older != nil {
		u.older.newer = u.newer
	} else if l.first == u {
		l.first = u.newer
	}
	if u.newer != nil {
		u.newer.older = u.older
	} else if l.last == u {
		l.last = u.older
	}
	u.older, u.newer = nil, nil
}

// count counts a flow with this weight, or not if that is 0.
func (l *lags) count(u *userUse, w Weight) {
	if u.weight != 0 {
		if l.weights -= u.weight; l.weights > 0 { // else the next one begins a sum
			l.sum.add(u.weight, -int64(u.spent-l.base))
		}
	}
	if u.weight = w; w == 0 {
		return
	}
	if l.weights == 0 {
		l.base, l.sum = u.spent, wide{}
	}
	l.sum.add(w, int64(u.spent-l.base))
	l.weights += w
}

// spend adds to the virtual use of a flow with this weight. It reports whether the mean has moved so far that all flows
// must be brought near it, since virtual uses roll over.
func (f *fairLevel) spend(u *userUse, weight Weight, by VirtualTime) (far bool) {
	if u.spent += by; u.weight == 0 {
		return false
	}
	f.sum.add(u.weight, int64(by))
	if u.weight != weight {
		f.count(u, weight)
	}
	if u.spent-f.base+largestStep <= 2*largestStep {
		return false // this one is near the base, so it has taken the mean no further than that
	}
	mean := f.mean()
	f.near(u, mean)
	if far = rebaseEvery.before(mean-f.base) || rebaseEvery.before(f.base-mean); far {
		f.sum.add(f.weights, -int64(mean-f.base))
		f.base = mean
	}
	return far
}

// near keeps the virtual use of an active flow within largestLag of the mean.
func (l *lags) near(u *userUse, mean VirtualTime) {
	to := u.spent.earlier(mean + largestLag).later(mean - largestLag)
	l.sum.add(u.weight, int64(to-u.spent))
	u.spent = to
}

// deficit returns the service owed to s, in units of cost.
func (f *fairLevel) deficit(s *share) int64 {
	if s.elsewhere == nil || s.elsewhere.mine == nil || s.elsewhere.mine.weight == 0 {
		return 0
	}
	u := s.elsewhere.mine
	var owed wide
	owed.add(u.weight, int64(f.mean()-u.spent))
	return owed.over(WeightOne << virtualBits)
}

// wide is an integer of 128 bits.
type wide struct{ hi, lo uint64 }

// add adds w·v.
func (x *wide) add(w Weight, v int64) {
	hi, lo := bits.Mul64(uint64(w), uint64(max(v, -v)))
	var carry uint64
	if v < 0 {
		x.lo, carry = bits.Sub64(x.lo, lo, 0)
		x.hi, _ = bits.Sub64(x.hi, hi, carry)
		return
	}
	x.lo, carry = bits.Add64(x.lo, lo, 0)
	x.hi, _ = bits.Add64(x.hi, hi, carry)
}

// over returns x/w, rounded towards zero. The quotient fits.
func (x wide) over(w Weight) int64 {
	negative := int64(x.hi) < 0
	if negative {
		var borrow uint64
		x.lo, borrow = bits.Sub64(0, x.lo, 0)
		x.hi, _ = bits.Sub64(0, x.hi, borrow)
	}
	quo := uint64(1)<<63 - 1
	if x.hi < uint64(w) {
		quo, _ = bits.Div64(x.hi, x.lo, uint64(w))
		quo = min(quo, 1<<63-1)
	}
	if negative {
		return -int64(quo)
	}
	return int64(quo)
}
