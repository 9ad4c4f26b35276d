package fairqueue

import (
	"cmp"
	"slices"
)

// describer is the part of a discipline that AppendState calls.
type describer interface {
	// describe passes every value of s that affects later decisions to number, or those of the level if s is nil.
	describe(l *level, s *share, number func(int64))
	// describeReceipt does the same for a receipt.
	describeReceipt(l *level, p *receipt, number func(int64))
}

func (wfq) describe(l *level, s *share, number func(int64)) {
	if s == nil {
		return // virtual times are relative to the level's
	}
	number(one(s.flow.newcomer))
	s.describe(l, number, func(st *standing) { number(int64(st.refunds)) })
}

func (wfq) describeReceipt(l *level, p *receipt, number func(int64)) {
	number(int64(p.weight))
	if p.weight == 0 {
		return // it was not popped
	}
	number(int64(p.charged))
	number(int64(p.start - l.virtual))
}

func (vtc) describe(l *level, s *share, number func(int64)) {
	if s == nil {
		number(int64(l.since - l.virtual))
		return
	}
	number(one(s.flow.newcomer))
	s.describe(l, number, func(*standing) {})
}

func (vtc) describeReceipt(_ *level, p *receipt, number func(int64)) {
	number(int64(p.charged))
	number(int64(p.weight))
}

func (d fairShare) describe(l *level, s *share, number func(int64)) {
	d.vtc.describe(l, s, number)
	switch f := l.fair; {
	case s == nil && f != nil:
		f.recent.describe(f.period(), number)
		number(int64(f.phase()))
	case s != nil:
		for _, fl := range s.flow.lanes {
			in := fl.ownBranch()
			number(int64(in.strangers.later(in.virtual) - in.virtual))
		}
		if f != nil {
			f.describe(s, number)
		}
	}
}

func (d fairShare) describeReceipt(l *level, p *receipt, number func(int64)) {
	d.vtc.describeReceipt(l, p, number)
	if l.fair != nil && p.weight != 0 {
		period, cost := p.use()
		number(int64(min(l.fair.period()-period, recentPeriods)))
		number(int64(cost))
	}
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

// describe passes the charges in each period, the present one first, to number.
func (u *recentUse) describe(now period, number func(int64)) {
	u.roll(now)
	for i := range period(recentPeriods) {
		number(u.in[(now-i)%recentPeriods])
	}
}

func (d drr) describe(l *level, s *share, number func(int64)) {
	if s == nil {
		number(int64(d.begins(l)))
		number(one(l.stays))
		return
	}
	number(s.deficit)
	number(s.credit)
}

func (drr) describeReceipt(_ *level, p *receipt, number func(int64)) {
	number(int64(p.charged))
	number(int64(p.start))
}

func (oneFlow) describe(*level, *share, func(int64)) {}

func (oneFlow) describeReceipt(*level, *receipt, func(int64)) {}

// describe passes the standings to number, ordered by lane, with more's values for each, and the virtual times of the
// lanes where the flow waits.
func (s *share) describe(l *level, number func(int64), more func(*standing)) {
	var all []*standing
	s.each(func(st *standing) { all = append(all, st) })
	slices.SortFunc(all, func(a, b *standing) int { return cmp.Compare(a.lane, b.lane) })
	name := func(lane Lane) {
		number(int64(len(lane)))
		for _, c := range []byte(lane) {
			number(int64(c))
		}
	}
	number(int64(len(all)))
	for _, st := range all {
		name(st.lane)
		number(int64(st.start - l.virtual))
		number(int64(st.floor - l.virtual))
		more(st)
	}
	for _, fl := range s.flow.lanes {
		in := fl.ownBranch()
		number(int64(in.virtual - l.virtual))
		if s.flow.class.tier.queue.config.LocalityQuantum == 0 {
			continue
		}
		if number(one(in.matched)); in.matched {
			number(int64(in.front - l.virtual))
		}
	}
}
