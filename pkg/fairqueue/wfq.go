package fairqueue

// wfq is the seed's weighted fair queueing with deferred finish tags; see the package comment.
type wfq struct{}

// wfqLevel is wfq's state of a level.
type wfqLevel struct {
	virtual       VirtualTime
	rebased       VirtualTime // virtual time when starts were last checked; see wfqrebase.go
	newcomerFirst bool        // Config.TieBreak
}

// wfqShare is the state of a sharer for wfq and vtc: only one of them serves at a level, and a flow has no room for two
// states.
type wfqShare struct {
	standing             // in the lane that it used first
	elsewhere *elsewhere // in other lanes; nil if there is none
}

// wfqReceipt records the changes of a share by a pop.
type wfqReceipt struct {
	start   VirtualTime // wfq: before the pop
	charged VirtualTime // the addition to it, corrections included
	weight  Weight      // of the charge; negative if the share was a newcomer until then; 0: not charged
}

func (wfq) active() bool { return true }

func (wfq) chargesBypasses() bool { return false } // the seed: a bypassed request leaves no tag

func (wfq) begin(l *level, s *share) { s.flow.newcomer = l.newcomerFirst }

func (w wfq) join(l *level, s *share, in *branch, alone bool, r *Request) (moved bool) {
	if alone {
		in.virtual = l.virtual
	}
	if st := s.at(r.Lane); st.entered {
		st.entered = false
	} else {
		w.enter(st, in.virtual)
	}
	return true
}

// enter begins a flow's wait in a lane where it had no waiters.
func (wfq) enter(st *standing, virtual VirtualTime) {
	at := virtual
	if st.known {
		at = at.later(st.start) // max(virtualTime, lastVirFinishTime); only corrections put the latter ahead
	}
	st.known, st.entered, st.start, st.floor, st.refunds = true, false, at, virtual, virtual-at
}

func (wfq) tag(_ *level, s *share, head *Request) VirtualTime {
	return s.waitsIn(head.Lane).start + increment(head.Cost, s.weight)
}

func (wfq) charge(l *level, s *share, r *Request, tag VirtualTime, p *receipt) (moved bool) {
	in, st := r.branchOf(s.flow), s.waitsIn(r.Lane)
	p.start, p.charged, p.weight = st.start, tag-st.start, s.weight
	if s.flow.newcomer {
		p.weight = -s.weight
	}
	to := tag
	if most := in.virtual + p.charged; l.claimed && most.before(tag) {
		to = most // out of turn, so that the share's debt remains
	}
	if l.another {
		to = l.least // so that newcomers are not behind the waiting flows
	}
	in.virtual = in.virtual.later(to)
	l.virtual = l.virtual.later(in.virtual)
	l.rebase()
	st.start = tag.later(in.virtual - st.refunds.later(0)) // max(virtualTime, lastVirFinishTime), but refunds are kept
	if st.start != tag {
		st.floor = st.start // other flows advanced while it could not go, and no refund makes up for that
	}
	st.refunds, s.flow.newcomer = in.virtual-st.start, false
	s.moveOthers(l, p.charged, r)
	return st.start != p.start
}

// refund subtracts exactly r's addition from the share's start, regardless of later pops and weights; virtual time does
// not change. Refunds may put the start behind virtual time. A sharer tracked anew since then has no charge to refund,
// but still gets at most r's own charge, since r is charged again.
func (w wfq) refund(l *level, s *share, r *Request, p *receipt) (moved bool) {
	st := s.at(r.Lane)
	if s.flow.laneOf(r.Lane) == nil {
		virtual := l.virtual
		if in := s.flow.branchIn(r.Lane); in != nil {
			virtual = in.virtual
		}
		w.enter(st, virtual)
		st.entered = true
	}
	was, newcomer, least := st.start, s.flow.newcomer, l.virtual-largestLag
	st.corrected(p.charged)
	if least.before(st.start) {
		st.start = least.later(st.start - p.charged)
	}
	if st.start.before(st.floor) {
		st.floor = st.start
	}
	if st.start == p.start {
		s.flow.newcomer = p.weight < 0
	}
	s.moveOthers(l, -p.charged, r)
	return st.start != was || s.flow.newcomer != newcomer
}

func (w wfq) adjust(l *level, s *share, r *Request, to Cost, p *receipt) (moved bool) {
	return p.weight != 0 && increment(to, p.weightAt()) > p.charged && w.trueUp(l, s, r, to, p)
}

func (wfq) trueUp(l *level, s *share, r *Request, to Cost, p *receipt) (moved bool) {
	if p.weight == 0 {
		return false
	}
	return s.correct(l, s.in(r.Lane), increment(to, p.weightAt()), l.virtual-largestLag, r, p)
}

// correct corrects the charge of a dispatch in st, the standing in r's lane, to to, but lowers no start below least.
func (s *share) correct(l *level, st *standing, to, least VirtualTime, r *Request, p *receipt) (moved bool) {
	if st == nil {
		return false // forgotten, with its debt
	}
	by := st.move(l, to-p.charged, least)
	p.charged += by // a bound may have reduced it
	s.moveOthers(l, by, r)
	return by != 0
}

func (wfq) resumed(*level, *share, *branch, *Request) (moved bool) { return false }

func (wfq) bypassed(*level, *share, *Request, *receipt) (moved bool) { return false }

func (wfq) end(*level, *share) {}

// weightAt returns the weight at the charge.
func (p *receipt) weightAt() Weight { return max(p.weight, -p.weight) }
