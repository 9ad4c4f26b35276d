package fairqueue

// wfq is the seed's weighted fair queueing with deferred finish tags; see the package comment.
type wfq struct{}

// wfqLevel is wfq's state of a level.
type wfqLevel struct {
	virtual       VirtualTime
	rebased       VirtualTime // virtual time when starts were last checked; see wfqrebase.go
	newcomerFirst bool        // Config.TieBreak
}

// wfqShare is wfq's state of a sharer, and vtc's: only one of them serves at a level, and a flow has no room for both.
type wfqShare struct {
	newcomer bool        // goes first among equal tags: NewcomerFirst, and not served since it became backlogged
	known    bool        // the fields below say something; a flow that was forgotten is not known
	start    VirtualTime // where the tags of its heads start; see the package comment. vtc: its counter
	floor    VirtualTime // corrections do not lower start below this
	refunds  VirtualTime // wfq: how far corrections have put start behind virtual time, and may; below 0: ahead of it
}

// wfqReceipt records what a pop has done to a share.
type wfqReceipt struct {
	start   VirtualTime // wfq: before the pop
	charged VirtualTime // what was added to it, corrections included
	weight  Weight      // at which it was charged; below 0 if the share was a newcomer until then. 0: it was not charged
}

func (wfq) active() bool { return true }

func (wfq) chargesBypasses() bool { return false } // the seed: a bypassed request leaves no tag

func (wfq) begin(l *level, s *share) {
	at := l.virtual
	if s.known {
		at = at.later(s.start) // max(virtualTime, lastVirFinishTime), which only corrections put ahead
	}
	s.wfqShare = wfqShare{known: true, start: at, floor: l.virtual, refunds: l.virtual - at, newcomer: l.newcomerFirst}
}

func (wfq) tag(_ *level, s *share, head *Request) VirtualTime {
	return s.start + increment(head.Cost, s.weight)
}

func (wfq) charge(l *level, s *share, _ *Request, tag VirtualTime, p *receipt) (moved bool) {
	p.start, p.charged, p.weight = s.start, tag-s.start, s.weight
	if s.newcomer {
		p.weight = -s.weight
	}
	to := tag
	if most := l.virtual + p.charged; l.claimed && most.before(tag) {
		to = most // out of turn, so what the share owes stays a debt
	}
	l.virtual = l.virtual.later(to)
	l.rebase()
	s.start = tag.later(l.virtual - s.refunds.later(0)) // max(virtualTime, lastVirFinishTime), but refunds are kept
	if s.start != tag {
		s.floor = s.start // others went on while it could not go, and no refund makes up for that
	}
	s.refunds, s.newcomer = l.virtual-s.start, false
	return s.start != p.start
}

// refund subtracts from the share's start what r added to it, and no more, whatever was popped since and whatever the
// share's weight is now; virtual time does not change. Refunds may put the start behind virtual time. A sharer that was
// tracked anew since then has nothing to be refunded, but still gets at most r's own charge, since r is charged again.
func (wfq) refund(l *level, s *share, _ *Request, p *receipt) (moved bool) {
	was, newcomer, least := s.start, s.newcomer, l.virtual-largestLag
	s.corrected(p.charged)
	if least.before(s.start) {
		s.start = least.later(s.start - p.charged)
	}
	if s.start.before(s.floor) {
		s.floor = s.start
	}
	if s.start == p.start {
		s.newcomer = p.weight < 0
	}
	return s.start != was || s.newcomer != newcomer
}

func (w wfq) adjust(l *level, s *share, r *Request, to Cost, p *receipt) (moved bool) {
	return p.weight != 0 && increment(to, p.weightAt()) > p.charged && w.trueUp(l, s, r, to, p)
}

func (wfq) trueUp(l *level, s *share, _ *Request, to Cost, p *receipt) (moved bool) {
	if p.weight == 0 {
		return false
	}
	was, by := s.start, increment(to, p.weightAt())-p.charged
	if by.before(0) {
		if least := s.floor.later(l.virtual - largestLag); least.before(s.start) {
			s.start = least.later(s.start + by)
		}
	} else if most := l.virtual + largestLead; most.before(s.start + by) {
		s.start = s.start.later(most)
	} else {
		s.start += by
	}
	s.corrected(was - s.start)
	p.charged += s.start - was // where a bound stopped it, less than asked for
	return s.start != was
}

// corrected notes that a correction takes this from the start.
func (s *share) corrected(by VirtualTime) {
	s.refunds = VirtualTime(max(-int64(largestLag), min(int64(s.refunds+by), int64(largestLag))))
}

func (wfq) join(*level, *share, *branch, bool, *Request) (moved bool) { return false }

func (wfq) resumed(*level, *share, *branch, *Request) (moved bool) { return false }

func (wfq) bypassed(*level, *share, *Request, *receipt) (moved bool) { return false }

func (wfq) end(*level, *share) {}

func (wfq) advance(*level) {}

func (wfq) describe(l *level, s *share, number func(int64)) {
	if s == nil {
		return // virtual times are relative to the level's
	}
	number(int64(s.start - l.virtual))
	number(int64(s.floor - l.virtual))
	number(int64(s.refunds))
	number(one(s.newcomer))
}

func (wfq) describeReceipt(l *level, p *receipt, number func(int64)) {
	number(int64(p.weight))
	if p.weight == 0 {
		return // it was not popped
	}
	number(int64(p.charged))
	number(int64(p.start - l.virtual))
}

// weightAt returns the weight that was charged at.
func (p *receipt) weightAt() Weight { return max(p.weight, -p.weight) }
