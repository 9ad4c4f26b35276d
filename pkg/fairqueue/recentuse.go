package fairqueue

import "time"

// recentPeriods is the number of periods of a window, the present one included. So use counts for between the window
// minus a period and the whole window.
const recentPeriods = 30

// period is the number of a period, counted across its rollover.
type period uint32

// recentUse is the charges in each period of the window.
type recentUse struct {
	sum    int64
	period period // the last one that counts
	in     [recentPeriods]int64
}

// roll forgets the use that is recent no more.
func (u *recentUse) roll(now period) {
	if now == u.period {
		return
	}
	for n := min(now-u.period, recentPeriods); n > 0; n-- {
		u.period++
		at := &u.in[u.period%recentPeriods]
		u.sum -= *at
		*at = 0
	}
	u.period = now
}

// add adds to the charges of a recent period, or subtracts at most all of them. It returns the addition.
func (u *recentUse) add(now, then period, cost int64) (added int64) {
	u.roll(now)
	at := &u.in[then%recentPeriods]
	added = max(cost, -*at)
	*at += added
	u.sum += added
	return added
}

// at returns the recent use.
func (u *recentUse) at(now period) int64 {
	u.roll(now)
	return u.sum
}

// userUse is a flow's recent use and its lag. A class lists its active flows' in the order in which they became active.
// The fields read by every charge come first.
type userUse struct {
	lag
	recentUse
	flow         *flow
	older, newer *userUse
	heavy        uint64 // 1 + the number of notes (attained.go) when it was last above the threshold; 0: never
}

// used returns the flow's use.
func (s *share) used(f *fairLevel) *userUse {
	if s.elsewhere == nil {
		both := new(struct { // side by side, since each charge reads both
			elsewhere
			userUse
		})
		both.mine, s.elsewhere = &both.userUse, &both.elsewhere
		both.period, both.flow = f.period(), s.flow
	} else if s.elsewhere.mine == nil {
		s.elsewhere.mine = &userUse{recentUse: recentUse{period: f.period()}, flow: s.flow}
	}
	return s.elsewhere.mine
}

// usedRecently returns the flow's part of the recent use.
func (s *share) usedRecently(now period) int64 {
	if s.elsewhere == nil || s.elsewhere.mine == nil {
		return 0
	}
	return s.elsewhere.mine.at(now)
}

// span returns the length of a period.
func (s *fairShares) span() time.Duration { return s.config().Window / recentPeriods }

// period returns the present period.
func (s *fairShares) period() period {
	now := s.queue.Since(s.queue.now)
	if p := &s.present; now < p.begins || now >= p.ends { // it divides once in a period
		span := s.span()
		n := now / span
		p.number, p.begins, p.ends = s.from+period(n), n*span, (n+1)*span
	}
	return s.present.number
}

// phase returns the part of the present period that is over.
func (s *fairShares) phase() time.Duration { return s.queue.Since(s.queue.now) % s.span() }

// presentPeriod caches the period of the last event, with its begin and its end relative to the queue's epoch; at first
// none.
type presentPeriod struct {
	number       period
	begins, ends time.Duration
}

// renew forgets the recent use, because the length of a period has changed.
func (s *fairShares) renew(was FairShareConfig) {
	if was.Window != s.config().Window {
		s.present = presentPeriod{}
		s.from += period(s.queue.Since(s.queue.now)/(was.Window/recentPeriods)) + recentPeriods
	}
}

// noteUse notes the cost of a request and the period of its charge. wfq keeps another number in the same field.
func (p *receipt) noteUse(in period, cost Cost) { p.start = VirtualTime(in)<<32 | VirtualTime(cost) }

// use returns the note of noteUse.
func (p *receipt) use() (in period, cost Cost) {
	return period(p.start >> 32), Cost(p.start & (1<<32 - 1))
}
