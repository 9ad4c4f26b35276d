package fairqueue

// wfq is the seed's weighted fair queueing with deferred finish tags; see the package comment.
type wfq struct{ costsKnown }

// wfqLevel is wfq's state of a level.
type wfqLevel struct {
	virtual       VirtualTime
	rebased       VirtualTime // virtual time when starts were last checked; see wfqrebase.go
	newcomerFirst bool        // Config.TieBreak
}

// wfqShare is wfq's state of a sharer, and vtc's: only one of them serves at a level, and a flow has no room for both.
type wfqShare struct {
	newcomer bool        // goes first among equal tags: NewcomerFirst, and not served since it became backlogged
	known    bool        // vtc: the fields below say something; a flow that was forgotten is not known
	start    VirtualTime // where the tags of its heads start; see the package comment. vtc: its counter
	refunds  VirtualTime // how far refunds may put start behind virtual time. vtc: its floor, the least they leave
}

// wfqReceipt records what a pop has done to a share.
type wfqReceipt struct {
	start    VirtualTime // before the pop. vtc: the weight that it charged at
	charged  VirtualTime // what was added to it
	newcomer bool        // before the pop
}

func (wfq) begin(l *level, s *share) {
	s.wfqShare = wfqShare{start: l.virtual, newcomer: l.newcomerFirst}
}

func (wfq) tag(_ *level, s *share, head *Request) VirtualTime {
	return s.start + increment(head.Cost, s.weight)
}

func (wfq) charge(l *level, s *share, _ *Request, tag VirtualTime, p *receipt) (moved bool) {
	p.start, p.charged, p.newcomer = s.start, tag-s.start, s.newcomer
	l.virtual = l.virtual.later(tag)
	l.rebase()
	s.start = tag.later(l.virtual - s.refunds) // max(virtualTime, lastVirFinishTime), but refunds are kept
	s.refunds, s.newcomer = l.virtual-s.start, false
	return s.start != p.start
}

// refund subtracts from the share's start what r added to it, and no more, whatever was popped since and whatever the
// share's weight is now; virtual time does not change. Refunds may put the start behind virtual time. A sharer that was
// tracked anew since then has nothing to be refunded, but still gets at most r's own increment.
func (wfq) refund(l *level, s *share, _ *Request, p *receipt) (moved bool) {
	was, newcomer := s.start, s.newcomer
	s.refunds = min(s.refunds+p.charged, largestLag)
	if lag := l.virtual - s.start; lag < largestLag {
		s.start = l.virtual - min(lag+p.charged, largestLag)
	}
	if s.start == p.start {
		s.newcomer = p.newcomer
	}
	return s.start != was || s.newcomer != newcomer
}

func (wfq) describe(l *level, s *share, number func(int64)) {
	if s == nil {
		return // virtual times are relative to the level's
	}
	number(int64(s.start - l.virtual))
	number(int64(s.refunds))
	number(one(s.newcomer))
}

func (wfq) describeReceipt(l *level, p *receipt, number func(int64)) {
	number(int64(p.charged))
	if p.charged == 0 {
		return // it was not popped
	}
	number(int64(p.start - l.virtual))
	number(one(p.newcomer))
}
